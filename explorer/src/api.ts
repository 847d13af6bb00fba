/** `window.lintra`: the page's numbers as plain functions, by which tests compare them with Python's. */

import { omegas } from "./anatomy";
import { modelOf, type Data } from "./data";
import type { LiveProfile } from "./live";
import { BASELINES, type Baseline } from "./looks";
import { layerWeights } from "./models";
import { parseNoise } from "./noise";
import { ridge, spectrum } from "./ridge";
import type { Statistics } from "./statistics";
import { baseline } from "./view";

/** Make the functions; `live` gives what is being measured. */
export function api(data: Data, live: () => LiveProfile) {
  return {
    names: () => Object.keys(data.models),
    baselines: () => [...BASELINES],
    /** Weights after every layer, for a Gram matrix given row after row. */
    layerWeights: (name: string, gram: number[], count: number, off: string[] = []) =>
      layerWeights(modelOf(data.models[name]), statistics(gram, count), new Set(off)).map((weights) => [...weights]),
    /** Weights of a baseline that is tuned for, or believes in, a noise prior. */
    baseline: (method: Baseline, noise: string, gram: number[], count: number) => [
      ...baseline(method, spectrum(statistics(gram, count)), parseNoise(noise), data.curves[noise]?.tuned),
    ],
    oracle: (std: number, gram: number[], count: number) => [...ridge(spectrum(statistics(gram, count)), std ** 2)],
    /** The profile that the page is measuring. */
    profile: () => {
      const { levels, done, model } = live();
      return { levels, done, loss: model.map(({ mean }) => mean), error: model.map(({ error }) => error) };
    },
    omegas: (name: string) => omegas(modelOf(data.models[name])),
  };
}

function statistics(gram: number[], count: number): Statistics {
  return { gram: Float64Array.from(gram), count, dim: Math.round(Math.sqrt(gram.length)) - 1 };
}

declare global {
  interface Window {
    lintra: ReturnType<typeof api>;
  }
}
