/** Statistics of a context: the Gram matrix of its tokens, and the number of examples. */

import type { Matrix, Vector } from "./matrix";

export interface Statistics {
  gram: Matrix; // [[Σ, α], [αᵀ, λ]], (d+1) × (d+1)
  numExamples: number; // n
  dim: number; // d
}

/** Σ, α and λ of a Gram matrix. */
export function blocks({ gram, dim }: Statistics): { xx: Matrix; xy: Vector; yy: number } {
  const size = dim + 1;
  const xx = new Float64Array(dim * dim);
  const xy = new Float64Array(dim);
  for (let i = 0; i < dim; i++) {
    for (let j = 0; j < dim; j++) xx[i * dim + j] = gram[i * size + j];
    xy[i] = gram[i * size + dim];
  }
  return { xx, xy, yy: gram[size * size - 1] };
}
