/** The parameters of a model: the four ω of each layer, and P and Q in a canonical form. */

import type { Matrix } from "./matrix";
import { OMEGAS, omega, printedMatrices, type OmegaName, type Model } from "./models";

/**
 * The four ω of each layer as printed, on unscaled tokens; of the last layer only those that are read.
 *
 * For FULL they are the average over all bases of the inputs, the member of DIAG that the layer acts like.
 */
export function omegas(model: Model): Record<OmegaName, number>[] {
  return Array.from({ length: model.layers }, (_, layer) => {
    const values = model.family === "full" ? averagedOmega(model, layer) : omega(model, layer).map((w) => w / model.context);
    const last = layer === model.layers - 1;
    const read = OMEGAS.map((name, i) => [name, last && name[0] === "x" ? 0 : values[i]]);
    return Object.fromEntries(read) as Record<OmegaName, number>;
  });
}

function averagedOmega(model: Model, layer: number): number[] {
  const [d, size] = [model.dim, model.dim + 1];
  let [along, across, xy, yx, yy] = [0, 0, 0, 0, 0];
  for (let head = 0; head < model.heads; head++) {
    const { P, Q } = printedMatrices(model, layer, head);
    const [p, q] = [(i: number, j: number) => P[i * size + j], (i: number, j: number) => Q[i * size + j]];
    for (let a = 0; a < d; a++) {
      for (let b = 0; b < d; b++) {
        along += (p(a, a) * q(b, b) + p(a, b) * q(a, b)) / 2;
        across += p(a, b) * q(b, a);
      }
      xy += (p(a, a) * q(d, d) + p(a, d) * q(a, d)) / 2;
      yx += (p(d, d) * q(a, a) + p(d, a) * q(d, a)) / 2;
    }
    yy += p(d, d) * q(d, d);
  }
  const half = d > 1 ? (d * along - across) / (d * (d * (d + 1) - 2)) : along / 2;
  return [2 * half, (2 * xy) / d, (2 * yx) / d, yy];
}

/** P and Q of a layer and head, scaled to equal norms, as in Figure 4. */
export function canonicalMatrices(model: Model, layer: number, head: number): { P: Matrix; Q: Matrix } {
  const { P, Q } = model.family === "full" ? printedMatrices(model, layer, head) : diagonalMatrices(model, layer, head);
  const [sizeP, sizeQ] = [norm(P), norm(Q)];
  const scale = sizeP > 0 && sizeQ > 0 ? Math.sqrt(sizeP / sizeQ) : 1;
  return { P: P.map((value) => value / scale), Q: Q.map((value) => value * scale) };
}

/** `(x, …, x, y)` on the diagonal, Eq. (8). */
function diagonalMatrices(model: Model, layer: number, head: number): { P: Matrix; Q: Matrix } {
  const size = model.dim + 1;
  const at = 2 * (layer * model.heads + head);
  const pair = (values: ArrayLike<number>, scale: number) => {
    const matrix = new Float64Array(size * size);
    for (let i = 0; i < size; i++) matrix[i * size + i] = values[i === size - 1 ? 1 : 0] / scale;
    return matrix;
  };
  const { rates, p, q } = model.parameters;
  if (model.family === "gd++") return { P: pair(rates.subarray(at, at + 2), model.context), Q: pair([1, 0], 1) };
  return { P: pair(p.subarray(at, at + 2), model.context), Q: pair(q.subarray(at, at + 2), 1) };
}

function norm(matrix: Matrix): number {
  return Math.sqrt(matrix.reduce((sum, value) => sum + value * value, 0));
}
