/** `window.lintra`: the page's computations as functions, which tests compare with Python's. */

import { omegas } from "./anatomy";
import { modelOf, type Data } from "./data";
import type { LiveProfile } from "./live";
import { BASELINES, type Baseline } from "./styles";
import { runLayers } from "./models";
import { parseNoise } from "./noise";
import { ridge, spectrum } from "./ridge";
import type { Statistics } from "./statistics";
import { baseline, type View } from "./view";

/** Make the functions; `live` returns the profile that is being measured, and `view` the view that is drawn. */
export function api(data: Data, live: () => LiveProfile, view: () => View) {
  return {
    names: () => Object.keys(data.models),
    baselines: () => [...BASELINES],
    /** Weights after each layer and divisors of the damping, for a Gram matrix given row after row. */
    run: (name: string, gram: number[], numExamples: number, damped: boolean, disabled: string[] = []) => {
      const model = modelOf(data.models[name]);
      const run = runLayers(model, statistics(gram, numExamples), damped ? model.damping : null, new Set(disabled));
      return { weights: run.weights.map((weights) => [...weights]), divisors: run.divisors };
    },
    /** The Gram matrix that the model on the page reads, its weights after each layer, and divisors. */
    shown: () => {
      const { seen, path, divisors } = view();
      return { gram: [...seen.gram], weights: path.slice(1).map((weights) => [...weights]), divisors };
    },
    /** Weights of a baseline for a noise prior. */
    baseline: (method: Baseline, noise: string, gram: number[], numExamples: number) => [
      ...baseline(method, spectrum(statistics(gram, numExamples)), parseNoise(noise), data.curves[noise]?.tuned),
    ],
    oracle: (noiseStd: number, gram: number[], numExamples: number) => [...ridge(spectrum(statistics(gram, numExamples)), noiseStd ** 2)],
    /** The profile that the page is measuring. */
    profile: () => {
      const { noiseStds, done, model } = live();
      return { levels: noiseStds, done, loss: model.map(({ mean }) => mean), error: model.map(({ error }) => error) };
    },
    omegas: (name: string) => omegas(modelOf(data.models[name])),
  };
}

function statistics(gram: number[], numExamples: number): Statistics {
  return { gram: Float64Array.from(gram), numExamples, dim: Math.round(Math.sqrt(gram.length)) - 1 };
}

declare global {
  interface Window {
    lintra: ReturnType<typeof api>;
  }
}
