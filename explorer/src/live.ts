/** Losses measured in the page: over noise levels, and with parts of the model switched off. */

import { bayesWeights } from "./bayes";
import { BASELINES, type Baseline } from "./looks";
import { eigen, halfSquare } from "./matrix";
import { finalWeights, FLOWS, type Model, type Off } from "./models";
import { sampleNoise, secondMoment, type Noise } from "./noise";
import { random } from "./random";
import { PENALTIES, ridge, spectrum, type Spectrum, type Tuning } from "./ridge";
import { drawSequence, statistics, summarise } from "./sequence";
import type { Statistics } from "./statistics";

const SEED = 2024; // of all sequences that losses are measured on

/** A running mean with its standard error. */
export class Mean {
  count = 0;
  mean = 0;
  private squares = 0;

  add(value: number): void {
    this.count += 1;
    if (!Number.isFinite(value) || this.mean === Infinity) {
      this.mean = Infinity; // one sequence that overflows owns the mean
      return;
    }
    const change = value - this.mean;
    this.mean += change / this.count;
    this.squares += change * (value - this.mean);
  }

  get error(): number {
    return Math.sqrt(this.squares / Math.max(this.count - 1, 1) / Math.max(this.count, 1));
  }
}

export interface Setting {
  model: Model;
  noise: Noise;
  tuning?: Tuning;
  count: number; // n
  off: Off;
  shownTo: (stats: Statistics) => Statistics;
}

export interface LiveProfile {
  levels: number[];
  model: Mean[];
  baselines: Record<Baseline, Mean[]>;
  done: number;
}

/** Measure the loss at every noise level on the same sequences, one more sequence at every step. */
export function* profile(setting: Setting, levels: number[], total: number, into: LiveProfile): Generator<void, void> {
  const draw = random(SEED, "profile");
  for (let k = 0; k < total; k++) {
    const summary = summarise(drawSequence(draw, setting.count, setting.model.dim));
    const axes = eigen(summary.xx, summary.dim); // Σ is the same at every noise level
    for (let level = 0; level < levels.length; level++) {
      const stats = statistics(summary, levels[level]);
      const own = spectrum(stats, axes);
      const oracle = ridge(own, levels[level] ** 2);
      into.model[level].add(halfSquare(finalWeights(setting.model, setting.shownTo(stats), setting.off), oracle));
      addBaselines(setting, own, oracle, level, into);
      if (level % 8 === 7) yield;
    }
    into.done = k + 1;
    yield;
  }
}

function addBaselines(setting: Setting, own: Spectrum, oracle: Float64Array, level: number, into: LiveProfile): void {
  const moment = secondMoment(setting.noise);
  for (const name of BASELINES) {
    const weights =
      name === "bayes"
        ? bayesWeights(own, setting.noise)
        : ridge(own, PENALTIES[name](own, moment, setting.tuning));
    into.baselines[name][level].add(halfSquare(weights, oracle));
  }
}

/** An empty profile. */
export function emptyProfile(levels: number[]): LiveProfile {
  const means = () => levels.map(() => new Mean());
  const baselines = Object.fromEntries(BASELINES.map((name) => [name, means()])) as Record<Baseline, Mean[]>;
  return { levels, model: means(), baselines, done: 0 };
}

export interface Damage {
  whole: number[]; // losses of the model as trained, by sequence
  now: number[]; // and with what is switched off
  single: Map<string, Mean>; // loss without one flow alone
  wholeMean: Mean; // on the sequences of `single`
  finished: boolean;
}

/** An empty account of damage. */
export function emptyDamage(): Damage {
  return { whole: [], now: [], single: new Map(), wholeMean: new Mean(), finished: false };
}

/** Measure what breaks on sequences of the training prior: with the chosen flows off, then with each one alone. */
export function* damage(setting: Setting, total: number, each: number, into: Damage): Generator<void, void> {
  const draw = random(SEED, "damage");
  const drawn: { stats: Statistics; oracle: Float64Array }[] = [];
  for (let k = 0; k < total; k++) {
    const std = sampleNoise(setting.noise, draw);
    const stats = statistics(summarise(drawSequence(draw, setting.count, setting.model.dim)), std);
    const sequence = { stats: setting.shownTo(stats), oracle: ridge(spectrum(stats), std ** 2) };
    drawn.push(sequence);
    into.whole.push(halfSquare(finalWeights(setting.model, sequence.stats), sequence.oracle));
    into.now.push(halfSquare(finalWeights(setting.model, sequence.stats, setting.off), sequence.oracle));
    yield;
  }
  for (let k = 0; k < each; k++) into.wholeMean.add(into.whole[k]);
  for (const flow of flowsOf(setting.model)) {
    const mean = new Mean();
    const alone = new Set([flow]);
    for (let k = 0; k < each; k++) {
      mean.add(halfSquare(finalWeights(setting.model, drawn[k].stats, alone), drawn[k].oracle));
      if (k % 8 === 7) yield;
    }
    into.single.set(flow, mean);
  }
  into.finished = true;
  yield;
}

/** The flows that do something: GD++ has no attention to labels, and of a last layer only labels are read. */
export function flowsOf(model: Model): string[] {
  const flows: string[] = [];
  for (let layer = 1; layer <= model.layers; layer++) {
    for (const flow of FLOWS) {
      if (model.family === "gd++" && flow[1] === "y") continue;
      if (layer === model.layers && flow[0] === "x") continue;
      flows.push(`${layer}${flow}`);
    }
  }
  return flows;
}
