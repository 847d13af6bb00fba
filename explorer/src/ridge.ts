/** Ridge regressions in closed form, in the eigenbasis of Σ: the oracle, OLS, and estimates of the noise variance. */

import { eigen, type Matrix, type Vector } from "./matrix";
import { blocks, type Statistics } from "./statistics";

/** One context in the eigenbasis of Σ; eigenvalues that are zero to rounding have α = 0. */
export interface Spectrum {
  values: Vector;
  vectors: Matrix; // the k-th eigenvector is row k
  alpha: Vector; // α in the eigenbasis
  residual: number; // of least squares
  numExamples: number;
  labelSquare: number; // λ
}

/** Decompose one context; `axes` are the eigenvectors of Σ where they are known. */
export function spectrum(stats: Statistics, axes?: ReturnType<typeof eigen>): Spectrum {
  const { xx, xy, yy } = blocks(stats);
  const { dim, numExamples } = stats;
  const { values, vectors } = axes ?? eigen(xx, dim);
  const cutoff = dim * Number.EPSILON * values[dim - 1];
  const alpha = new Float64Array(dim);
  const nonzero = new Float64Array(dim);
  let explained = 0;
  for (let k = 0; k < dim; k++) {
    if (!(values[k] > cutoff) || k < dim - numExamples) continue;
    nonzero[k] = values[k];
    for (let i = 0; i < dim; i++) alpha[k] += vectors[k * dim + i] * xy[i];
    explained += alpha[k] ** 2 / values[k];
  }
  return { values: nonzero, vectors, alpha, residual: Math.max(yy - explained, 0), numExamples, labelSquare: yy };
}

/** From the eigenbasis to the coordinates of the inputs. */
export function toInputs({ vectors }: Spectrum, coordinates: Vector): Vector {
  const dim = coordinates.length;
  const result = new Float64Array(dim);
  for (let k = 0; k < dim; k++) {
    for (let i = 0; i < dim; i++) result[i] += vectors[k * dim + i] * coordinates[k];
  }
  return result;
}

/** `(Σ + penalty)⁻¹ α`, by least norm where that inverse does not exist, Eqs. (4) and (5). */
export function ridge(of: Spectrum, penalty: number): Vector {
  return toInputs(of, of.alpha.map((value, k) => (of.values[k] + penalty === 0 ? 0 : value / (of.values[k] + penalty))));
}

/** The unbiased estimate `RSS/(n − d)` of σ²; not a number where n ≤ d leaves it undefined. */
export function residualVariance(of: Spectrum): number {
  const freedom = of.numExamples - of.alpha.length;
  return freedom > 0 ? of.residual / freedom : NaN;
}

/** The constants of TunedRR for one prior, found by Python. */
export interface Tuning {
  multiplier: number;
  ceiling: number;
}

/** The estimate of σ² that each ridge regression uses as its penalty. */
export const PENALTIES = {
  ols: () => 0,
  "const-ridge": (_: Spectrum, secondMoment: number) => secondMoment,
  "ada-ridge": (of: Spectrum) => residualVariance(of),
  "tuned-ridge": (of: Spectrum, _: number, tuning?: Tuning) =>
    tuning ? tuning.multiplier * Math.min(residualVariance(of), tuning.ceiling) : NaN,
};
