/** View 2: the implicit weights after every layer, in a plane, and their distance from the oracle. */

import {
  axes, below, frame, legend, linear, logarithmic, mark, path, short, tags, word, type Point, type Tag,
} from "../chart";
import { BASELINES, LOOKS, type Method } from "../looks";
import { dot, halfSquare, subtract, type Vector } from "../matrix";
import { ridge } from "../ridge";
import type { View } from "../view";

const BOX = frame(440, 330);
const DISTANCE = frame(440, 330, 134);

/** Draw both charts. */
export function drawPath(plane: SVGElement, distance: SVGElement, view: View): void {
  drawPlane(plane, view);
  drawDistance(distance, view);
}

function drawPlane(svg: SVGElement, view: View): void {
  const look = LOOKS[view.subject.model.family];
  const project = projection(view);
  const targets: [Method, Vector][] = [
    ["truth", view.sequence.weights],
    ["ols", view.baselines.ols],
    ["bayes", view.baselines.bayes],
    ["oracle", view.oracle],
  ];
  const curve = ridgeCurve(view).map(project);
  const box = square([...targets.map(([, weights]) => project(weights)), ...curve, [0, 0]], view.path.map(project));
  const x = linear(box.x - box.half * ASPECT, box.x + box.half * ASPECT, BOX.left, BOX.right);
  const y = linear(box.y - box.half, box.y + box.half, BOX.bottom, BOX.top);
  const place = (point: Point): Point => [
    Math.min(Math.max(x(point[0]), BOX.left), BOX.right),
    Math.min(Math.max(y(point[1]), BOX.top), BOX.bottom),
  ];
  const walk = view.path.map((weights) => place(project(weights)));
  const marks = walk.map((at, layer) => {
    const words = `After layer ${layer}: ½‖w − w_σ‖² = ${short(halfSquare(view.path[layer], view.oracle))}`;
    return mark(at, look, layer === view.state.after ? 7 : 4, words);
  });
  const named = targets.map(([name, weights]) => mark(place(project(weights)), LOOKS[name], 5.8, LOOKS[name].label));
  svg.innerHTML =
    axes(BOX, x, y, "Along the oracle’s weights", "Across, towards OLS") +
    path(curve.map(place), { ...LOOKS.ols, dash: undefined }, 1.2, 'opacity=".8"') +
    path(walk, { ...look, dash: undefined }, 2.2) +
    marks.join("") +
    named.join("") +
    numbers(walk, view.state.after, look.colour) +
    legend([BOX.left + 14, BOX.top + 12], targets.map(([name]) => LOOKS[name]), 84);
  svg.setAttribute(
    "aria-label",
    `The implicit weights after layers 0 to ${view.path.length - 1}, in the plane of zero, oracle and OLS.`,
  );
}

/** The number of every layer, where there is room for it. */
function numbers(walk: Point[], after: number, colour: string): string {
  const apart = (a: number, b: number) => Math.hypot(walk[a][0] - walk[b][0], walk[a][1] - walk[b][1]);
  const shown = [after];
  walk.forEach((_, layer) => {
    if (shown.every((other) => apart(layer, other) > 16)) shown.push(layer);
  });
  return shown
    .map((layer) => word([walk[layer][0] + 8, walk[layer][1] - 7], String(layer), colour))
    .join("");
}

const ASPECT = (BOX.right - BOX.left) / (BOX.bottom - BOX.top); // lengths are the same both ways

/** Coordinates in the plane through zero, the oracle and a second vector that is not along it. */
function projection(view: View): (weights: Vector) => Point {
  const first = direction(view.oracle, []) ?? Float64Array.from(view.oracle, (_, i) => (i === 0 ? 1 : 0));
  const candidates = [view.baselines.ols, view.sequence.weights, view.baselines.bayes];
  const unit = Float64Array.from(view.oracle, (_, i) => (i === 1 ? 1 : 0));
  const second = [...candidates, unit].map((vector) => direction(vector, [first])).find((found) => found !== null);
  return (weights) => [dot(weights, first), dot(weights, second ?? unit)];
}

