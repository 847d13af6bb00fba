/** The Bayes predictor for unknown σ: the posterior mean of w, by the same quadrature as in Python. */

import { gaussLegendre } from "./legendre";
import type { Vector } from "./matrix";
import type { Noise } from "./noise";
import { toInputs, type Spectrum } from "./ridge";

/** Noise variances and their posterior probabilities. */
export interface Posterior {
  noiseVars: Vector;
  probabilities: Vector;
}

/** The posterior mean of w. */
export function bayesWeights(of: Spectrum, noise: Noise): Vector {
  const { noiseVars, probabilities } = posterior(of, noise);
  const shrunk = of.alpha.map((alpha, k) => {
    let sum = 0;
    for (let j = 0; j < probabilities.length; j++) sum += probabilities[j] / (of.values[k] + noiseVars[j]);
    return alpha * sum;
  });
  return toInputs(of, shrunk);
}

/** The posterior mean of σ. */
export function posteriorNoiseStd(of: Spectrum, noise: Noise): number {
  const { noiseVars, probabilities } = posterior(of, noise);
  return probabilities.reduce((sum, probability, j) => sum + probability * Math.sqrt(noiseVars[j]), 0);
}

function posterior(of: Spectrum, noise: Noise): Posterior {
  const minNoiseVar = Math.max((Number.EPSILON * of.labelSquare) / of.numExamples, 2 ** -1022); // stands for σ² = 0
  if (noise.kind === "atoms") {
    const noiseVars = Float64Array.from(noise.values, (noiseStd) => Math.max(noiseStd ** 2, minNoiseVar));
    const logs = noiseVars.map((v, j) => logLikelihood(of, v) + Math.log(noise.probabilities[j]));
    return { noiseVars, probabilities: softmax(logs) };
  }
  const [low, high] = [noise.low, noise.high].map((noiseStd) => Math.log(Math.max(noiseStd, Math.sqrt(minNoiseVar))));
  const density = (logNoiseStd: number) => logLikelihood(of, Math.exp(2 * logNoiseStd)) + logNoiseStd; // dσ = σ d log σ
  const { nodes, probabilities } = adaptiveQuadrature(density, low, high);
  return { noiseVars: nodes.map((logNoiseStd) => Math.exp(2 * logNoiseStd)), probabilities };
}

/** `log p(y | X, σ²)` up to a constant, with w integrated out. */
function logLikelihood(of: Spectrum, noiseVar: number): number {
  let sum = 0;
  let seen = 0;
  for (let k = 0; k < of.values.length; k++) {
    const value = of.values[k];
    if (value <= 0) continue;
    seen += 1;
    const total = value + noiseVar;
    sum += Math.log(total) + of.alpha[k] ** 2 / value / total;
  }
  const freedom = of.numExamples - seen;
  const unexplained = freedom > 0 ? of.residual : 0;
  return -0.5 * (sum + freedom * Math.log(noiseVar) + unexplained / noiseVar);
}

const RULE = gaussLegendre(64);
const GRID = 16; // points of the grid
const MIN_INSIDE = 6; // points of it at which the density is not negligible
const MAX_ROUNDS = 8;
const NEGLIGIBLE = 30; // log-density below the largest that is treated as zero

/** Nodes and their probabilities for a density with one mode on [low, high], however narrow. */
function adaptiveQuadrature(
  logDensity: (at: number) => number,
  low: number,
  high: number,
): { nodes: Vector; probabilities: Vector } {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const points = Float64Array.from({ length: GRID }, (_, i) => low + ((high - low) * i) / (GRID - 1));
    const values = points.map(logDensity);
    const limit = Math.max(...values) - NEGLIGIBLE;
    const inside = Array.from(values, (value) => value > limit);
    const [first, last] = [inside.indexOf(true), inside.lastIndexOf(true)];
    low = points[Math.max(first - 1, 0)];
    high = points[Math.min((last < 0 ? GRID - 1 : last) + 1, GRID - 1)];
    if (inside.filter(Boolean).length >= MIN_INSIDE) break;
  }
  const nodes = RULE.nodes.map((node) => low + ((high - low) * (node + 1)) / 2);
  const logs = nodes.map((node, j) => logDensity(node) + Math.log(RULE.nodeWeights[j]));
  return { nodes, probabilities: softmax(logs) };
}

function softmax(logs: Vector): Vector {
  const largest = Math.max(...logs);
  const exponentials = logs.map((value) => Math.exp(value - largest));
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => value / total);
}
