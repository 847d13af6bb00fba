/**
 * Linear transformers: the layer recursion on the Gram matrix.
 *
 * A layer multiplies all tokens by `T = I + Σₖ Pₖ (G/r) Qₖ`, where r is 1 in a model as printed; then
 * `G ← T G Tᵀ` and `C ← T C`, and the implicit weights are read from the last row of `C = [[M, u], [−wᵀ, a]]`,
 * Theorem 4.1 and Lemma 4.3.
 */

import { contextDivisor, forDividedGram, layerDivisor, type Damping, type Divisors } from "./damping";
import { identity, multiply, multiplyTransposed, type Matrix, type Vector } from "./matrix";
import type { Statistics } from "./statistics";

export type Family = "gd++" | "diag" | "full";

export interface Model {
  family: Family;
  layers: number;
  heads: number;
  context: number; // training n: parameters are for a Gram matrix divided by it
  dim: number;
  parameters: Record<string, Vector>; // p and q, or rates
  damping: Damping | null; // stored thresholds; null where there are none
}

export const OMEGAS = ["xx", "xy", "yx", "yy"] as const;
export type OmegaName = (typeof OMEGAS)[number]; // block of T: the row that changes, and the column that it depends on

/** The ω that are switched off, written `2xy` for ω_xy of layer 2. */
export type Disabled = ReadonlySet<string>;
const NONE: Disabled = new Set();

export interface Run {
  weights: Vector[]; // implicit weights after each layer
  divisors: Divisors;
}

/** Run all layers, with the thresholds of `damping`, or as printed where it is null. */
export function runLayers(model: Model, stats: Statistics, damping: Damping | null, disabled: Disabled = NONE): Run {
  const size = stats.dim + 1;
  const limits = damping && forDividedGram(damping, model.context);
  let gram: Matrix = stats.gram.map((value) => value / model.context);
  const context = limits ? contextDivisor(gram, size, limits.rho[0], limits.trace) : 1;
  const divisors: Divisors = { context, layers: [] };
  gram = divide(gram, context);
  let implicitMap = identity(size);
  const weights: Vector[] = [];
  for (let layer = 0; layer < model.layers; layer++) {
    const r = limits ? layerDivisor(gram, size, limits.rho[layer], limits.kappa[layer]) : 1;
    const t = transition(model, layer, divide(gram, r), disabled);
    implicitMap = multiply(t, implicitMap, size); // Lemma 4.3
    weights.push(readWeights(implicitMap, stats.dim));
    divisors.layers.push(r);
    if (layer + 1 < model.layers) gram = multiplyTransposed(multiply(t, gram, size), t, size);
  }
  return { weights, divisors };
}

/** The implicit weights after the last layer. */
export function finalWeights(model: Model, stats: Statistics, damping: Damping | null, disabled: Disabled = NONE): Vector {
  return runLayers(model, stats, damping, disabled).weights[model.layers - 1];
}

function divide(matrix: Matrix, by: number): Matrix {
  return by === 1 ? matrix : matrix.map((value) => value / by);
}

function readWeights(implicitMap: Matrix, dim: number): Vector {
  return implicitMap.slice(dim * (dim + 1), dim * (dim + 1) + dim).map((value) => -value);
}

/** `T = I + Σₖ Pₖ G Qₖ`, without the blocks that are switched off. */
function transition(model: Model, layer: number, gram: Matrix, disabled: Disabled): Matrix {
  const size = Math.round(Math.sqrt(gram.length));
  const t = model.family === "full" ? fullProduct(model, layer, gram, size) : diagonalProduct(model, layer, gram, size);
  for (const name of OMEGAS) {
    if (disabled.has(`${layer + 1}${name}`)) clearBlock(t, name, size);
  }
  for (let i = 0; i < size; i++) t[i * size + i] += 1;
  return t;
}

/** With diagonal P and Q each block of G is multiplied by one ω, Eq. (10). */
function diagonalProduct(model: Model, layer: number, gram: Matrix, size: number): Matrix {
  const [xx, xy, yx, yy] = omega(model, layer);
  const last = size - 1;
  return gram.map((value, at) => {
    const [label, byLabel] = [at >= last * size, at % size === last];
    return value * (label ? (byLabel ? yy : yx) : byLabel ? xy : xx);
  });
}

function fullProduct(model: Model, layer: number, gram: Matrix, size: number): Matrix {
  const total = new Float64Array(size * size);
  for (let head = 0; head < model.heads; head++) {
    const p = matrixOf(model, "p", layer, head, size);
    const q = matrixOf(model, "q", layer, head, size);
    const product = multiply(multiply(p, gram, size), q, size);
    for (let i = 0; i < total.length; i++) total[i] += product[i];
  }
  return total;
}

function clearBlock(t: Matrix, name: OmegaName, size: number): void {
  const last = size - 1;
  for (let at = 0; at < t.length; at++) {
    const block = (at >= last * size ? "y" : "x") + (at % size === last ? "y" : "x");
    if (block === name) t[at] = 0;
  }
}

function matrixOf(model: Model, name: string, layer: number, head: number, size: number): Matrix {
  const start = (layer * model.heads + head) * size * size;
  return model.parameters[name].subarray(start, start + size * size);
}

/** `ω_xx, ω_xy, ω_yx, ω_yy` of a layer of DIAG or GD++, for a Gram matrix divided by the training n, Eq. (9). */
export function omega(model: Model, layer: number): [number, number, number, number] {
  const sums: [number, number, number, number] = [0, 0, 0, 0];
  for (let head = 0; head < model.heads; head++) {
    const at = 2 * (layer * model.heads + head);
    if (model.family === "gd++") {
      sums[0] += model.parameters.rates[at];
      sums[2] += model.parameters.rates[at + 1];
      continue;
    }
    const { p, q } = model.parameters;
    sums[0] += p[at] * q[at];
    sums[1] += p[at] * q[at + 1];
    sums[2] += p[at + 1] * q[at];
    sums[3] += p[at + 1] * q[at + 1];
  }
  return sums;
}

/** P and Q of a head of FULL as printed in Eq. (3). */
export function printedMatrices(model: Model, layer: number, head: number): { P: Matrix; Q: Matrix } {
  const size = model.dim + 1;
  const P = matrixOf(model, "p", layer, head, size).map((value) => value / model.context);
  return { P, Q: matrixOf(model, "q", layer, head, size).slice() };
}