/** A vector of length one, after what lies along others is taken away; nothing where nothing is left. */
function direction(vector: Vector, others: Vector[]): Vector | null {
  let rest: Vector = vector.slice();
  for (const other of others) {
    const along = dot(rest, other);
    rest = subtract(rest, other.map((value) => along * value));
  }
  const length = Math.sqrt(dot(rest, rest));
  return length > 1e-6 * Math.sqrt(dot(vector, vector)) && length > 1e-12 ? rest.map((value) => value / length) : null;
}

/** Ridge regression with penalties from nothing to very much. */
function ridgeCurve(view: View): Vector[] {
  const penalties = [0, ...Array.from({ length: 60 }, (_, i) => 10 ** (-2 + i / 10))];
  return [...penalties.map((penalty) => ridge(view.spectrum, penalty)), new Float64Array(view.oracle.length)];
}

/** A window with the fixed points in it, and of the walk as much as does not make them tiny. */
function square(fixed: Point[], walk: Point[]): { x: number; y: number; half: number } {
  const reach = 2 * Math.max(...fixed.map(([x, y]) => Math.hypot(x, y)), 1e-9);
  const kept = [...fixed, ...walk.filter(([x, y]) => Math.hypot(x, y) < reach)];
  const xs = kept.map(([x]) => x);
  const ys = kept.map(([, y]) => y);
  const [width, height] = [Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys)];
  const half = 0.58 * Math.max(width / ASPECT, height, 1e-6);
  return { x: (Math.max(...xs) + Math.min(...xs)) / 2, y: (Math.max(...ys) + Math.min(...ys)) / 2 - 0.06 * half, half };
}

function drawDistance(svg: SVGElement, view: View): void {
  const look = LOOKS[view.subject.model.family];
  const distances = view.path.map((weights) => halfSquare(weights, view.oracle));
  const levels = BASELINES.map((name) => [name, halfSquare(view.baselines[name], view.oracle)] as const).filter(
    ([, value]) => Number.isFinite(value) && value > 1e-24,
  );
  const seen = [...distances, ...levels.map(([, value]) => value)].filter((value) => value > 0 && Number.isFinite(value));
  const top = 10 ** Math.ceil(Math.log10(Math.min(Math.max(...seen, 1), 1e4)));
  const bottom = Math.max(10 ** Math.floor(Math.log10(Math.min(...seen, 0.1))), top * 1e-12);
  const layers = distances.map((_, layer) => layer);
  const x = Object.assign(linear(0, layers.length - 1, DISTANCE.left, DISTANCE.right), { ticks: layers });
  const y = logarithmic(bottom, top, DISTANCE.bottom, DISTANCE.top);
  const across = (height: number): Point[] => [[DISTANCE.left, height], [DISTANCE.right, height]];
  const tagged: Tag[] = levels.map(([name, value]) => ({
    at: y(value),
    text: `${LOOKS[name].label} ${short(value)}`,
    colour: LOOKS[name].colour,
  }));
  svg.innerHTML =
    axes(DISTANCE, x, y, "After layer", `½‖w − ${below("w", "σ")}‖²`) +
    levels.map(([name, value]) => path(across(y(value)), LOOKS[name], 1.6)).join("") +
    path(distances.map((value, layer) => [x(layer), y(value)]), { ...look, dash: undefined }, 2.2) +
    distances
      .map((value, layer) =>
        mark([x(layer), y(value)], look, layer === view.state.after ? 7 : 4.5, `After layer ${layer}: ${short(value)}`),
      )
      .join("") +
    tags(DISTANCE, tagged);
  const told = distances.map((value, layer) => `layer ${layer}: ${short(value)}`).join(", ");
  const compared = levels.map(([name, value]) => `${LOOKS[name].label} ${short(value)}`).join(", ");
  svg.setAttribute("aria-label", `Half the squared distance from the oracle. ${told}. ${compared}.`);
}
