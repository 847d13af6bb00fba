/**
 * Sequences: the weights and examples of one regression problem, drawn from a seed.
 *
 * Numbers are drawn in the order weights, query, first example, second example, …; so another n only adds or
 * removes examples, and another σ only scales the noise.
 */

import { dot, type Matrix, type Vector } from "./matrix";
import type { Random } from "./random";
import type { Statistics } from "./statistics";

export interface Sequence {
  weights: Vector; // w_τ
  query: Vector;
  inputs: Vector[]; // n of them
  noise: number[]; // ξ with standard deviation one
}

/** Draw a sequence. */
export function drawSequence(draw: Random, numExamples: number, dim: number): Sequence {
  const vector = () => Float64Array.from({ length: dim }, () => draw.normal());
  const [weights, query] = [vector(), vector()];
  const inputs: Vector[] = [];
  const noise: number[] = [];
  for (let i = 0; i < numExamples; i++) {
    inputs.push(vector());
    noise.push(draw.normal());
  }
  return { weights, query, inputs, noise };
}

/** The labels `y = ⟨w, x⟩ + σξ`. */
export function labels(sequence: Sequence, noiseStd: number): number[] {
  return sequence.inputs.map((x, i) => dot(sequence.weights, x) + noiseStd * sequence.noise[i]);
}

/** Sums over a sequence, from which the Gram matrix at any σ is fast to compute. */
export interface Summary {
  weights: Vector;
  numExamples: number;
  dim: number;
  xx: Matrix; // Σ
  fit: Vector; // Σ w
  cross: Vector; // Xᵀξ
  square: number; // ‖ξ‖²
}

/** Compute the sums over a sequence. */
export function summarise({ weights, inputs, noise }: Sequence): Summary {
  const dim = weights.length;
  const xx = new Float64Array(dim * dim);
  const cross = new Float64Array(dim);
  let square = 0;
  inputs.forEach((x, k) => {
    for (let i = 0; i < dim; i++) {
      for (let j = 0; j < dim; j++) xx[i * dim + j] += x[i] * x[j];
      cross[i] += x[i] * noise[k];
    }
    square += noise[k] ** 2;
  });
  const fit = Float64Array.from({ length: dim }, (_, i) => dot(xx.subarray(i * dim, (i + 1) * dim), weights));
  return { weights, numExamples: inputs.length, dim, xx, fit, cross, square };
}

/** The Gram matrix at a noise level: `α = Σw + σXᵀξ`, `λ = wᵀΣw + 2σ wᵀXᵀξ + σ²‖ξ‖²`. */
export function statistics(summary: Summary, noiseStd: number): Statistics {
  const { weights, numExamples, dim, xx, fit, cross, square } = summary;
  const size = dim + 1;
  const gram = new Float64Array(size * size);
  for (let i = 0; i < dim; i++) {
    for (let j = 0; j < dim; j++) gram[i * size + j] = xx[i * dim + j];
    gram[i * size + dim] = gram[dim * size + i] = fit[i] + noiseStd * cross[i];
  }
  gram[size * size - 1] = dot(weights, fit) + 2 * noiseStd * dot(weights, cross) + noiseStd ** 2 * square;
  return { gram, numExamples, dim };
}
