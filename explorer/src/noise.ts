/** Noise priors: distributions of the noise level σ of a sequence, read from texts such as `uniform(0,5)`. */

import type { Random } from "./random";

export type Noise =
  | { kind: "uniform"; low: number; high: number }
  | { kind: "atoms"; values: number[]; probabilities: number[] }; // they sum to one

/** Read a prior from its text. */
export function parseNoise(text: string): Noise {
  const match = /^\s*(fixed|uniform|choice)\s*\(([^()]*)\)\s*$/.exec(text);
  if (!match) throw new Error(`A noise prior must look like uniform(0,5), choice(1,3) or fixed(2), got “${text}”.`);
  const parts = match[2].split(",").map((part) => part.split(":").map(readNumber));
  const values = parts.map(([value]) => value);
  if (match[1] === "uniform") {
    if (values.length !== 2 || values[0] > values[1]) throw new Error(`“${text}” needs two bounds, the lower first.`);
    return { kind: "uniform", low: values[0], high: values[1] };
  }
  const probabilities = parts.map(([, probability]) => probability ?? 1);
  const total = probabilities.reduce((sum, probability) => sum + probability, 0);
  return { kind: "atoms", values, probabilities: probabilities.map((probability) => probability / total) };
}

function readNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= 0) || !Number.isFinite(value)) {
    throw new Error(`“${text}” is not a noise level.`);
  }
  return value;
}

/** Draw σ. */
export function sampleNoise(noise: Noise, draw: Random): number {
  const u = draw.uniform();
  if (noise.kind === "uniform") return noise.low + (noise.high - noise.low) * u;
  let cumulative = 0;
  for (let i = 0; i < noise.values.length; i++) {
    cumulative += noise.probabilities[i];
    if (u < cumulative) return noise.values[i];
  }
  return noise.values[noise.values.length - 1];
}

/** E[σ²], the best constant penalty. */
export function secondMoment(noise: Noise): number {
  if (noise.kind === "atoms") return noise.values.reduce((sum, value, i) => sum + noise.probabilities[i] * value ** 2, 0);
  return (noise.low ** 2 + noise.low * noise.high + noise.high ** 2) / 3;
}

/** The largest σ. */
export function largest(noise: Noise): number {
  return noise.kind === "uniform" ? noise.high : Math.max(...noise.values);
}

/** Whether the prior can draw this noise level. */
export function supports(noise: Noise, noiseStd: number): boolean {
  if (noise.kind === "uniform") return noiseStd >= noise.low - 1e-9 && noiseStd <= noise.high + 1e-9;
  return noise.values.some((value) => Math.abs(value - noiseStd) < 1e-9);
}
