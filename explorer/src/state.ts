/** The choices of the reader, and their form in the address, by which a view can be shared. */

import { nameOf, type Data } from "./data";
import { OMEGAS, type Family } from "./models";

export type Shade = "paper" | "lintra" | "floor";

export interface State {
  family: Family;
  layers: number;
  noise: string;
  heads: number;
  noiseStd: number; // σ
  numExamples: number; // n
  seed: number;
  layer: number; // the layer that is shown
  rescaled: boolean;
  damped: boolean; // for models that have thresholds
  disabled: string[]; // the ω that are switched off, such as 2xy
  shade: Shade;
}

export const LIMITS = { noiseStd: 10, numExamples: 100, seed: 2 ** 32 - 1 };

export const START: State = {
  family: "full",
  layers: 7,
  noise: "uniform(0,5)",
  heads: 1,
  noiseStd: 2.5,
  numExamples: 20,
  seed: 6,
  layer: 7,
  rescaled: false,
  damped: true,
  disabled: [],
  shade: "floor",
};

/** The state as the part of an address behind #. */
export function toAddress(state: State): string {
  const entries: [string, string][] = [
    ["model", nameOf(state.family, state.layers, state.noise, state.heads)],
    ["sigma", String(state.noiseStd)],
    ["n", String(state.numExamples)],
    ["seed", String(state.seed)],
    ["after", String(state.layer)],
    ["table", state.shade],
  ];
  if (state.rescaled) entries.push(["rescaled", "1"]);
  if (!state.damped) entries.push(["damped", "0"]);
  if (state.disabled.length) entries.push(["off", state.disabled.join(",")]);
  return entries.map(([name, value]) => `${name}=${value.replaceAll("+", "%2B")}`).join("&");
}

/** Read an address; whatever cannot be read stays as it was at the start. */
export function fromAddress(hash: string, data: Data): State {
  const parameters = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B")); // a plus is not a space
  const state = { ...START };
  const fallback = nameOf(START.family, START.layers, START.noise, START.heads);
  const name = [parameters.get("model") ?? "", fallback].find((name) => Object.hasOwn(data.models, name));
  const card = name === undefined ? Object.values(data.models)[0] : data.models[name];
  if (card) {
    Object.assign(state, { family: card.family, layers: card.layers, noise: card.noise, heads: card.heads });
  }
  state.noiseStd = readNumber(parameters.get("sigma"), 0, LIMITS.noiseStd, START.noiseStd);
  state.numExamples = Math.round(readNumber(parameters.get("n"), 1, LIMITS.numExamples, START.numExamples));
  state.seed = Math.round(readNumber(parameters.get("seed"), 0, LIMITS.seed, START.seed));
  state.layer = Math.round(readNumber(parameters.get("after"), 0, state.layers, state.layers));
  state.rescaled = parameters.get("rescaled") === "1";
  state.damped = parameters.get("damped") !== "0";
  const shade = parameters.get("table");
  if (shade === "paper" || shade === "lintra" || shade === "floor") state.shade = shade;
  state.disabled = (parameters.get("off") ?? "").split(",").filter((name) => isOmega(name, state.layers));
  return state;
}

function readNumber(text: string | null, low: number, high: number, otherwise: number): number {
  const value = text === null || text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) ? Math.min(Math.max(value, low), high) : otherwise;
}

function isOmega(text: string, layers: number): boolean {
  const number = Number.parseInt(text, 10);
  return number >= 1 && number <= layers && OMEGAS.some((name) => text === `${number}${name}`);
}
