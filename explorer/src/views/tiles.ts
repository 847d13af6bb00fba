/** The four figures at the top: what is predicted, what is true, how far it is off, and how good the model is. */

import { escape, short } from "../chart";
import type { Data } from "../data";
import { dot, halfSquare } from "../matrix";
import type { View } from "../view";

/** Draw the figures, and say the most important one. */
export function drawTiles(root: HTMLElement, status: HTMLElement, view: View, data: Data): void {
  const { state, subject } = view;
  const weights = view.path[state.after];
  const prediction = dot(weights, view.sequence.query);
  const distance = halfSquare(weights, view.oracle);
  const [bayes, ols] = (["bayes", "ols"] as const).map((name) => halfSquare(view.baselines[name], view.oracle));
  root.innerHTML = [
    tile(`Prediction after layer ${state.after}`, short(prediction), `true value ${short(view.truth)}`),
    tile("Distance from the oracle", short(distance), `Bayes ${short(bayes)}, OLS ${short(ols)}`),
    tile("Noise level", short(state.std), `the context speaks for ${short(view.believed)}`),
    quality(view, data),
  ].join("");
  const told = `prediction ${short(prediction)} after layer ${state.after}, true value ${short(view.truth)}`;
  status.textContent = `${subject.name}: ${told}.`;
}

function quality(view: View, data: Data): string {
  const { card, name, noiseText } = view.subject;
  if (!card) return tile("Your file", escape(name), `trained on ${escape(noiseText)}`);
  const printed = data.paper.find(
    ([method, layers, noise]) =>
      card.heads === 1 && method === card.family && layers === card.layers && noise === card.noise,
  );
  const floor = view.subject.curves?.prior.bayes.loss[0];
  const words = [printed ? escape(`paper ${printed[3]}`) : "not in the paper", `floor ${short(floor ?? NaN)}`];
  return tile("Loss on the training prior", short(card.adjusted_loss), words.join(", "));
}

function tile(title: string, value: string, more: string): string {
  return `<div class="tile"><small>${title}</small><b>${value}</b><small>${more}</small></div>`;
}
