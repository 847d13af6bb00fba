/** The controls: they show the state, and tell what a reader changes. */

import { escape } from "./chart";
import { nameOf, type Card, type Data } from "./data";
import type { Family } from "./models";
import { covers } from "./noise";
import { LIMITS, type State } from "./state";
import type { View } from "./view";

type Change = (change: Partial<State>) => void;

/** The element of an id that the page is known to have. */
export function element<Kind extends Element = HTMLElement>(id: string): Kind {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element “${id}”.`);
  return found as unknown as Kind;
}

const input = (id: string) => element<HTMLInputElement>(id);

/** Listen to every control. */
export function listenToControls(data: Data, current: () => State, change: Change): void {
  const noise = element<HTMLSelectElement>("noise");
  const there = data.noises.filter((text) => Object.values(data.models).some((card) => card.noise === text));
  noise.innerHTML = there.map((text) => `<option value="${escape(text)}">${escape(inWords(text))}</option>`).join("");
  element("controls").addEventListener("submit", (event) => event.preventDefault());
  const pick = (wanted: Partial<State>) => change(nearestModel(current(), wanted, data));
  for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="family"]')) {
    radio.disabled = !Object.values(data.models).some((card) => card.family === radio.value);
    radio.addEventListener("change", () => pick({ family: radio.value as Family }));
  }
  input("layers").addEventListener("input", () => pick({ layers: input("layers").valueAsNumber }));
  noise.addEventListener("change", () => pick({ noise: noise.value }));
  input("heads").addEventListener("change", () => pick({ heads: input("heads").checked ? 2 : 1 }));
  input("sigma").addEventListener("input", () => change({ std: input("sigma").valueAsNumber }));
  input("count").addEventListener("input", () => change({ count: input("count").valueAsNumber }));
  input("rescaled").addEventListener("change", () => change({ rescaled: input("rescaled").checked }));
  input("after").addEventListener("input", () => change({ after: input("after").valueAsNumber }));
  input("seed").addEventListener("change", () => {
    const seed = Math.round(input("seed").valueAsNumber);
    change({ seed: seed >= 0 && seed <= LIMITS.seed ? seed : current().seed });
  });
  element("fresh").addEventListener("click", () => change({ seed: (current().seed + 1) % (LIMITS.seed + 1) }));
  for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="shade"]')) {
    radio.addEventListener("change", () => change({ shade: radio.value as State["shade"] }));
  }
}

/** The model of the zoo that is nearest to the present one with what is wanted changed. */
function nearestModel(present: State, wanted: Partial<State>, data: Data): Partial<State> {
  const aim = { ...present, ...wanted };
  const far = (card: Card) =>
    (card.family === aim.family ? 0 : "family" in wanted ? 1e6 : 1e4) +
    (card.noise === aim.noise ? 0 : "noise" in wanted ? 1e6 : 1e4) +
    Math.abs(card.layers - aim.layers) * ("layers" in wanted ? 1e3 : 10) +
    Math.abs(card.heads - aim.heads);
  const { family, noise, layers, heads } = Object.values(data.models).reduce((a, b) => (far(b) < far(a) ? b : a));
  return { family, noise, layers, heads, after: layers, off: [] };
}

function deepest(data: Data, family: string, noise: string): number {
  const depths = Object.values(data.models)
    .filter((card) => card.family === family && card.noise === noise && card.heads === 1)
    .map((card) => card.layers);
  return Math.max(...depths);
}

/** Show the state. */
export function showControls(view: View, data: Data, own: string | null): void {
  const { state, subject } = view;
  check("family", own === null ? state.family : subject.model.family);
  check("shade", state.shade);
  input("layers").max = String(deepest(data, state.family, state.noise));
  show("layers", state.layers, String(own === null ? state.layers : subject.model.layers));
  element<HTMLSelectElement>("noise").value = state.noise;
  input("heads").checked = state.heads === 2;
  input("heads").disabled = !data.models[nameOf(state.family, state.layers, state.noise, 2)];
  show("sigma", state.std, state.std.toFixed(2));
  show("count", state.count, String(state.count));
  input("rescaled").checked = state.rescaled;
  if (document.activeElement !== input("seed")) input("seed").value = String(state.seed);
  input("after").max = String(subject.model.layers);
  show("after", state.after, `${state.after} of ${subject.model.layers}`);
  element("sigma-hint").textContent = covers(subject.noise, state.std)
    ? "training had such noise"
    : "training never had such noise";
  for (const equation of document.querySelectorAll<HTMLElement>("[data-family]")) {
    const chosen = equation.dataset.family === subject.model.family;
    equation.classList.toggle("chosen", chosen);
    equation.ariaHidden = String(!chosen);
  }
  element("own").hidden = own === null;
  element("own-name").textContent = own === null ? "" : `Showing ${own}.`;
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

/** A prior in words. */
function inWords(noise: string): string {
  const [kind, inside] = [noise.slice(0, noise.indexOf("(")), noise.slice(noise.indexOf("(") + 1, -1)];
  if (noise === "uniform(0,0)") return `${noise}: no noise`;
  if (kind === "uniform") return `${noise}: σ from ${inside.replace(",", " to ")}`;
  return `${noise}: σ one of ${inside.replaceAll(",", ", ")}`;
}
