/** The controls: they show the state and report changes. */

import { escape } from "./chart";
import { nameOf, type Card, type Data } from "./data";
import type { Family } from "./models";
import { supports } from "./noise";
import { LIMITS, type State } from "./state";
import type { View } from "./view";

type Change = (changes: Partial<State>) => void;

/** The element with an id, which the page must have. */
export function element<Kind extends Element = HTMLElement>(id: string): Kind {
  const node = document.getElementById(id);
  if (!node) throw new Error(`The page has no element “${id}”.`);
  return node as unknown as Kind;
}

const input = (id: string) => element<HTMLInputElement>(id);

/** Listen to all controls. */
export function listenToControls(data: Data, current: () => State, change: Change): void {
  const noise = element<HTMLSelectElement>("noise");
  const noises = data.noises.filter((text) => Object.values(data.models).some((card) => card.noise === text));
  noise.innerHTML = noises.map((text) => `<option value="${escape(text)}">${escape(describeNoise(text))}</option>`).join("");
  element("controls").addEventListener("submit", (event) => event.preventDefault());
  const chooseModel = (changes: Partial<State>) => change(nearestModel(current(), changes, data));
  for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="family"]')) {
    radio.disabled = !Object.values(data.models).some((card) => card.family === radio.value);
    radio.addEventListener("change", () => chooseModel({ family: radio.value as Family }));
  }
  input("layers").addEventListener("input", () => chooseModel({ layers: input("layers").valueAsNumber }));
  noise.addEventListener("change", () => chooseModel({ noise: noise.value }));
  input("heads").addEventListener("change", () => chooseModel({ heads: input("heads").checked ? 2 : 1 }));
  input("sigma").addEventListener("input", () => change({ noiseStd: input("sigma").valueAsNumber }));
  input("examples").addEventListener("input", () => change({ numExamples: input("examples").valueAsNumber }));
  input("rescaled").addEventListener("change", () => change({ rescaled: input("rescaled").checked }));
  input("damped").addEventListener("change", () => change({ damped: input("damped").checked }));
  input("after").addEventListener("input", () => change({ layer: input("after").valueAsNumber }));
  input("seed").addEventListener("change", () => {
    const seed = Math.round(input("seed").valueAsNumber);
    change({ seed: seed >= 0 && seed <= LIMITS.seed ? seed : current().seed });
  });
  element("fresh").addEventListener("click", () => change({ seed: (current().seed + 1) % (LIMITS.seed + 1) }));
  for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="shade"]')) {
    radio.addEventListener("change", () => change({ shade: radio.value as State["shade"] }));
  }
}

/** The model of the zoo that is nearest to the present one with some choices changed. */
function nearestModel(present: State, changes: Partial<State>, data: Data): Partial<State> {
  const target = { ...present, ...changes };
  const distance = (card: Card) =>
    (card.family === target.family ? 0 : "family" in changes ? 1e6 : 1e4) +
    (card.noise === target.noise ? 0 : "noise" in changes ? 1e6 : 1e4) +
    Math.abs(card.layers - target.layers) * ("layers" in changes ? 1e3 : 10) +
    Math.abs(card.heads - target.heads);
  const { family, noise, layers, heads } = Object.values(data.models).reduce((a, b) => (distance(b) < distance(a) ? b : a));
  return { family, noise, layers, heads, layer: layers, disabled: [] };
}

function deepest(data: Data, family: string, noise: string): number {
  const depths = Object.values(data.models)
    .filter((card) => card.family === family && card.noise === noise && card.heads === 1)
    .map((card) => card.layers);
  return Math.max(...depths);
}

/** Show the state. */
export function showControls(view: View, data: Data, fileName: string | null): void {
  const { state, subject } = view;
  check("family", fileName === null ? state.family : subject.model.family);
  check("shade", state.shade);
  input("layers").max = String(deepest(data, state.family, state.noise));
  show("layers", state.layers, String(fileName === null ? state.layers : subject.model.layers));
  element<HTMLSelectElement>("noise").value = state.noise;
  input("heads").checked = state.heads === 2;
  input("heads").disabled = !data.models[nameOf(state.family, state.layers, state.noise, 2)];
  show("sigma", state.noiseStd, state.noiseStd.toFixed(2));
  show("examples", state.numExamples, String(state.numExamples));
  input("rescaled").checked = state.rescaled;
  showDamped(view);
  if (document.activeElement !== input("seed")) input("seed").value = String(state.seed);
  input("after").max = String(subject.model.layers);
  show("after", state.layer, `${state.layer} of ${subject.model.layers}`);
  element("sigma-hint").textContent = supports(subject.noise, state.noiseStd)
    ? "training had such noise"
    : "training never had such noise";
  for (const equation of document.querySelectorAll<HTMLElement>("[data-family]")) {
    const isShown = equation.dataset.family === subject.model.family;
    equation.classList.toggle("chosen", isShown);
    equation.ariaHidden = String(!isShown);
  }
  element("opened").hidden = fileName === null;
  element("opened-name").textContent = fileName === null ? "" : `Showing ${fileName}.`;
}

/** The switch of damping; a model without thresholds cannot be damped. */
function showDamped({ damping, subject }: View): void {
  const isMissing = subject.model.damping === null;
  input("damped").checked = damping !== null;
  input("damped").disabled = isMissing;
  element("damped-label").title = isMissing ? "This model has no damping thresholds, so it runs as printed." : "";
}

function check(name: string, value: string): void {
  for (const radio of document.querySelectorAll<HTMLInputElement>(`input[name="${name}"]`)) {
    radio.checked = radio.value === value;
  }
}

function show(id: string, value: number, text: string): void {
  input(id).value = String(value);
  element(`${id}-value`).textContent = text;
  input(id).setAttribute("aria-valuetext", text);
}

/** A prior with a short description. */
function describeNoise(noise: string): string {
  const [kind, inside] = [noise.slice(0, noise.indexOf("(")), noise.slice(noise.indexOf("(") + 1, -1)];
  if (noise === "uniform(0,0)") return `${noise}: no noise`;
  if (kind === "uniform") return `${noise}: σ from ${inside.replace(",", " to ")}`;
  return `${noise}: σ one of ${inside.replaceAll(",", ", ")}`;
}
