/** View 3: the adjusted loss at each noise level, measured in Python (lines) and in the page (marks). */

import {
  axes, frame, linear, logarithmic, mark, path, px, segment, short, tags, type Frame, type Point, type Scale, type Tag,
} from "../chart";
import type { Curve } from "../data";
import type { LiveProfile } from "../live";
import { BASELINES, STYLES, type Method } from "../styles";
import { largest, type Noise } from "../noise";
import type { View } from "../view";

const NARROW = matchMedia("(max-width: 760px)");
const DECADES = 6; // shown at most
const MAX_LOSS = 100; // losses above it lie on the edge

/** The noise levels of a profile. */
export function noiseStdsOf(view: View): number[] {
  const measured = view.subject.curves?.levels;
  if (measured) return measured;
  const { noise } = view.subject;
  const top = noise.kind === "atoms" ? Math.max(6, largest(noise) + 1) : noise.high + 1;
  return Array.from({ length: 25 }, (_, i) => (top * i) / 24);
}

/** Whether the losses measured in Python, at the training n, are for the n that is shown. */
export function isAsMeasured(view: View): boolean {
  return view.state.numExamples === view.subject.model.context && view.subject.curves !== null;
}

interface Line {
  name: Method;
  points: [noiseStd: number, loss: number][];
  dominated: { noiseStd: number; median: number | null; mean: number | null }[]; // not in the line
}

/** Draw the chart. */
export function drawProfile(svg: SVGElement, note: HTMLElement, view: View, live: LiveProfile): void {
  const narrow = NARROW.matches;
  const box = narrow ? frame(440, 380, 76) : frame(900, 380, 88);
  svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  const family = view.subject.model.family;
  const lines = linesOf(view, live);
  const marks = live.noiseStds
    .map((noiseStd, i) => ({ noiseStd, mean: live.model[i].mean, error: live.model[i].error, numValues: live.model[i].numValues }))
    .filter(({ numValues }) => numValues > 0);
  const values = [...lines.flatMap(({ points }) => points.map(([, loss]) => loss)), ...marks.map(({ mean }) => mean)];
  const y = lossScale(values, box);
  const top = live.noiseStds[live.noiseStds.length - 1];
  const x = linear(0, top, box.left, box.right, narrow ? 6 : 10);
  const toPixels = ([noiseStd, loss]: [number, number]): Point => [x(noiseStd), y(loss)];
  const ends: Tag[] = lines.map(({ name, points }) => ({
    at: y(points[points.length - 1][1]),
    text: STYLES[name].label,
    colour: STYLES[name].colour,
  }));
  const here = view.state.noiseStd <= top ? x(view.state.noiseStd) : null;
  svg.innerHTML =
    shade(view.subject.noise, x, box) +
    axes(box, x, y, "Noise level σ", "Adjusted loss") +
    (here === null ? "" : segment([here, box.top], [here, box.bottom], "var(--soft)", 1, 'stroke-dasharray="2 3"')) +
    lines.map(({ name, points }) => path(points.map(toPixels), STYLES[name], name === family ? 2.4 : 1.6)).join("") +
    lines.map((line) => rings(line, x, y)).join("") +
    dots(live, x, y) +
    marks.map(({ noiseStd, mean, error }) => bar(x(noiseStd), y, mean, error, family)).join("") +
    tags(box, ends.length ? ends : [{ at: box.top, text: STYLES[family].label, colour: STYLES[family].colour }]);
  note.textContent = noteOf(view, live) + dominatedNote(lines);
  svg.setAttribute("aria-label", describe(view, lines, marks));
}

/** Lines measured in Python where they are for the chosen n; else lines of the baselines, measured here. */
function linesOf(view: View, live: LiveProfile): Line[] {
  const { curves, name, model } = view.subject;
  const lines: Line[] = [];
  const add = (method: Method, curve: Curve | undefined) => {
    const losses = curve?.loss ?? [];
    const isDominated = (i: number) => curve?.dominated?.[i] ?? false;
    const points = live.noiseStds
      .map((noiseStd, i): [number, number | null] => [noiseStd, isDominated(i) ? null : losses[i]])
      .filter((point): point is [number, number] => point[1] !== null && point[1] > 0 && Number.isFinite(point[1]));
    const dominated = live.noiseStds
      .map((noiseStd, i) => ({ noiseStd, median: curve?.median?.[i] ?? null, mean: losses[i] }))
      .filter((_, i) => isDominated(i));
    if (points.length > 1) lines.push({ name: method, points, dominated });
  };
  if (isAsMeasured(view) && curves) {
    for (const method of BASELINES) add(method, curves.baselines[method]);
    if (curves.models[name]) add(model.family, curves.models[name]);
  } else if (live.done > 0) {
    for (const method of BASELINES) add(method, { loss: live.baselines[method].map((mean) => mean.mean), error: [] });
  }
  return lines;
}

