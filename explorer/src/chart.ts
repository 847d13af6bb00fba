/** Charts as SVG text: scales, axes, lines and marks in a box of fixed size, so that the layout never moves. */

import type { Style } from "./styles";

export interface Scale {
  (value: number): number;
  ticks: number[];
  low: number;
  high: number;
  log: boolean;
}

export type Point = readonly [x: number, y: number];

/** A linear scale from values to pixels. */
export function linear(low: number, high: number, from: number, to: number, numTicks = 5): Scale {
  const scale = (value: number) => from + ((value - low) / (high - low || 1)) * (to - from);
  return Object.assign(scale, { ticks: niceTicks(low, high, numTicks), low, high, log: false });
}

/** A logarithmic scale; values outside are drawn on the edge. */
export function logarithmic(low: number, high: number, from: number, to: number, numTicks = 7): Scale {
  const [bottom, top] = [Math.log10(low), Math.log10(high)];
  const scale = (value: number) => {
    const clipped = Math.min(Math.max(Math.log10(value), bottom), top);
    return from + ((clipped - bottom) / (top - bottom || 1)) * (to - from);
  };
  const step = Math.max(1, Math.ceil((top - bottom) / numTicks));
  const ticks: number[] = [];
  for (let power = Math.ceil(bottom - 1e-9); power <= top + 1e-9; power += step) ticks.push(10 ** power);
  return Object.assign(scale, { ticks, low, high, log: true });
}

function niceTicks(low: number, high: number, numTicks: number): number[] {
  const raw = (high - low) / numTicks || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw * 0.999)!;
  const ticks: number[] = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + 1e-9 * step; value += step) {
    ticks.push(Math.abs(value) < 1e-12 * step ? 0 : Number(value.toPrecision(12)));
  }
  return ticks;
}

/** A letter with a small one below it, in SVG. */
export function below(letter: string, index: string): string {
  return `${letter}<tspan dy="3" font-size="75%">${index}</tspan><tspan dy="-3">\u200b</tspan>`;
}

/** A number in few characters. */
export function short(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined) return "∞";
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size < 1e-20) return "0";
  const text = size < 1e-3 || size >= 1e5 ? value.toExponential(Math.max(digits - 2, 0)) : withDigits(value, digits);
  return text.replaceAll("-", "−").replace("e+", "e");
}

function withDigits(value: number, digits: number): string {
  const leading = Math.floor(Math.log10(Math.abs(value))) + 1; // digits before the point, or zeros behind it
  return value.toFixed(Math.min(Math.max(digits - Math.max(leading, leading < 0 ? -1 : 0), 0), 4));
}

/** A number on an axis. */
function tickText(value: number, log: boolean): string {
  if (!log) return String(value).replace("-", "−");
  const power = Math.round(Math.log10(value));
  if (power >= -3 && power <= 3) return String(Number(value.toPrecision(3)));
  return `10<tspan dy="-5" font-size="9">${String(power).replace("-", "−")}</tspan>`;
}

export interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** The area that is drawn on, with room for labels. */
export function frame(width: number, height: number, right = 14): Frame {
  return { width, height, left: 58, right: width - right, top: 14, bottom: height - 42 };
}

/** Grid lines, numbers and titles of both axes. */
export function axes(box: Frame, x: Scale, y: Scale, xTitle: string, yTitle: string): string {
  const vertical = x.ticks.map(
    (tick) =>
      `<line class="grid" x1="${px(x(tick))}" x2="${px(x(tick))}" y1="${box.top}" y2="${box.bottom}"/>` +
      `<text class="tick" x="${px(x(tick))}" y="${box.bottom + 16}" text-anchor="middle">${tickText(tick, x.log)}</text>`,
  );
  const horizontal = y.ticks.map(
    (tick) =>
      `<line class="grid" x1="${box.left}" x2="${box.right}" y1="${px(y(tick))}" y2="${px(y(tick))}"/>` +
      `<text class="tick" x="${box.left - 6}" y="${px(y(tick) + 4)}" text-anchor="end">${tickText(tick, y.log)}</text>`,
  );
  const [middleX, middleY] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  return (
    vertical.join("") +
    horizontal.join("") +
    `<text class="axis" x="${middleX}" y="${box.height - 6}" text-anchor="middle">${xTitle}</text>` +
    `<text class="axis" transform="translate(14 ${middleY}) rotate(-90)" text-anchor="middle">${yTitle}</text>`
  );
}

