/** Ridge regressions in closed form, all in the eigenbasis of Σ: the oracle, OLS, and ways to guess the noise. */

import { eigen, type Matrix, type Vector } from "./matrix";
import { parts, type Statistics } from "./statistics";

/** One context in the eigenbasis of Σ; eigenvalues that are zero to rounding carry no label. */
export interface Spectrum {
  values: Vector;
  vectors: Matrix; // the k-th eigenvector is row k
  labels: Vector; // α in the eigenbasis
  residual: number; // of least squares
  count: number;
  labelSquare: number; // λ
}

/** Decompose one context; where Σ was decomposed before, pass its eigenvectors. */
export function spectrum(stats: Statistics, known?: ReturnType<typeof eigen>): Spectrum {
  const { xx, xy, yy } = parts(stats);
  const { dim, count } = stats;
  const { values, vectors } = known ?? eigen(xx, dim);
  const cutoff = dim * Number.EPSILON * values[dim - 1];
  const labels = new Float64Array(dim);
  const kept = new Float64Array(dim);
  let explained = 0;
  for (let k = 0; k < dim; k++) {
    if (!(values[k] > cutoff) || k < dim - count) continue;
    kept[k] = values[k];
    for (let i = 0; i < dim; i++) labels[k] += vectors[k * dim + i] * xy[i];
    explained += labels[k] ** 2 / values[k];
  }
  return { values: kept, vectors, labels, residual: Math.max(yy - explained, 0), count, labelSquare: yy };
}

/** From the eigenbasis to the inputs' own coordinates. */
export function back({ vectors }: Spectrum, coordinates: Vector): Vector {
  const dim = coordinates.length;
  const result = new Float64Array(dim);
  for (let k = 0; k < dim; k++) {
    for (let i = 0; i < dim; i++) result[i] += vectors[k * dim + i] * coordinates[k];
  }
  return result;
}

/** `(Σ + penalty)⁻¹ α`, by least norm where that inverse does not exist, Eqs. (4) and (5). */
export function ridge(of: Spectrum, penalty: number): Vector {
  return back(of, of.labels.map((label, k) => (of.values[k] + penalty === 0 ? 0 : label / (of.values[k] + penalty))));
}

/** The unbiased estimate `RSS/(n − d)` of σ²; not a number where n ≤ d leaves it undefined. */
export function residualVariance(of: Spectrum): number {
  const freedom = of.count - of.labels.length;
  return freedom > 0 ? of.residual / freedom : NaN;
}

/** The constants of TunedRR for one prior, found by Python. */
export interface Tuning {
  multiplier: number;
  ceiling: number;
}

/** The guess of σ² that each ridge regression makes. */
export const PENALTIES = {
  ols: () => 0,
  "const-ridge": (_: Spectrum, secondMoment: number) => secondMoment,
  "ada-ridge": (of: Spectrum) => residualVariance(of),
  "tuned-ridge": (of: Spectrum, _: number, tuning?: Tuning) =>
    tuning ? tuning.multiplier * Math.min(residualVariance(of), tuning.ceiling) : NaN,
};
