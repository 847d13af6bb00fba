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
export function drawSequence(draw: Random, count: number, dim: number): Sequence {
  const vector = () => Float64Array.from({ length: dim }, () => draw.normal());
  const [weights, query] = [vector(), vector()];
  const inputs: Vector[] = [];
  const noise: number[] = [];
  for (let i = 0; i < count; i++) {
    inputs.push(vector());
    noise.push(draw.normal());
  }
  return { weights, query, inputs, noise };
}

/** The labels `y = ⟨w, x⟩ + σξ`. */
export function labels(sequence: Sequence, std: number): number[] {
  return sequence.inputs.map((x, i) => dot(sequence.weights, x) + std * sequence.noise[i]);
}

/** A sequence in a form from which the Gram matrix at every σ is quick to get. */
export interface Summary {
  weights: Vector;
  count: number;
  dim: number;
  xx: Matrix; // Σ
  fit: Vector; // Σ w
  cross: Vector; // Xᵀξ
  square: number; // ‖ξ‖²
}

/** Sum a sequence up. */
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
  return { weights, count: inputs.length, dim, xx, fit, cross, square };
}

/** The Gram matrix at a noise level: `α = Σw + σXᵀξ`, `λ = wᵀΣw + 2σ wᵀXᵀξ + σ²‖ξ‖²`. */
export function statistics(summary: Summary, std: number): Statistics {
  const { weights, count, dim, xx, fit, cross, square } = summary;
  const size = dim + 1;
  const gram = new Float64Array(size * size);
  for (let i = 0; i < dim; i++) {
    for (let j = 0; j < dim; j++) gram[i * size + j] = xx[i * dim + j];
    gram[i * size + dim] = gram[dim * size + i] = fit[i] + std * cross[i];
  }
  gram[size * size - 1] = dot(weights, fit) + 2 * std * dot(weights, cross) + std ** 2 * square;
  return { gram, count, dim };
}