function lossScale(values: number[], box: Frame): Scale {
  const finite = values.filter((value) => value > 0 && Number.isFinite(value));
  const top = 10 ** Math.ceil(Math.log10(Math.min(Math.max(...finite, 0.1), MAX_LOSS)) - 1e-9);
  const bottom = Math.max(10 ** Math.floor(Math.log10(Math.min(...finite, 0.1))), top / 10 ** DECADES);
  return logarithmic(bottom, top, box.bottom, box.top);
}

function shade(noise: Noise, x: Scale, box: Frame): string {
  const height = box.bottom - box.top;
  const band = (from: number, to: number) =>
    `<rect x="${px(from)}" y="${box.top}" width="${px(to - from)}" height="${height}" fill="var(--shade)"/>`;
  if (noise.kind === "uniform" && noise.low < noise.high) return band(x(noise.low), x(noise.high));
  const atoms = noise.kind === "uniform" ? [noise.low] : noise.values;
  return atoms.map((value) => band(Math.max(x(value) - 6, box.left), x(value) + 6)).join("");
}

function bar(at: number, y: Scale, mean: number, error: number, family: Method): string {
  const style = STYLES[family];
  const [low, high] = [y(Math.max(mean - 2 * error, y.low)), y(mean + 2 * error)];
  const title = `measured here: ${short(mean)} ± ${short(error, 2)}`;
  if (mean >= y.high) return mark([at, y(y.high)], style, 4, title); // off the chart
  return (
    segment([at, low], [at, high], style.colour, 1.5) +
    mark([at, y(mean)], style, 4, title, 'stroke="var(--card)" stroke-width=".8"')
  );
}

/** Rings on the upper edge, where few sequences dominate the mean. */
function rings({ name, dominated }: Line, x: Scale, y: Scale): string {
  const style = `fill="var(--card)" stroke="${STYLES[name].colour}" stroke-width="1.5"`;
  return dominated
    .map(({ noiseStd, median, mean }) => {
      const title = `few sequences dominate the mean, ${short(mean)}; the median is ${short(median ?? NaN)}`;
      return `<circle cx="${px(x(noiseStd))}" cy="${px(y(y.high))}" r="4" ${style}><title>${title}</title></circle>`;
    })
    .join("");
}

function dominatedNote(lines: Line[]): string {
  const numLevels = lines.reduce((sum, { dominated }) => sum + dominated.length, 0);
  return numLevels ? " Rings: few sequences dominate the mean there, which is not in the line." : "";
}

/** The Bayes predictor, measured here. */
function dots(live: LiveProfile, x: Scale, y: Scale): string {
  return live.noiseStds
    .map((noiseStd, i) => ({ noiseStd, loss: live.baselines.bayes[i] }))
    .filter(({ loss }) => loss.numValues > 0 && loss.mean > 0)
    .map(({ noiseStd, loss }) => mark([x(noiseStd), y(loss.mean)], STYLES.bayes, 2.6, `Bayes, measured here: ${short(loss.mean)}`))
    .join("");
}

function noteOf(view: View, live: LiveProfile): string {
  const done = `Here: ${live.done} sequences a level at n = ${view.state.numExamples}, ${view.damping ? "damped" : "as printed"}.`;
  const { curves, model } = view.subject;
  if (!isAsMeasured(view)) {
    return `${done} Lines of baselines are measured here as well, since Python’s are for n = ${model.context}.`;
  }
  const intact = view.state.disabled.length ? ", with everything switched on" : "";
  return `${done} In Python: ${curves?.sequences.toLocaleString("en")}, as printed${intact}.`;
}

function describe(view: View, lines: Line[], marks: { noiseStd: number; mean: number }[]): string {
  const nearest = marks.reduce(
    (best, entry) => (Math.abs(entry.noiseStd - view.state.noiseStd) < Math.abs(best.noiseStd - view.state.noiseStd) ? entry : best),
    { noiseStd: Infinity, mean: NaN },
  );
  const compared = lines.map(({ name }) => STYLES[name].label).join(", ");
  const here = `At σ = ${short(nearest.noiseStd)} the model's loss is ${short(nearest.mean)}`;
  return `Adjusted loss against the noise level, for ${view.subject.name} and ${compared}. ${here}.`;
}
