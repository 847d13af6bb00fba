/**
 * Linear transformers: the layer recursion on the Gram matrix.
 *
 * A layer moves every token by `T = I + Σₖ Pₖ G Qₖ`; then `G ← T G Tᵀ` and `C ← T C`, and the implicit weights are
 * read from the last row of `C = [[M, u], [−wᵀ, a]]`, Theorem 4.1 and Lemma 4.3.
 */

import { identity, multiply, multiplyTransposed, type Matrix, type Vector } from "./matrix";
import type { Statistics } from "./statistics";

export type Family = "gd++" | "diag" | "full";

export interface Model {
  family: Family;
  layers: number;
  heads: number;
  context: number; // training n: parameters are for a Gram matrix divided by it
  dim: number;
  parameters: Record<string, Vector>; // the family's own numbers: p and q, or rates
}

export const FLOWS = ["xx", "xy", "yx", "yy"] as const;
export type Flow = (typeof FLOWS)[number]; // what moves, and by what

/** Flows that are switched off, written `2xy` for ω_xy of layer 2. */
export type Off = ReadonlySet<string>;
const NOTHING: Off = new Set();

/** The implicit weights after every layer. */
export function layerWeights(model: Model, stats: Statistics, off: Off = NOTHING): Vector[] {
  const size = stats.dim + 1;
  let gram: Matrix = stats.gram.map((value) => value / model.context);
  let moved = identity(size);
  const weights: Vector[] = [];
  for (let layer = 0; layer < model.layers; layer++) {
    const t = transition(model, layer, gram, off);
    moved = multiply(t, moved, size); // Lemma 4.3
    weights.push(readWeights(moved, stats.dim));
    if (layer + 1 < model.layers) gram = multiplyTransposed(multiply(t, gram, size), t, size);
  }
  return weights;
}

/** The implicit weights after the last layer. */
export function finalWeights(model: Model, stats: Statistics, off: Off = NOTHING): Vector {
  return layerWeights(model, stats, off)[model.layers - 1];
}

function readWeights(moved: Matrix, dim: number): Vector {
  return moved.slice(dim * (dim + 1), dim * (dim + 1) + dim).map((value) => -value);
}

/** `T = I + Σₖ Pₖ G Qₖ`, without the blocks that are switched off. */
function transition(model: Model, layer: number, gram: Matrix, off: Off): Matrix {
  const size = Math.round(Math.sqrt(gram.length));
  const t = model.family === "full" ? fullProduct(model, layer, gram, size) : diagonalProduct(model, layer, gram, size);
  for (const flow of FLOWS) {
    if (off.has(`${layer + 1}${flow}`)) clearBlock(t, flow, size);
  }
  for (let i = 0; i < size; i++) t[i * size + i] += 1;
  return t;
}

/** With diagonal P and Q each block of G is multiplied by its own ω, Eq. (10). */
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

function clearBlock(t: Matrix, flow: Flow, size: number): void {
  const last = size - 1;
  for (let at = 0; at < t.length; at++) {
    const block = (at >= last * size ? "y" : "x") + (at % size === last ? "y" : "x");
    if (block === flow) t[at] = 0;
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
