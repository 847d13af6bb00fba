/** View 4: the ω of each layer with switches, the loss without them, and P and Q as pictures. */

import { canonicalMatrices, omegas } from "../anatomy";
import { axes, frame, linear, logarithmic, px, segment, short, textAt } from "../chart";
import { usedOmegas, type Ablation } from "../live";
import { STYLES } from "../styles";
import type { Matrix } from "../matrix";
import { OMEGAS, type Model } from "../models";
import type { View } from "../view";

const BOX = frame(440, 230);

/** Make the table of switches for a model; `toggle` is called with the name of the ω that was pressed. */
export function buildSwitches(table: HTMLElement, model: Model, toggle: (name: string) => void): void {
  const used = new Set(usedOmegas(model));
  const rows = omegas(model).map((values, layer) => {
    const cells = OMEGAS.map((omega) => {
      const name = `${layer + 1}${omega}`;
      if (!used.has(name)) return `<td class="never" title="Never read">–</td>`;
      const about = `data-omega="${name}" data-label="omega ${omega} of layer ${layer + 1}"`;
      return `<td><button type="button" class="switch" ${about}>${short(values[omega])}<small></small></button></td>`;
    });
    return `<tr><th scope="row">${layer + 1}</th>${cells.join("")}</tr>`;
  });
  const body = table.querySelector("tbody")!;
  body.innerHTML = rows.join("");
  body.onclick = (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-omega]");
    if (button) toggle(button.dataset.omega!);
  };
}

/** Show which switches are off, and the loss without each ω alone. */
export function drawSwitches(table: HTMLElement, view: View, ablation: Ablation): void {
  const disabled = new Set(view.state.disabled);
  for (const button of table.querySelectorAll<HTMLElement>("[data-omega]")) {
    const name = button.dataset.omega!;
    const single = ablation.single.get(name);
    const factor = single ? single.mean / ablation.trainedMean.mean : null;
    const text = factor === null ? "" : factor > 1e4 ? "× >10⁴" : `× ${short(factor, 3)}`;
    button.querySelector("small")!.textContent = text;
    button.setAttribute("aria-pressed", String(!disabled.has(name)));
    const loss = text ? `, loss ${text} without it` : "";
    button.setAttribute("aria-label", `${button.dataset.label}: ${button.firstChild!.textContent}${loss}`);
    const weight = factor === null ? 0 : Math.min(Math.log10(Math.max(factor, 1)) / 2, 1);
    button.style.background = disabled.has(name) ? "" : `color-mix(in srgb, var(--heat) ${(32 * weight).toFixed(0)}%, transparent)`;
  }
}

/** Draw the loss as trained and as switched, mean and median. */
export function drawAblation(svg: SVGElement, note: HTMLElement, view: View, ablation: Ablation): void {
  const style = STYLES[view.subject.model.family];
  const rows = [
    { name: "as trained", values: ablation.trained, strength: 45 },
    { name: "as switched", values: ablation.ablated, strength: 100 },
  ].map((row) => ({ ...row, mean: mean(row.values), median: median(row.values) }));
  const finite = rows.flatMap((row) => [row.mean, row.median]).filter((value) => value > 0 && Number.isFinite(value));
  const top = 10 ** Math.ceil(Math.log10(Math.min(Math.max(...finite, 0.1), 1e6)) + 0.01);
  const bottom = Math.max(10 ** Math.floor(Math.log10(Math.min(...finite, 0.01)) - 0.01), top * 1e-24);
  const box = { ...BOX, left: 92, right: BOX.right - 52 };
  const x = logarithmic(bottom, top, box.left, box.right, 5);
  const y = Object.assign(linear(0, 2, box.top, box.bottom), { ticks: [] as number[] });
  const bars = rows.map(({ name, mean, median, strength }, i) => {
    if (!(mean > 0)) return "";
    const [middle, end] = [y(i + 0.5), x(mean)];
    const size = `x="${box.left}" y="${px(middle - 24)}" width="${px(Math.max(end - box.left, 0))}" height="48" rx="3"`;
    return (
      `<rect ${size} fill="color-mix(in srgb, ${style.colour} ${strength}%, var(--card))"/>` +
      segment([x(median), middle - 24], [x(median), middle + 24], "var(--card)", 2.5) +
      `<text class="axis" x="${box.left - 7}" y="${px(middle + 4)}" text-anchor="end">${name}</text>` +
      textAt([end + 6, middle + 4], short(mean), "var(--ink)")
    );
  });
  svg.innerHTML = axes(box, x, y, "Adjusted loss on the training prior", "") + bars.join("");
  const [trained, ablated] = rows;
  const disabled = view.state.disabled.length;
  const summary = disabled
    ? `${disabled} ω ${disabled > 1 ? "are" : "is"} off: the loss is ${short(ablated.mean / trained.mean)} times as large.`
    : "Everything is switched on.";
  const method = `Bars are means, thin lines medians, over ${ablation.ablated.length} fresh sequences at n = ${view.state.numExamples}, ${view.damping ? "damped" : "as printed"}.`;
  note.textContent = `${summary} ${method}`;
  svg.setAttribute("aria-label", `Loss as trained ${short(trained.mean)}, as switched ${short(ablated.mean)}.`);
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? NaN;
}

/** Draw P and Q of each layer and head. */
export function drawMatrices(root: HTMLElement, model: Model): void {
  const pictures: string[] = [];
  for (let layer = 0; layer < model.layers; layer++) {
    for (let head = 0; head < model.heads; head++) {
      const { P, Q } = canonicalMatrices(model, layer, head);
      const position = `layer ${layer + 1}${model.heads > 1 ? `, head ${head + 1}` : ""}`;
      const pair = [picture("P", position, P, model.dim + 1), picture("Q", position, Q, model.dim + 1)];
      const title = position[0].toUpperCase() + position.slice(1);
      pictures.push(`<figure>${pair.join("")}<figcaption>${title}</figcaption></figure>`);
    }
  }
  root.innerHTML = pictures.join("");
}

function picture(name: string, position: string, matrix: Matrix, size: number): string {
  const largestEntry = matrix.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0) || 1;
  let cells = "";
  matrix.forEach((value, at) => {
    const strength = Math.abs(value) / largestEntry;
    if (strength < 0.004) return;
    const colour = value > 0 ? "--above" : "--below";
    const [row, column] = [Math.floor(at / size), at % size];
    const position = `x="${column}" y="${row}" width="1.02" height="1.02"`;
    cells += `<rect ${position} fill="var(${colour})" opacity="${strength.toFixed(3)}"/>`;
  });
  const edge = `<path d="M${size - 1} 0V${size}M0 ${size - 1}H${size}" stroke="var(--soft)" stroke-width=".05"/>`;
  const border = `<rect width="${size}" height="${size}" fill="none" stroke="var(--line)" stroke-width=".08"/>`;
  const text = `${name} of ${position}, largest entry ${short(largestEntry)}`;
  const svg = `<svg viewBox="0 0 ${size} ${size}" role="img" aria-label="${text}">${cells}${edge}${border}</svg>`;
  return `<div>${svg}<small>${name} ± ${short(largestEntry)}</small></div>`;
}
