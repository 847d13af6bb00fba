/** View 5: Table 1 as a heat map of the paper's losses, lintra's, or their ratio to the Bayes floor. */

import { escape, short } from "../chart";
import { gateText, nameOf, priorLoss, type Data } from "../data";
import { STYLES, type Method } from "../styles";
import type { Family } from "../models";
import type { Shade, State } from "../state";

const FAMILIES: Family[] = ["gd++", "diag", "full"];
const BASELINES = ["const-ridge", "ada-ridge", "tuned-ridge", "bayes"] as const;
const DEPTHS = [1, 2, 3, 4, 5, 6, 7];

const EXPLODES = "†"; // as printed it explodes, and the loss of the damped model is shown

interface Losses {
  paper: number | null;
  lintra: number | null;
  floor: number | null;
  isDamped: boolean;
}

/** Draw the table. */
export function drawTable(root: HTMLElement, data: Data, state: State): void {
  const uniform = data.noises.filter((noise) => noise.startsWith("uniform")).length;
  const groups =
    `<th class="first"></th><th colspan="${uniform}" scope="colgroup">σ uniform from 0 to</th>` +
    `<th colspan="${data.noises.length - uniform}" scope="colgroup">σ one of</th>`;
  const heads = data.noises.map((noise) => `<th scope="col" title="${escape(noise)}">${escape(shortPrior(noise))}</th>`).join("");
  const models = DEPTHS.map((layers) => {
    return section(`${layers} layer${layers > 1 ? "s" : ""}`) + FAMILIES.map((family) => row(data, state, family, layers)).join("");
  });
  const baselines = BASELINES.map((method) => row(data, state, method, null)).join("");
  const head = `<thead><tr>${groups}</tr><tr><th class="first"></th>${heads}</tr></thead>`;
  root.innerHTML = `<table>${head}<tbody>${models.join("")}${section("Baselines")}${baselines}</tbody></table>`;
  for (const cell of root.querySelectorAll<HTMLElement>("[data-heat]")) {
    cell.style.background = `color-mix(in srgb, var(--heat) ${cell.dataset.heat}%, transparent)`;
  }
  const cells = root.querySelectorAll<HTMLElement>("button");
  const current = root.querySelector<HTMLElement>('[aria-current="true"]') ?? cells[0];
  cells.forEach((cell) => (cell.tabIndex = cell === current ? 0 : -1));
}

function section(title: string): string {
  return `<tr class="section"><th scope="rowgroup" class="first">${title}</th></tr>`;
}

function shortPrior(noise: string): string {
  return noise.replace(/^uniform\(0,(.*)\)$/, "$1").replace(/^choice\((.*)\)$/, "$1").replaceAll(",", ", ");
}

function row(data: Data, state: State, method: Method, layers: number | null): string {
  const cells = data.noises.map((noise) => cell(data, state, method, layers, noise)).join("");
  return `<tr><th scope="row" class="first">${STYLES[method].label}</th>${cells}</tr>`;
}

function cell(data: Data, state: State, method: Method, layers: number | null, noise: string): string {
  const losses = lossesOf(data, method, layers, noise);
  const text = textOf(losses, state.shade) + (losses.isDamped && state.shade !== "paper" ? EXPLODES : "");
  const strength = strengthOf(state.shade === "paper" ? losses.paper : losses.lintra, losses.floor);
  const heat = `data-heat="${(4 + 62 * strength).toFixed(0)}"`; // the page's policy allows no style attributes
  const cellName = `${STYLES[method].label}${layers === null ? "" : `, ${layers} layer${layers > 1 ? "s" : ""}`}, ${noise}`;
  const [lintra, floor] = [lossText(losses.lintra), lossText(losses.floor)];
  const name = layers === null ? "" : nameOf(method, layers, noise, 1);
  const card = data.models[name];
  const asPrinted = losses.isDamped && card ? ` (as printed mean ${short(card.adjusted_loss)}, worst ${short(card.worst)})` : "";
  const gate = card && gateText(card) ? `; ${gateText(card)}` : "";
  const lintraText = `lintra${losses.isDamped ? ", damped," : ""} ${lintra}${asPrinted}`;
  const title = escape(`${cellName}: paper ${losses.paper ?? "–"}, ${lintraText}, Bayes floor ${floor}${gate}`);
  if (layers === null) return `<td class="still" ${heat} title="${title}">${text}</td>`;
  if (!data.models[name]) return `<td class="still" title="${title}">${text}</td>`;
  const current = name === nameOf(state.family, state.layers, state.noise, state.heads);
  const about = `aria-current="${current}" title="${title}" aria-label="${title}. Open this model"`;
  return `<td><button type="button" data-model="${escape(name)}" ${about} ${heat}>${text}</button></td>`;
}

function lossesOf(data: Data, method: Method, layers: number | null, noise: string): Losses {
  const printed = data.paper.find(([name, depth, prior]) => name === method && depth === layers && prior === noise);
  const prior = data.curves[noise]?.prior;
  const card = layers === null ? undefined : data.models[nameOf(method, layers, noise, 1)];
  const ofModel = card && priorLoss(card);
  const measured = layers === null ? prior?.[method]?.loss[0] : ofModel?.loss;
  const isDamped = ofModel?.isDamped ?? false;
  return { paper: printed?.[3] ?? null, lintra: measured ?? null, floor: prior?.bayes.loss[0] ?? null, isDamped };
}

function textOf(losses: Losses, shade: Shade): string {
  if (shade === "paper") return losses.paper === null ? "–" : escape(String(losses.paper));
  if (shade === "lintra") return lossText(losses.lintra);
  const ratio = ratioOf(losses.lintra, losses.floor);
  return ratio === null ? `<i>${lossText(losses.lintra)}</i>` : ratio < 99.5 ? `${ratio.toFixed(2)}×` : `${Math.round(ratio)}×`;
}

function lossText(value: number | null): string {
  return value === null ? "–" : short(value);
}

/** Without noise there is no floor. */
function ratioOf(loss: number | null, floor: number | null): number | null {
  return loss === null || floor === null || floor < 1e-12 ? null : loss / floor;
}

/** 0 at the floor, 1 at a hundred times the floor; without noise by the loss itself, down to 1e-16. */
function strengthOf(loss: number | null, floor: number | null): number {
  if (loss === null) return 0;
  const ratio = ratioOf(loss, floor);
  const strength = ratio === null ? 1 + Math.log10(Math.max(loss, 1e-16)) / 16 : Math.log10(Math.max(ratio, 1)) / 2;
  return Math.min(Math.max(strength, 0), 1);
}

/** Open a model by a press; move between cells by arrow keys. */
export function listenToTable(root: HTMLElement, open: (name: string) => void): void {
  root.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-model]");
    if (button) open(button.dataset.model!);
  });
  root.addEventListener("keydown", (event) => {
    const from = (event.target as Element).closest<HTMLElement>("[data-model]");
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 }[event.key];
    if (!from || step === undefined) return;
    event.preventDefault();
    const cells = [...root.querySelectorAll<HTMLElement>("[data-model]")];
    const columns = root.querySelectorAll("thead th[title]").length;
    const to = cells[cells.indexOf(from) + (Math.abs(step) > 1 ? Math.sign(step) * columns : step)];
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
}
