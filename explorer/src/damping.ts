/**
 * Damping: a context outside of the range of training is scaled, and the steps of layers are divided.
 *
 * `G⁰ ← G⁰ / max(1, tr Σ⁰ / t, min(‖Σ⁰‖₄ / ρ⁰, 1.2))`, then `T = I + Σₖ Pₖ (Gˡ/r) Qₖ` with
 * `r = max(1, ‖Σˡ‖₄ / ρˡ, λˡ / κˡ)` and the Schatten norm `‖Σ‖₄ = (tr Σ⁴)^¼`.
 */

import { multiply, type Matrix } from "./matrix";

/** Thresholds, on unscaled tokens; infinity where nothing is divided. */
export interface Damping {
  rho: number[]; // largest ‖Σˡ‖₄ of each layer that is not damped
  kappa: number[]; // largest λˡ of each layer that is not damped
  trace: number; // t, the largest tr Σ⁰ of a context that is not scaled by it
}

/** What a run divided by; 1 where the context was inside the range. */
export interface Divisors {
  context: number; // of the Gram matrix before the first layer
  layers: number[]; // r of each layer
}

const KIND = "hard"; // the only rule that there is
const NAMES = ["kind", "rho", "kappa", "trace"]; // in a record
const SCALED_RANGE = 1.2; // a context whose norm is up to this much above ρ⁰ is scaled, and not damped in layer 1

/** Read the thresholds of a card or a file, which may hold anything. */
export function readDamping(record: unknown, layers: number): Damping {
  if (typeof record !== "object" || record === null || !NAMES.every((name) => Object.hasOwn(record, name))) {
    throw new Error(`“damping” must be an object with kind, rho, kappa and trace, got ${quote(record)}.`);
  }
  const { kind, rho, kappa, trace, active } = record as Record<string, unknown>;
  if (kind !== KIND) throw new Error(`“kind” of the damping must be “${KIND}”, got ${quote(kind)}.`);
  if (typeof active !== "boolean") throw new Error(`“active” of the damping must be true or false, got ${quote(active)}.`);
  if (!isThreshold(trace)) {
    throw new Error(`“trace” of the damping must be a positive number, or null for infinity, got ${quote(trace)}.`);
  }
  return { rho: thresholds("rho", rho, layers), kappa: thresholds("kappa", kappa, layers), trace: trace ?? Infinity };
}

function thresholds(name: string, values: unknown, layers: number): number[] {
  if (!Array.isArray(values) || values.length !== layers || !values.every(isThreshold)) {
    const needed = `${layers} positive numbers, or null for infinity`;
    throw new Error(`“${name}” of the damping must be a list of ${needed}, got ${quote(values)}.`);
  }
  return values.map((value) => value ?? Infinity);
}

function isThreshold(value: unknown): value is number | null {
  return value === null || (typeof value === "number" && value > 0 && value < Infinity);
}

function quote(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, 99);
}

/** The thresholds for a Gram matrix divided by `numExamples`. */
export function forDividedGram({ rho, kappa, trace }: Damping, numExamples: number): Damping {
  // A threshold that underflows stays positive, since 0 / 0 is NaN.
  const divide = (value: number) => Math.max(value / numExamples, Number.MIN_VALUE);
  return { rho: rho.map(divide), kappa: kappa.map(divide), trace: divide(trace) };
}

/** `max(1, tr Σ / t, min(‖Σ‖₄ / ρ, 1.2))` of the Gram matrix of a context, with ρ of the first layer. */
export function contextDivisor(gram: Matrix, size: number, rho: number, trace: number): number {
  let ratio = 0;
  for (let i = 0; i < size - 1; i++) ratio += gram[i * size + i] / trace;
  return Math.max(1, ratio, Math.min(normRatio(gram, size, rho), SCALED_RANGE));
}

/** `r = max(1, ‖Σ‖₄ / ρ, λ / κ)` of the Gram matrix before a layer. */
export function layerDivisor(gram: Matrix, size: number, rho: number, kappa: number): number {
  const norm = normRatio(gram, size, rho);
  return norm === Infinity ? norm : Math.max(1, norm, gram[size * size - 1] / kappa);
}

/** `‖Σ‖₄ / ρ`; infinite where it overflows, and a layer divided by it does nothing. */
function normRatio(gram: Matrix, size: number, rho: number): number {
  const inputs = size - 1;
  const ratios = new Float64Array(inputs * inputs); // Σ / ρ
  for (let i = 0; i < inputs; i++) {
    for (let j = 0; j < inputs; j++) ratios[i * inputs + j] = gram[i * size + j] / rho;
  }
  const largest = ratios.reduce((most, ratio) => Math.max(most, Math.abs(ratio)), 1);
  if (largest === Infinity) return Infinity;
  const small = ratios.map((ratio) => ratio / largest); // up to 1, so that no power overflows
  const fourthPower = multiply(small, small, inputs).reduce((sum, value) => sum + value ** 2, 0); // tr Σ⁴ = ‖Σ²‖²
  return largest * fourthPower ** 0.25;
}