/** A line through points. */
export function path(points: readonly Point[], style: Style, width = 1.8, extra = ""): string {
  if (points.length < 2) return "";
  const d = points.map(([x, y], i) => `${i ? "L" : "M"}${px(x)} ${px(y)}`).join("");
  const dash = style.dash ? ` stroke-dasharray="${style.dash}"` : "";
  return `<path d="${d}" fill="none" stroke="${style.colour}" stroke-width="${width}"${dash} ${extra}/>`;
}

/** A straight line between two points. */
export function segment(from: Point, to: Point, colour: string, width = 1, extra = ""): string {
  const ends = `x1="${px(from[0])}" y1="${px(from[1])}" x2="${px(to[0])}" y2="${px(to[1])}"`;
  return `<line ${ends} stroke="${colour}" stroke-width="${width}" ${extra}/>`;
}

/** A text at a point, readable above lines. */
export function textAt(at: Point, content: string, colour: string, anchor = "start"): string {
  const position = `x="${px(at[0])}" y="${px(at[1])}" text-anchor="${anchor}"`;
  return `<text class="name halo" ${position} fill="${colour}">${escape(content)}</text>`;
}

/** A mark at a point, with a title that is shown when the pointer is on it. */
export function mark(at: Point, style: Style, size: number, title = "", extra = ""): string {
  const [x, y] = at;
  const tooltip = title ? `<title>${escape(title)}</title>` : "";
  const fill = `fill="${style.colour}" ${extra}`;
  const round = `cx="${px(x)}" cy="${px(y)}" r="${size}"`;
  if (style.mark === "ring") {
    return `<circle ${round} fill="none" stroke="${style.colour}" stroke-width="2.2" ${extra}>${tooltip}</circle>`;
  }
  if (style.mark === "circle") return `<circle ${round} ${fill}>${tooltip}</circle>`;
  if (style.mark === "cross") {
    const d = `M${px(x - size)} ${px(y - size)}l${2 * size} ${2 * size}m0 ${-2 * size}l${-2 * size} ${2 * size}`;
    return `<path d="${d}" fill="none" stroke="${style.colour}" stroke-width="2" ${extra}>${tooltip}</path>`;
  }
  const corners = SHAPES[style.mark].map(([dx, dy]) => `${px(x + dx * size)},${px(y + dy * size)}`);
  return `<polygon points="${corners.join(" ")}" ${fill}>${tooltip}</polygon>`;
}

const SHAPES: Record<string, Point[]> = {
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  triangle: [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]],
  diamond: [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]],
  star: Array.from({ length: 10 }, (_, i): Point => {
    const [radius, angle] = [i % 2 ? 0.6 : 1.5, (Math.PI * i) / 5 - Math.PI / 2];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  }),
};

/** Marks and names of methods in a row. */
export function legend(at: Point, styles: readonly Style[], step: number): string {
  return styles
    .map((style, i) => {
      const x = at[0] + i * step;
      return mark([x, at[1]], style, 4.5) + textAt([x + 10, at[1] + 4], style.label, inked(style.colour));
    })
    .join("");
}

/** A colour dark enough to read, or in dark mode light enough. */
function inked(colour: string): string {
  return `color-mix(in srgb, ${colour} 72%, var(--ink))`;
}

export interface Tag {
  at: number;
  text: string;
  colour: string;
}

/** Labels at the right edge beside the lines that they name, moved apart where they would overlap. */
export function tags(box: Frame, list: readonly Tag[], gap = 13): string {
  const sorted = [...list].sort((a, b) => a.at - b.at);
  const positions = sorted.map((tag) => tag.at);
  for (let round = 0; round < 40; round++) {
    for (let i = 1; i < positions.length; i++) {
      const overlap = gap - (positions[i] - positions[i - 1]);
      if (overlap > 0) [positions[i - 1], positions[i]] = [positions[i - 1] - overlap / 2, positions[i] + overlap / 2];
    }
    for (let i = 0; i < positions.length; i++) positions[i] = Math.min(Math.max(positions[i], box.top), box.bottom);
  }
  return sorted
    .map((tag, i) => {
      const y = px(positions[i] + 4);
      const link = `<path class="link" d="M${box.right + 1} ${px(tag.at)}L${box.right + 9} ${px(positions[i])}"/>`;
      return `${link}<text class="tag" x="${box.right + 12}" y="${y}" fill="${inked(tag.colour)}">${escape(tag.text)}</text>`;
    })
    .join("");
}

/** A pixel with one digit behind the point, however far away. */
export function px(value: number): string {
  return (Math.round(Math.min(Math.max(value, -9999), 9999) * 10) / 10).toString();
}

/** Text that is safe inside markup. */
export function escape(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
