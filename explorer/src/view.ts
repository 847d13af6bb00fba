/** Everything that the views draw for one model and one sequence, computed once. */

import { bayesWeights, posteriorNoiseStd } from "./bayes";
import { modelOf, type Card, type Data, type PriorCurves, nameOf } from "./data";
import type { Damping, Divisors } from "./damping";
import { BASELINES, type Baseline } from "./styles";
import { dot, type Vector } from "./matrix";
import { runLayers, type Model } from "./models";
import { parseNoise, secondMoment, type Noise } from "./noise";
import { random } from "./random";
import { PENALTIES, ridge, spectrum, type Spectrum, type Tuning } from "./ridge";
import { drawSequence, labels, statistics, summarise, type Sequence } from "./sequence";
import type { State } from "./state";
import type { Statistics } from "./statistics";

/** The model that is shown: of the zoo, or of a file of the reader. */
export interface Subject {
  name: string;
  model: Model;
  noiseText: string;
  noise: Noise;
  card: Card | null;
  curves: PriorCurves | null;
}

export interface View {
  state: State;
  subject: Subject;
  sequence: Sequence;
  labels: number[];
  spectrum: Spectrum;
  damping: Damping | null; // null: the model is as printed
  divisors: Divisors;
  seen: Statistics; // what the model reads
  path: Vector[]; // implicit weights: zero, then after each layer
  oracle: Vector;
  baselines: Record<Baseline, Vector>;
  posteriorNoiseStd: number; // posterior mean of σ
  truth: number; // of the query
}

/** The model of the zoo that a state names. */
export function zooSubject(state: State, data: Data): Subject {
  const name = nameOf(state.family, state.layers, state.noise, state.heads);
  const card = data.models[name];
  const curves = data.curves[card.noise] ?? null;
  return { name, model: modelOf(card), noiseText: card.noise, noise: parseNoise(card.noise), card, curves };
}

/** Compute everything for one sequence. */
export function computeView(state: State, subject: Subject): View {
  const { model } = subject;
  const sequence = drawSequence(random(state.seed, "sequence"), state.numExamples, model.dim);
  const stats = statistics(summarise(sequence), state.noiseStd);
  const context = spectrum(stats);
  const disabled = new Set(state.disabled);
  const damping = state.damped ? model.damping : null;
  const seen = modelStatistics(model, stats, state.rescaled);
  const { weights, divisors } = runLayers(model, seen, damping, disabled);
  return {
    state,
    subject,
    sequence,
    labels: labels(sequence, state.noiseStd),
    spectrum: context,
    damping,
    divisors,
    seen,
    path: [new Float64Array(model.dim), ...weights],
    oracle: ridge(context, state.noiseStd ** 2),
    baselines: baselineWeights(context, subject.noise, subject.curves?.tuned),
    posteriorNoiseStd: posteriorNoiseStd(context, subject.noise),
    truth: dot(sequence.weights, sequence.query),
  };
}

/** The statistics that a model reads: unchanged, or rescaled to the training n. */
export function modelStatistics(model: Model, stats: Statistics, rescaled: boolean): Statistics {
  if (!rescaled) return stats;
  return { ...stats, gram: stats.gram.map((value) => (value * model.context) / stats.numExamples) };
}

/** The weights of all baselines. */
export function baselineWeights(of: Spectrum, noise: Noise, tuning?: Tuning): Record<Baseline, Vector> {
  const weights = {} as Record<Baseline, Vector>;
  for (const name of BASELINES) weights[name] = baseline(name, of, noise, tuning);
  return weights;
}

/** The weights of one baseline. */
export function baseline(name: Baseline, of: Spectrum, noise: Noise, tuning?: Tuning): Vector {
  if (name === "bayes") return bayesWeights(of, noise);
  return ridge(of, PENALTIES[name](of, secondMoment(noise), tuning));
}
