/** The Bayes predictor for unknown σ: the posterior mean of w, by the same quadrature as in Python. */

import { gaussLegendre } from "./legendre";
import type { Vector } from "./matrix";
import type { Noise } from "./noise";
import { back, type Spectrum } from "./ridge";

/** Noise variances and their posterior probabilities. */
export interface Posterior {
  variances: Vector;
  weights: Vector;
}

/** The posterior mean of w. */
export function bayesWeights(of: Spectrum, noise: Noise): Vector {
  const { variances, weights } = posterior(of, noise);
  const shrunk = of.labels.map((label, k) => {
    let sum = 0;
    for (let j = 0; j < weights.length; j++) sum += weights[j] / (of.values[k] + variances[j]);
    return label * sum;
  });
  return back(of, shrunk);
}

/** The posterior mean of σ: the noise level that the context speaks for. */
export function posteriorStd(of: Spectrum, noise: Noise): number {
  const { variances, weights } = posterior(of, noise);
  return weights.reduce((sum, weight, j) => sum + weight * Math.sqrt(variances[j]), 0);
}

function posterior(of: Spectrum, noise: Noise): Posterior {
  const lowest = Math.max((Number.EPSILON * of.labelSquare) / of.count, 2 ** -1022); // stands for σ² = 0
  if (noise.kind === "atoms") {
    const variances = Float64Array.from(noise.values, (std) => Math.max(std ** 2, lowest));
    return { variances, weights: softmax(variances.map((v, j) => logLikelihood(of, v) + Math.log(noise.weights[j]))) };
  }
  const [low, high] = [noise.low, noise.high].map((std) => Math.log(Math.max(std, Math.sqrt(lowest))));
  const density = (logStd: number) => logLikelihood(of, Math.exp(2 * logStd)) + logStd; // dσ = σ d log σ
  const { nodes, weights } = adaptiveQuadrature(density, low, high);
  return { variances: nodes.map((logStd) => Math.exp(2 * logStd)), weights };
}

/** `log p(y | X, σ²)` up to a constant, with w integrated out. */
function logLikelihood(of: Spectrum, variance: number): number {
  let sum = 0;
  let seen = 0;
  for (let k = 0; k < of.values.length; k++) {
    const value = of.values[k];
    if (value <= 0) continue;
    seen += 1;
    const total = value + variance;
    sum += Math.log(total) + of.labels[k] ** 2 / value / total;
  }
  const freedom = of.count - seen;
  const unexplained = freedom > 0 ? of.residual : 0;
  return -0.5 * (sum + freedom * Math.log(variance) + unexplained / variance);
}

const RULE = gaussLegendre(64);
const GRID = 16; // points of the searching grid
const FILLED = 6; // points of it on which the posterior must lie
const ROUNDS = 8;
const NEGLIGIBLE = 30; // log-density below the largest at which the posterior is given up

/** Nodes and normalised weights for a density with one hump on [low, high], however narrow. */
function adaptiveQuadrature(
  logDensity: (at: number) => number,
  low: number,
  high: number,
): { nodes: Vector; weights: Vector } {
  for (let round = 0; round < ROUNDS; round++) {
    const points = Float64Array.from({ length: GRID }, (_, i) => low + ((high - low) * i) / (GRID - 1));
    const values = points.map(logDensity);
    const limit = Math.max(...values) - NEGLIGIBLE;
    const kept = Array.from(values, (value) => value > limit);
    const [first, last] = [kept.indexOf(true), kept.lastIndexOf(true)];
    low = points[Math.max(first - 1, 0)];
    high = points[Math.min((last < 0 ? GRID - 1 : last) + 1, GRID - 1)];
    if (kept.filter(Boolean).length >= FILLED) break;
  }
  const nodes = RULE.nodes.map((node) => low + ((high - low) * (node + 1)) / 2);
  return { nodes, weights: softmax(nodes.map((node, j) => logDensity(node) + Math.log(RULE.weights[j]))) };
}

function softmax(logs: Vector): Vector {
  const largest = Math.max(...logs);
  const weights = logs.map((value) => Math.exp(value - largest));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}
