/** What one choice of model and sequence gives: everything that the views draw, computed once. */

import { bayesWeights, posteriorStd } from "./bayes";
import { modelOf, type Card, type Data, type PriorCurves, nameOf } from "./data";
import { BASELINES, type Baseline } from "./looks";
import { dot, type Vector } from "./matrix";
import { layerWeights, type Model } from "./models";
import { parseNoise, secondMoment, type Noise } from "./noise";
import { random } from "./random";
import { PENALTIES, ridge, spectrum, type Spectrum, type Tuning } from "./ridge";
import { drawSequence, labels, statistics, summarise, type Sequence } from "./sequence";
import type { State } from "./state";
import type { Statistics } from "./statistics";

/** A model that is looked at: of the zoo, or from the reader's own file. */
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
  path: Vector[]; // implicit weights, from zero over every layer
  oracle: Vector;
  baselines: Record<Baseline, Vector>;
  believed: number; // posterior mean of σ
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
  const sequence = drawSequence(random(state.seed, "sequence"), state.count, model.dim);
  const stats = statistics(summarise(sequence), state.std);
  const own = spectrum(stats);
  const off = new Set(state.off);
  const walked = layerWeights(model, shownTo(model, stats, state.rescaled), off);
  return {
    state,
    subject,
    sequence,
    labels: labels(sequence, state.std),
    spectrum: own,
    path: [new Float64Array(model.dim), ...walked],
    oracle: ridge(own, state.std ** 2),
    baselines: baselineWeights(own, subject.noise, subject.curves?.tuned),
    believed: posteriorStd(own, subject.noise),
    truth: dot(sequence.weights, sequence.query),
  };
}

/** The Gram matrix that a model sees: as it is, or rescaled to the training n. */
export function shownTo(model: Model, stats: Statistics, rescaled: boolean): Statistics {
  if (!rescaled) return stats;
  return { ...stats, gram: stats.gram.map((value) => (value * model.context) / stats.count) };
}

/** The weights of every baseline. */
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
