/** View 2: the implicit weights after each layer, in a plane, and their distance from the oracle. */

import {
  axes, below, frame, legend, linear, logarithmic, mark, path, short, tags, textAt, type Point, type Tag,
} from "../chart";
import { BASELINES, STYLES, type Method } from "../styles";
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
  const style = STYLES[view.subject.model.family];
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
  const toPixels = (point: Point): Point => [
    Math.min(Math.max(x(point[0]), BOX.left), BOX.right),
    Math.min(Math.max(y(point[1]), BOX.top), BOX.bottom),
  ];
  const walk = view.path.map((weights) => toPixels(project(weights)));
  const marks = walk.map((at, layer) => {
    const title = `After layer ${layer}: ½‖w − w_σ‖² = ${short(halfSquare(view.path[layer], view.oracle))}`;
    return mark(at, style, layer === view.state.layer ? 7 : 4, title);
  });
  const named = targets.map(([name, weights]) => mark(toPixels(project(weights)), STYLES[name], 5.8, STYLES[name].label));
  svg.innerHTML =
    axes(BOX, x, y, "Along the oracle’s weights", "Across, towards OLS") +
    path(curve.map(toPixels), { ...STYLES.ols, dash: undefined }, 1.2, 'opacity=".8"') +
    path(walk, { ...style, dash: undefined }, 2.2) +
    marks.join("") +
    named.join("") +
    layerNumbers(walk, view.state.layer, style.colour) +
    legend([BOX.left + 14, BOX.top + 12], targets.map(([name]) => STYLES[name]), 84);
  svg.setAttribute(
    "aria-label",
    `The implicit weights after layers 0 to ${view.path.length - 1}, in the plane of zero, oracle and OLS.`,
  );
}

/** Numbers of layers, where there is room for them. */
function layerNumbers(walk: Point[], selected: number, colour: string): string {
  const distance = (a: number, b: number) => Math.hypot(walk[a][0] - walk[b][0], walk[a][1] - walk[b][1]);
  const numbered = [selected];
  walk.forEach((_, layer) => {
    if (numbered.every((other) => distance(layer, other) > 16)) numbered.push(layer);
  });
  return numbered
    .map((layer) => textAt([walk[layer][0] + 8, walk[layer][1] - 7], String(layer), colour))
    .join("");
}

const ASPECT = (BOX.right - BOX.left) / (BOX.bottom - BOX.top); // lengths are the same both ways

/** Coordinates in the plane through zero, the oracle and a second vector that is not along it. */
function projection(view: View): (weights: Vector) => Point {
  const first = direction(view.oracle, []) ?? Float64Array.from(view.oracle, (_, i) => (i === 0 ? 1 : 0));
  const candidates = [view.baselines.ols, view.sequence.weights, view.baselines.bayes];
  const unit = Float64Array.from(view.oracle, (_, i) => (i === 1 ? 1 : 0));
  const second = [...candidates, unit].map((vector) => direction(vector, [first])).find((vector) => vector !== null);
  return (weights) => [dot(weights, first), dot(weights, second ?? unit)];
}

/** A vector orthogonal to others, of length one; `null` if it lies in their span. */
function direction(vector: Vector, others: Vector[]): Vector | null {
  let rest: Vector = vector.slice();
  for (const other of others) {
    const along = dot(rest, other);
    rest = subtract(rest, other.map((value) => along * value));
  }
  const length = Math.sqrt(dot(rest, rest));
  return length > 1e-6 * Math.sqrt(dot(vector, vector)) && length > 1e-12 ? rest.map((value) => value / length) : null;
}

/** Ridge regressions with penalties from zero to infinity. */
function ridgeCurve(view: View): Vector[] {
  const penalties = [0, ...Array.from({ length: 60 }, (_, i) => 10 ** (-2 + i / 10))];
  return [...penalties.map((penalty) => ridge(view.spectrum, penalty)), new Float64Array(view.oracle.length)];
}

/** A window with the fixed points, and those points of the walk that do not make it much larger. */
function square(fixed: Point[], walk: Point[]): { x: number; y: number; half: number } {
  const reach = 2 * Math.max(...fixed.map(([x, y]) => Math.hypot(x, y)), 1e-9);
  const inside = [...fixed, ...walk.filter(([x, y]) => Math.hypot(x, y) < reach)];
  const xs = inside.map(([x]) => x);
  const ys = inside.map(([, y]) => y);
  const [width, height] = [Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys)];
  const half = 0.58 * Math.max(width / ASPECT, height, 1e-6);
  return { x: (Math.max(...xs) + Math.min(...xs)) / 2, y: (Math.max(...ys) + Math.min(...ys)) / 2 - 0.06 * half, half };
}

function drawDistance(svg: SVGElement, view: View): void {
  const style = STYLES[view.subject.model.family];
  const distances = view.path.map((weights) => halfSquare(weights, view.oracle));
  const baselines = BASELINES.map((name) => [name, halfSquare(view.baselines[name], view.oracle)] as const).filter(
    ([, value]) => Number.isFinite(value) && value > 1e-24,
  );
  const finite = [...distances, ...baselines.map(([, value]) => value)].filter((value) => value > 0 && Number.isFinite(value));
  const top = 10 ** Math.ceil(Math.log10(Math.min(Math.max(...finite, 1), 1e4)));
  const bottom = Math.max(10 ** Math.floor(Math.log10(Math.min(...finite, 0.1))), top * 1e-12);
  const layers = distances.map((_, layer) => layer);
  const x = Object.assign(linear(0, layers.length - 1, DISTANCE.left, DISTANCE.right), { ticks: layers });
  const y = logarithmic(bottom, top, DISTANCE.bottom, DISTANCE.top);
  const horizontal = (height: number): Point[] => [[DISTANCE.left, height], [DISTANCE.right, height]];
  const tagged: Tag[] = baselines.map(([name, value]) => ({
    at: y(value),
    text: `${STYLES[name].label} ${short(value)}`,
    colour: STYLES[name].colour,
  }));
  svg.innerHTML =
    axes(DISTANCE, x, y, "After layer", `½‖w − ${below("w", "σ")}‖²`) +
    baselines.map(([name, value]) => path(horizontal(y(value)), STYLES[name], 1.6)).join("") +
    path(distances.map((value, layer) => [x(layer), y(value)]), { ...style, dash: undefined }, 2.2) +
    distances
      .map((value, layer) =>
        mark([x(layer), y(value)], style, layer === view.state.layer ? 7 : 4.5, `After layer ${layer}: ${short(value)}`),
      )
      .join("") +
    tags(DISTANCE, tagged);
  const summary = distances.map((value, layer) => `layer ${layer}: ${short(value)}`).join(", ");
  const compared = baselines.map(([name, value]) => `${STYLES[name].label} ${short(value)}`).join(", ");
  svg.setAttribute("aria-label", `Half the squared distance from the oracle. ${summary}. ${compared}.`);
}
