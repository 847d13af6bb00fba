/** Noise priors: how the noise level σ of a sequence is drawn, read from texts such as `uniform(0,5)`. */

import type { Random } from "./random";

export type Noise =
  | { kind: "uniform"; low: number; high: number }
  | { kind: "atoms"; values: number[]; weights: number[] }; // weights sum to one

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
  const weights = parts.map(([, weight]) => weight ?? 1);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return { kind: "atoms", values, weights: weights.map((weight) => weight / total) };
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
  let below = 0;
  for (let i = 0; i < noise.values.length; i++) {
    below += noise.weights[i];
    if (u < below) return noise.values[i];
  }
  return noise.values[noise.values.length - 1];
}

/** E[σ²], the best constant penalty. */
export function secondMoment(noise: Noise): number {
  if (noise.kind === "atoms") return noise.values.reduce((sum, value, i) => sum + noise.weights[i] * value ** 2, 0);
  return (noise.low ** 2 + noise.low * noise.high + noise.high ** 2) / 3;
}

/** The largest σ. */
export function largest(noise: Noise): number {
  return noise.kind === "uniform" ? noise.high : Math.max(...noise.values);
}

/** Whether a sequence with this noise level could have been seen in training. */
export function covers(noise: Noise, std: number): boolean {
  if (noise.kind === "uniform") return std >= noise.low - 1e-9 && std <= noise.high + 1e-9;
  return noise.values.some((value) => Math.abs(value - std) < 1e-9);
}
