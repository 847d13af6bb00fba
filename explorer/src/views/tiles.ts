/** Four numbers at the top: prediction, distance from the oracle, noise level, and loss of the model. */

import { escape, short } from "../chart";
import { gateText, priorLoss, type Data } from "../data";
import { dot, halfSquare } from "../matrix";
import type { View } from "../view";
import { isDamped } from "./damping";

/** Draw the numbers, and announce the prediction. */
export function drawTiles(root: HTMLElement, status: HTMLElement, view: View, data: Data): void {
  const { state, subject } = view;
  const weights = view.path[state.layer];
  const prediction = dot(weights, view.sequence.query);
  const loss = halfSquare(weights, view.oracle);
  const [bayes, ols] = (["bayes", "ols"] as const).map((name) => halfSquare(view.baselines[name], view.oracle));
  root.innerHTML = [
    tile(`Prediction after layer ${state.layer}`, short(prediction), `true value ${short(view.truth)}`),
    tile("Distance from the oracle", short(loss), `Bayes ${short(bayes)}, OLS ${short(ols)}`),
    tile("Noise level", short(state.noiseStd), `posterior mean ${short(view.posteriorNoiseStd)}`),
    quality(view, data),
  ].join("");
  const summary = `prediction ${short(prediction)} after layer ${state.layer}, true value ${short(view.truth)}`;
  status.textContent = `${subject.name}: ${summary}${isDamped(view) ? ", damped" : ""}.`;
}

function quality(view: View, data: Data): string {
  const { card, name, noiseText } = view.subject;
  if (!card) return tile("Your file", escape(name), `trained on ${escape(noiseText)}`);
  const printed = data.paper.find(
    ([method, layers, noise]) =>
      card.heads === 1 && method === card.family && layers === card.layers && noise === card.noise,
  );
  const floor = view.subject.curves?.prior.bayes.loss[0];
  const text = [printed ? escape(`paper ${printed[3]}`) : "not in the paper", `floor ${short(floor ?? NaN)}`];
  const { loss, isDamped } = priorLoss(card);
  if (isDamped) text.push(gateText(card));
  return tile(`Loss on the prior, ${isDamped ? "damped" : "as printed"}`, short(loss), text.join(", "));
}

function tile(title: string, value: string, more: string): string {
  return `<div class="tile"><small>${title}</small><b>${value}</b><small>${more}</small></div>`;
}
