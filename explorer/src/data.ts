/** The data that Python put into the page: models, Table 1 of the paper, and measured losses. */

import { readDamping } from "./damping";
import type { Family, Model } from "./models";
import type { Tuning } from "./ridge";

export interface Card {
  family: Family;
  layers: number;
  heads: number;
  context: number;
  dim: number;
  noise: string;
  adjusted_loss: number | null; // as printed; null where it is infinite
  standard_error: number | null;
  median: number | null;
  worst: number | null;
  damped: { adjusted_loss: number; standard_error: number; worst: number } | null; // on the same sequences
  num_exploded: number | null; // damped, of the sequences of the gate; null where they were not counted
  printed_num_exploded: number | null;
  gate_sequences: number | null;
  damping: unknown; // thresholds; null where there are none
  parameters: Record<string, string>; // float64 in base64
}

export interface Curve {
  loss: (number | null)[]; // null where it is infinite
  error: (number | null)[];
  median?: (number | null)[];
  dominated?: boolean[]; // whether few sequences dominate the mean
}

export interface PriorCurves {
  levels: number[];
  sequences: number;
  tuned: Tuning;
  prior: Record<string, Curve>; // of baselines, on the prior itself
  baselines: Record<string, Curve>;
  models: Record<string, Curve>;
}

export interface Data {
  models: Record<string, Card>;
  paper: [method: string, layers: number | null, noise: string, loss: number][];
  noises: string[];
  curves: Record<string, PriorCurves | undefined>;
}

/** Read the data out of the page; a page that was never filled has no models. */
export function readData(): Data {
  const text = document.getElementById("lintra-data")?.textContent ?? "null";
  return (JSON.parse(text) as Data | null) ?? { models: {}, paper: [], noises: [], curves: {} };
}

const decoded = new Map<Card, Model>();

/** The model on a card. */
export function modelOf(card: Card): Model {
  let model = decoded.get(card);
  if (!model) {
    const { family, layers, heads, context, dim } = card;
    const parameters = Object.fromEntries(Object.entries(card.parameters).map(([name, text]) => [name, floats(text)]));
    const damping = card.damping === null ? null : readDamping(card.damping, layers);
    model = { family, layers, heads, context, dim, parameters, damping };
    decoded.set(card, model);
  }
  return model;
}

function floats(base64: string): Float64Array {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

/** The loss of a model on its prior that few sequences do not dominate: as printed, or damped if it explodes. */
export function priorLoss(card: Card): { loss: number | null; isDamped: boolean } {
  const isDamped = (card.printed_num_exploded ?? 0) > 0 && card.damped !== null;
  return { loss: isDamped ? card.damped!.adjusted_loss : card.adjusted_loss, isDamped };
}

/** What the gate has counted, in words. Empty if it has not judged the model. */
export function gateText(card: Card): string {
  if (card.gate_sequences === null || card.printed_num_exploded === null) return "";
  const count = (number: number) => number.toLocaleString("en");
  return (
    `as printed it explodes on ${count(card.printed_num_exploded)} of ${count(card.gate_sequences)} sequences, ` +
    `damped on ${count(card.num_exploded ?? 0)}`
  );
}

/** The name of a model in the zoo. */
export function nameOf(family: string, layers: number, noise: string, heads: number): string {
  return `${family}-${layers}-${noise}${heads > 1 ? `-h${heads}` : ""}`;
}
