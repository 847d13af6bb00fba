/** What a reader has chosen, and how it stands in the address so that a view can be shared. */

import { nameOf, type Data } from "./data";
import { FLOWS, type Family } from "./models";

export type Shade = "paper" | "lintra" | "floor";

export interface State {
  family: Family;
  layers: number;
  noise: string;
  heads: number;
  std: number; // σ
  count: number; // n
  seed: number;
  after: number; // the layer that is looked at
  rescaled: boolean;
  off: string[]; // flows that are switched off, such as 2xy
  shade: Shade;
}

export const LIMITS = { std: 10, count: 100, seed: 2 ** 32 - 1 };

export const START: State = {
  family: "full",
  layers: 7,
  noise: "uniform(0,5)",
  heads: 1,
  std: 2.5,
  count: 20,
  seed: 6,
  after: 7,
  rescaled: false,
  off: [],
  shade: "floor",
};

/** The state as the part of an address behind #. */
export function toAddress(state: State): string {
  const entries: [string, string][] = [
    ["model", nameOf(state.family, state.layers, state.noise, state.heads)],
    ["sigma", String(state.std)],
    ["n", String(state.count)],
    ["seed", String(state.seed)],
    ["after", String(state.after)],
    ["table", state.shade],
  ];
  if (state.rescaled) entries.push(["rescaled", "1"]);
  if (state.off.length) entries.push(["off", state.off.join(",")]);
  return entries.map(([name, value]) => `${name}=${value.replaceAll("+", "%2B")}`).join("&");
}

/** Read an address; whatever cannot be read stays as it was at the start. */
export function fromAddress(hash: string, data: Data): State {
  const found = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B")); // GD++ is no GD with spaces
  const state = { ...START };
  const usual = nameOf(START.family, START.layers, START.noise, START.heads);
  const wanted = [found.get("model") ?? "", usual].find((name) => Object.hasOwn(data.models, name));
  const card = wanted === undefined ? Object.values(data.models)[0] : data.models[wanted];
  if (card) {
    Object.assign(state, { family: card.family, layers: card.layers, noise: card.noise, heads: card.heads });
  }
  state.std = readNumber(found.get("sigma"), 0, LIMITS.std, START.std);
  state.count = Math.round(readNumber(found.get("n"), 1, LIMITS.count, START.count));
  state.seed = Math.round(readNumber(found.get("seed"), 0, LIMITS.seed, START.seed));
  state.after = Math.round(readNumber(found.get("after"), 0, state.layers, state.layers));
  state.rescaled = found.get("rescaled") === "1";
  const shade = found.get("table");
  if (shade === "paper" || shade === "lintra" || shade === "floor") state.shade = shade;
  state.off = (found.get("off") ?? "").split(",").filter((flow) => isFlow(flow, state.layers));
  return state;
}

function readNumber(text: string | null, low: number, high: number, otherwise: number): number {
  const value = text === null || text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) ? Math.min(Math.max(value, low), high) : otherwise;
}

function isFlow(text: string, layers: number): boolean {
  const layer = Number.parseInt(text, 10);
  return layer >= 1 && layer <= layers && FLOWS.some((flow) => text === `${layer}${flow}`);
}
