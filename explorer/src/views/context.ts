/** View 1: the examples as the model sees them, and its prediction for the query after every layer. */

import { axes, below, frame, linear, mark, path, segment, short, tags, word, type Point, type Tag } from "../chart";
import { LOOKS, type Look } from "../looks";
import { dot } from "../matrix";
import type { View } from "../view";

const BOX = frame(440, 330);
const LABEL: Look = { ...LOOKS.truth, mark: "circle" };
const STEPS = frame(440, 330, 106);

/** Draw both charts. */
export function drawContext(scatter: SVGElement, steps: SVGElement, view: View): void {
  drawScatter(scatter, view);
  drawSteps(steps, view);
}

function drawScatter(svg: SVGElement, view: View): void {
  const { sequence, state, subject } = view;
  const look = LOOKS[subject.model.family];
  const reach = 2.4 * Math.sqrt(dot(sequence.weights, sequence.weights)) + 1.6 * state.std; // moves smoothly with σ
  const x = linear(-reach, reach, BOX.left, BOX.right);
  const y = linear(-reach, reach, BOX.bottom, BOX.top);
  const weights = view.path[state.after];
  const inside = (value: number) => y(Math.min(Math.max(value, -reach), reach));
  const examples = sequence.inputs.map((input, i) => {
    const [truth, label, value] = [dot(sequence.weights, input), view.labels[i], dot(weights, input)];
    const words = `Example ${i + 1}: true value ${short(truth)}, label ${short(label)}, model ${short(value)}`;
    const [seen, made]: [Point, Point] = [[x(truth), inside(label)], [x(truth), inside(value)]];
    return (
      segment(seen, made, "var(--line)") + mark(seen, LABEL, 3.6, words, 'opacity=".6"') + mark(made, look, 3.2, words)
    );
  });
  const prediction = dot(weights, sequence.query);
  const words = `Query: true value ${short(view.truth)}, model ${short(prediction)}`;
  const query: Point = [x(view.truth), inside(prediction)];
  svg.innerHTML =
    axes(BOX, x, y, `True value ⟨${below("w", "τ")}, x⟩`, "Label, and model") +
    path([[x(-reach), y(-reach)], [x(reach), y(reach)]], LOOKS.truth, 1.2) +
    examples.join("") +
    segment([x(view.truth), y(view.truth)], query, look.colour, 2) +
    mark(query, look, 7.5, words, 'stroke="var(--card)" stroke-width="1.5"') +
    word([query[0] - 12, query[1] + 4], "query", look.colour, "end");
  const told = `${sequence.inputs.length} examples: labels, and ${look.label} after layer ${state.after}, against true values`;
  svg.setAttribute("aria-label", `${told}. ${words}.`);
}

function drawSteps(svg: SVGElement, view: View): void {
  const { query } = view.sequence;
  const look = LOOKS[view.subject.model.family];
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
  const level = (name: keyof typeof lines) =>
    path([[STEPS.left, inside(lines[name])], [STEPS.right, inside(lines[name])]], LOOKS[name], 1.6);
  const labels: Tag[] = names.map((name) => ({
    at: inside(lines[name]),
    text: `${LOOKS[name].label} ${short(lines[name])}`,
    colour: LOOKS[name].colour,
  }));
  const marks = predictions.map((value, layer) =>
    mark([x(layer), inside(value)], look, layer === view.state.after ? 7 : 4.5, `After layer ${layer}: ${short(value)}`),
  );
  const ticks = Object.assign(x, { ticks: predictions.map((_, layer) => layer) });
  svg.innerHTML =
    axes(STEPS, ticks, y, "After layer", "Prediction for the query") +
    names.map(level).join("") +
    path(predictions.map((value, layer) => [x(layer), inside(value)]), { ...look, dash: undefined }, 2.2) +
    marks.join("") +
    tags(STEPS, labels);
  const told = predictions.map((value, layer) => `layer ${layer}: ${short(value)}`).join(", ");
  const levels = names.map((name) => `${LOOKS[name].label} ${short(lines[name])}`).join(", ");
  svg.setAttribute("aria-label", `Prediction for the query after every layer. ${told}. ${levels}.`);
}

/** A range that holds the fixed values, and of the moving ones as much as does not flatten the rest. */
function extent(fixed: number[], moving: number[]): [number, number] {
  const [low, high] = [Math.min(...fixed), Math.max(...fixed)];
  const room = 1.5 * Math.max(high - low, 0.5);
  const kept = moving.filter((value) => value > low - room && value < high + room);
  const [bottom, top] = [Math.min(low, ...kept), Math.max(high, ...kept)];
  const edge = 0.08 * Math.max(top - bottom, 0.1);
  return [bottom - edge, top + edge];
}
