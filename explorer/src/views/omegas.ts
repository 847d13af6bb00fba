/** View 4: the ω of every layer with a switch for each, what breaks without them, and P and Q as pictures. */

import { balancedMatrices, omegas } from "../anatomy";
import { axes, frame, linear, logarithmic, px, segment, short, word } from "../chart";
import { flowsOf, type Damage } from "../live";
import { LOOKS } from "../looks";
import type { Matrix } from "../matrix";
import { FLOWS, type Model } from "../models";
import type { View } from "../view";

const BOX = frame(440, 230);

/** Make the table of switches for a model; `toggle` is called with the flow that was pressed. */
export function buildSwitches(table: HTMLElement, model: Model, toggle: (flow: string) => void): void {
  const usable = new Set(flowsOf(model));
  const rows = omegas(model).map((values, layer) => {
    const cells = FLOWS.map((flow) => {
      const name = `${layer + 1}${flow}`;
      if (!usable.has(name)) return `<td class="never" title="Never read">–</td>`;
      const about = `data-flow="${name}" data-label="omega ${flow} of layer ${layer + 1}"`;
      return `<td><button type="button" class="switch" ${about}>${short(values[flow])}<small></small></button></td>`;
    });
    return `<tr><th scope="row">${layer + 1}</th>${cells.join("")}</tr>`;
  });
  const body = table.querySelector("tbody")!;
  body.innerHTML = rows.join("");
  body.onclick = (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-flow]");
    if (button) toggle(button.dataset.flow!);
  };
}

/** Show which switches are off, and what each flow alone is worth. */
export function drawSwitches(table: HTMLElement, view: View, damage: Damage): void {
  const off = new Set(view.state.off);
  for (const button of table.querySelectorAll<HTMLElement>("[data-flow]")) {
    const flow = button.dataset.flow!;
    const single = damage.single.get(flow);
    const factor = single ? single.mean / damage.wholeMean.mean : null;
    const words = factor === null ? "" : factor > 1e4 ? "× >10⁴" : `× ${short(factor, 3)}`;
    button.querySelector("small")!.textContent = words;
    button.setAttribute("aria-pressed", String(!off.has(flow)));
    const loss = words ? `, loss ${words} without it` : "";
    button.setAttribute("aria-label", `${button.dataset.label}: ${button.firstChild!.textContent}${loss}`);
    const weight = factor === null ? 0 : Math.min(Math.log10(Math.max(factor, 1)) / 2, 1);
    button.style.background = off.has(flow) ? "" : `color-mix(in srgb, var(--heat) ${(32 * weight).toFixed(0)}%, transparent)`;
  }
}

/** Draw the loss as trained and as switched, mean and median. */
export function drawDamage(svg: SVGElement, note: HTMLElement, view: View, damage: Damage): void {
  const look = LOOKS[view.subject.model.family];
  const rows = [
    { name: "as trained", values: damage.whole, strength: 45 },
    { name: "as switched", values: damage.now, strength: 100 },
  ].map((row) => ({ ...row, mean: mean(row.values), median: median(row.values) }));
  const seen = rows.flatMap((row) => [row.mean, row.median]).filter((value) => value > 0 && Number.isFinite(value));
  const top = 10 ** Math.ceil(Math.log10(Math.min(Math.max(...seen, 0.1), 1e6)) + 0.01);
  const bottom = Math.max(10 ** Math.floor(Math.log10(Math.min(...seen, 0.01)) - 0.01), top * 1e-24);
  const box = { ...BOX, left: 92, right: BOX.right - 52 };
  const x = logarithmic(bottom, top, box.left, box.right, 5);
  const y = Object.assign(linear(0, 2, box.top, box.bottom), { ticks: [] as number[] });
  const bars = rows.map(({ name, mean, median, strength }, i) => {
    if (!(mean > 0)) return "";
    const [middle, end] = [y(i + 0.5), x(mean)];
    const size = `x="${box.left}" y="${px(middle - 24)}" width="${px(Math.max(end - box.left, 0))}" height="48" rx="3"`;
    return (
      `<rect ${size} fill="color-mix(in srgb, ${look.colour} ${strength}%, var(--card))"/>` +
      segment([x(median), middle - 24], [x(median), middle + 24], "var(--card)", 2.5) +
      `<text class="axis" x="${box.left - 7}" y="${px(middle + 4)}" text-anchor="end">${name}</text>` +
      word([end + 6, middle + 4], short(mean), "var(--ink)")
    );
  });
  svg.innerHTML = axes(box, x, y, "Adjusted loss on the training prior", "") + bars.join("");
  const [whole, now] = rows;
  const off = view.state.off.length;
  const told = off
    ? `${off} ${off > 1 ? "flows are" : "flow is"} off: the loss is ${short(now.mean / whole.mean)} times as large.`
    : "Everything is switched on.";
  const how = `Bars are means, thin lines medians, over ${damage.now.length} fresh sequences at n = ${view.state.count}.`;
  note.textContent = `${told} ${how}`;
  svg.setAttribute("aria-label", `Loss as trained ${short(whole.mean)}, as switched ${short(now.mean)}.`);
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? NaN;
}

/** Draw P and Q of every layer and head. */
export function drawMatrices(root: HTMLElement, model: Model): void {
  const pictures: string[] = [];
  for (let layer = 0; layer < model.layers; layer++) {
    for (let head = 0; head < model.heads; head++) {
      const { P, Q } = balancedMatrices(model, layer, head);
      const place = `layer ${layer + 1}${model.heads > 1 ? `, head ${head + 1}` : ""}`;
      const pair = [picture("P", place, P, model.dim + 1), picture("Q", place, Q, model.dim + 1)];
      const title = place[0].toUpperCase() + place.slice(1);
      pictures.push(`<figure>${pair.join("")}<figcaption>${title}</figcaption></figure>`);
    }
  }
  root.innerHTML = pictures.join("");
}

function picture(name: string, place: string, matrix: Matrix, size: number): string {
  const most = matrix.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0) || 1;
  let cells = "";
  matrix.forEach((value, at) => {
    const strength = Math.abs(value) / most;
    if (strength < 0.004) return;
    const colour = value > 0 ? "--above" : "--below";
    const [row, column] = [Math.floor(at / size), at % size];
    const place = `x="${column}" y="${row}" width="1.02" height="1.02"`;
    cells += `<rect ${place} fill="var(${colour})" opacity="${strength.toFixed(3)}"/>`;
  });
  const edge = `<path d="M${size - 1} 0V${size}M0 ${size - 1}H${size}" stroke="var(--soft)" stroke-width=".05"/>`;
  const border = `<rect width="${size}" height="${size}" fill="none" stroke="var(--line)" stroke-width=".08"/>`;
  const words = `${name} of ${place}, largest entry ${short(most)}`;
  const svg = `<svg viewBox="0 0 ${size} ${size}" role="img" aria-label="${words}">${cells}${edge}${border}</svg>`;
  return `<div>${svg}<small>${name} ± ${short(most)}</small></div>`;
}
