/** View 1: the examples of the context, and the prediction for the query after each layer. */

import { axes, below, frame, linear, mark, path, segment, short, tags, textAt, type Point, type Tag } from "../chart";
import { STYLES, type Style } from "../styles";
import { dot } from "../matrix";
import type { View } from "../view";
import { divides, divisorText } from "./damping";

const BOX = frame(440, 330);
const LABEL: Style = { ...STYLES.truth, mark: "circle" };
const STEPS = frame(440, 330, 106);

/** Draw both charts. */
export function drawContext(scatter: SVGElement, steps: SVGElement, view: View): void {
  drawScatter(scatter, view);
  drawSteps(steps, view);
}

function drawScatter(svg: SVGElement, view: View): void {
  const { sequence, state, subject } = view;
  const style = STYLES[subject.model.family];
  const reach = 2.4 * Math.sqrt(dot(sequence.weights, sequence.weights)) + 1.6 * state.noiseStd; // smooth in σ
  const x = linear(-reach, reach, BOX.left, BOX.right);
  const y = linear(-reach, reach, BOX.bottom, BOX.top);
  const weights = view.path[state.layer];
  const inside = (value: number) => y(Math.min(Math.max(value, -reach), reach));
  const examples = sequence.inputs.map((input, i) => {
    const [truth, label, value] = [dot(sequence.weights, input), view.labels[i], dot(weights, input)];
    const title = `Example ${i + 1}: true value ${short(truth)}, label ${short(label)}, model ${short(value)}`;
    const [seen, made]: [Point, Point] = [[x(truth), inside(label)], [x(truth), inside(value)]];
    return (
      segment(seen, made, "var(--line)") + mark(seen, LABEL, 3.6, title, 'opacity=".6"') + mark(made, style, 3.2, title)
    );
  });
  const prediction = dot(weights, sequence.query);
  const title = `Query: true value ${short(view.truth)}, model ${short(prediction)}`;
  const query: Point = [x(view.truth), inside(prediction)];
  svg.innerHTML =
    axes(BOX, x, y, `True value ⟨${below("w", "τ")}, x⟩`, "Label, and model") +
    path([[x(-reach), y(-reach)], [x(reach), y(reach)]], STYLES.truth, 1.2) +
    examples.join("") +
    segment([x(view.truth), y(view.truth)], query, style.colour, 2) +
    mark(query, style, 7.5, title, 'stroke="var(--card)" stroke-width="1.5"') +
    textAt([query[0] - 12, query[1] + 4], "query", style.colour, "end");
  const summary = `${sequence.inputs.length} examples: labels, and ${style.label} after layer ${state.layer}, against true values`;
  svg.setAttribute("aria-label", `${summary}. ${title}.`);
}

function drawSteps(svg: SVGElement, view: View): void {
  const { query } = view.sequence;
  const style = STYLES[view.subject.model.family];
  const predictions = view.path.map((weights) => dot(weights, query));
  const lines = {
    truth: view.truth,
    oracle: dot(view.oracle, query),
    bayes: dot(view.baselines.bayes, query),
    ols: dot(view.baselines.ols, query),
  };
  const [low, high] = extent([...Object.values(lines), 0], predictions);
  const x = linear(0, predictions.length - 1, STEPS.left, STEPS.right, predictions.length - 1);
  const y = linear(low, high, STEPS.bottom, STEPS.top);
  const inside = (value: number) => (Number.isNaN(value) ? STEPS.top : y(Math.min(Math.max(value, low), high)));
  const names = Object.keys(lines) as (keyof typeof lines)[];
  const horizontal = (name: keyof typeof lines) =>
    path([[STEPS.left, inside(lines[name])], [STEPS.right, inside(lines[name])]], STYLES[name], 1.6);
  const labels: Tag[] = names.map((name) => ({
    at: inside(lines[name]),
    text: `${STYLES[name].label} ${short(lines[name])}`,
    colour: STYLES[name].colour,
  }));
  const marks = predictions.map((value, layer) => {
    const r = view.divisors.layers[layer - 1] ?? 1;
    const title = `After layer ${layer}: ${short(value)}${divides(r) ? `, step divided by ${divisorText(r)}` : ""}`;
    return mark([x(layer), inside(value)], style, layer === view.state.layer ? 7 : 4.5, title);
  });
  const ticks = Object.assign(x, { ticks: predictions.map((_, layer) => layer) });
  svg.innerHTML =
    axes(STEPS, ticks, y, "After layer", "Prediction for the query") +
    names.map(horizontal).join("") +
    path(predictions.map((value, layer) => [x(layer), inside(value)]), { ...style, dash: undefined }, 2.2) +
    marks.join("") +
    tags(STEPS, labels);
  const summary = predictions.map((value, layer) => `layer ${layer}: ${short(value)}`).join(", ");
  const compared = names.map((name) => `${STYLES[name].label} ${short(lines[name])}`).join(", ");
  svg.setAttribute("aria-label", `Prediction for the query after every layer. ${summary}. ${compared}.`);
}

/** A range with the fixed values, and those moving values that do not make it much larger. */
function extent(fixed: number[], moving: number[]): [number, number] {
  const [low, high] = [Math.min(...fixed), Math.max(...fixed)];
  const room = 1.5 * Math.max(high - low, 0.5);
  const near = moving.filter((value) => value > low - room && value < high + room);
  const [bottom, top] = [Math.min(low, ...near), Math.max(high, ...near)];
  const edge = 0.08 * Math.max(top - bottom, 0.1);
  return [bottom - edge, top + edge];
}
