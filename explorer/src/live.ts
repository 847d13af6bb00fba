/** Losses measured in the page: over noise levels, and with parts of the model switched off. */

import { bayesWeights } from "./bayes";
import type { Damping } from "./damping";
import { BASELINES, type Baseline } from "./styles";
import { eigen, halfSquare } from "./matrix";
import { finalWeights, OMEGAS, type Model, type Disabled } from "./models";
import { sampleNoise, secondMoment, type Noise } from "./noise";
import { random } from "./random";
import { PENALTIES, ridge, spectrum, type Spectrum, type Tuning } from "./ridge";
import { drawSequence, statistics, summarise } from "./sequence";
import type { Statistics } from "./statistics";

const SEED = 2024; // of all sequences that losses are measured on

/** A running mean with its standard error. */
export class Mean {
  numValues = 0;
  mean = 0;
  private squares = 0;

  add(value: number): void {
    this.numValues += 1;
    if (!Number.isFinite(value) || this.mean === Infinity) {
      this.mean = Infinity; // one sequence that overflows dominates the mean
      return;
    }
    const change = value - this.mean;
    this.mean += change / this.numValues;
    this.squares += change * (value - this.mean);
  }

  get error(): number {
    return Math.sqrt(this.squares / Math.max(this.numValues - 1, 1) / Math.max(this.numValues, 1));
  }
}

export interface Setting {
  model: Model;
  noise: Noise;
  tuning?: Tuning;
  numExamples: number; // n
  damping: Damping | null; // null: as printed
  disabled: Disabled;
  modelStatistics: (stats: Statistics) => Statistics;
}

export interface LiveProfile {
  noiseStds: number[];
  model: Mean[];
  baselines: Record<Baseline, Mean[]>;
  done: number;
}

/** Measure the loss at each noise level on the same sequences, one sequence after the other. */
export function* profile(setting: Setting, noiseStds: number[], total: number, into: LiveProfile): Generator<void, void> {
  const draw = random(SEED, "profile");
  for (let k = 0; k < total; k++) {
    const summary = summarise(drawSequence(draw, setting.numExamples, setting.model.dim));
    const axes = eigen(summary.xx, summary.dim); // Σ is the same at every noise level
    for (let index = 0; index < noiseStds.length; index++) {
      const stats = statistics(summary, noiseStds[index]);
      const context = spectrum(stats, axes);
      const oracle = ridge(context, noiseStds[index] ** 2);
      const weights = finalWeights(setting.model, setting.modelStatistics(stats), setting.damping, setting.disabled);
      into.model[index].add(halfSquare(weights, oracle));
      addBaselines(setting, context, oracle, index, into);
      if (index % 8 === 7) yield;
    }
    into.done = k + 1;
    yield;
  }
}

function addBaselines(setting: Setting, context: Spectrum, oracle: Float64Array, index: number, into: LiveProfile): void {
  const meanNoiseVar = secondMoment(setting.noise);
  for (const name of BASELINES) {
    const weights =
      name === "bayes"
        ? bayesWeights(context, setting.noise)
        : ridge(context, PENALTIES[name](context, meanNoiseVar, setting.tuning));
    into.baselines[name][index].add(halfSquare(weights, oracle));
  }
}

/** An empty profile. */
export function emptyProfile(noiseStds: number[]): LiveProfile {
  const means = () => noiseStds.map(() => new Mean());
  const baselines = Object.fromEntries(BASELINES.map((name) => [name, means()])) as Record<Baseline, Mean[]>;
  return { noiseStds, model: means(), baselines, done: 0 };
}

export interface Ablation {
  trained: number[]; // losses of the model as trained, by sequence
  ablated: number[]; // losses with the disabled ω at zero, by sequence
  single: Map<string, Mean>; // loss without one ω, by its name
  trainedMean: Mean; // loss of the model as trained, on the sequences of `single`
  finished: boolean;
}

/** An ablation before any sequence. */
export function emptyAblation(): Ablation {
  return { trained: [], ablated: [], single: new Map(), trainedMean: new Mean(), finished: false };
}

/** Measure losses on sequences of the training prior: without the disabled ω, then without each ω alone. */
export function* measureAblation(setting: Setting, total: number, each: number, into: Ablation): Generator<void, void> {
  const draw = random(SEED, "damage"); // the text chooses the random numbers
  const weigh = (stats: Statistics, disabled?: Disabled) => finalWeights(setting.model, stats, setting.damping, disabled);
  const drawn: { stats: Statistics; oracle: Float64Array }[] = [];
  for (let k = 0; k < total; k++) {
    const noiseStd = sampleNoise(setting.noise, draw);
    const stats = statistics(summarise(drawSequence(draw, setting.numExamples, setting.model.dim)), noiseStd);
    const sequence = { stats: setting.modelStatistics(stats), oracle: ridge(spectrum(stats), noiseStd ** 2) };
    drawn.push(sequence);
    into.trained.push(halfSquare(weigh(sequence.stats), sequence.oracle));
    into.ablated.push(halfSquare(weigh(sequence.stats, setting.disabled), sequence.oracle));
    yield;
  }
  for (let k = 0; k < each; k++) into.trainedMean.add(into.trained[k]);
  for (const name of usedOmegas(setting.model)) {
    const mean = new Mean();
    const alone = new Set([name]);
    for (let k = 0; k < each; k++) {
      mean.add(halfSquare(weigh(drawn[k].stats, alone), drawn[k].oracle));
      if (k % 8 === 7) yield;
    }
    into.single.set(name, mean);
  }
  into.finished = true;
  yield;
}

/** The ω that change the prediction: GD++ has no attention to labels, and of the last layer only labels are read. */
export function usedOmegas(model: Model): string[] {
  const names: string[] = [];
  for (let layer = 1; layer <= model.layers; layer++) {
    for (const name of OMEGAS) {
      if (model.family === "gd++" && name[1] === "y") continue;
      if (layer === model.layers && name[0] === "x") continue;
      names.push(`${layer}${name}`);
    }
  }
  return names;
}
