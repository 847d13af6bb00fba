/**
 * Model files of lintra: a safetensors file with P and Q, the family's parameters, metadata and a checksum.
 *
 * The checksum detects accidents, not attackers: all content of a file is validated.
 */

import { readDamping, type Damping } from "./damping";
import type { Family, Model } from "./models";
import { parseNoise } from "./noise";

export interface ModelFile {
  model: Model;
  noise: string; // the prior it was trained on, empty where that is not known
  checked: boolean; // whether the browser could compute the checksum
}

interface Tensor {
  dtype: "F64" | "F32";
  shape: number[];
  bytes: Uint8Array<ArrayBuffer>;
}

const FORMAT = "lintra-model-1";
const PARAMETERS: Record<Family, string[]> = { "gd++": ["rates"], diag: ["p", "q"], full: ["p", "q"] };
const LIMITS = { layers: 1000, heads: 1000, dim: 10_000, context: 1e12 }; // as in Python
const TOLERANCE = { F64: 4 * 2 ** -52, F32: 4 * 2 ** -23 }; // of P and Q, relative to those of the parameters
const TINY = { F64: 2 ** -1022, F32: 2 ** -126 }; // the smallest normal numbers
const TYPES: Record<string, [name: string, width: number]> = { F64: ["float64", 8], F32: ["float32", 4] };

/** Read a model; any other file is rejected with a message. */
export async function readModelFile(content: ArrayBuffer): Promise<ModelFile> {
  const { tensors, metadata } = parse(content);
  if (metadata.format !== FORMAT) {
    const kind = metadata.format ?? "unknown";
    throw new Error(`This file is not a model of lintra: its format is “${kind}”, not “${FORMAT}”.`);
  }
  const { sha256, ...signed } = metadata;
  const computed = await digest(tensors, signed);
  if (computed !== null && computed !== sha256) {
    throw new Error("This file was altered: its content does not match the checksum written with it.");
  }
  const noise = metadata.noise ?? "";
  if (noise) parseNoise(noise);
  return { model: build(tensors, metadata), noise, checked: computed !== null };
}

function parse(content: ArrayBuffer): { tensors: Map<string, Tensor>; metadata: Record<string, string> } {
  const broken = "This file is not an intact safetensors file";
  if (content.byteLength < 8) throw new Error(`${broken}: it has ${content.byteLength} bytes.`);
  const length = Number(new DataView(content).getBigUint64(0, true));
  if (length > content.byteLength - 8) throw new Error(`${broken}: it ends inside its header.`);
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 8, length)));
  } catch {
    throw new Error(`${broken}: its header cannot be read.`);
  }
  if (!isObject(header)) throw new Error(`${broken}: its header is not an object.`);
  const { __metadata__: metadata = {}, ...entries } = header;
  if (!isObject(metadata) || !Object.values(metadata).every((text) => typeof text === "string")) {
    throw new Error(`${broken}: its metadata are not texts.`);
  }
  const tensors = new Map<string, Tensor>();
  for (const [name, entry] of Object.entries(entries)) {
    tensors.set(name, readTensor(name, entry, new Uint8Array(content, 8 + length)));
  }
  return { tensors, metadata: metadata as Record<string, string> };
}

function readTensor(name: string, entry: unknown, data: Uint8Array): Tensor {
  const { dtype, shape, data_offsets: offsets } = isObject(entry) ? entry : {};
  if (typeof dtype !== "string" || !Object.hasOwn(TYPES, dtype)) {
    throw new Error(`The array “${name}” holds numbers of type ${String(dtype)}; F64 or F32 is needed.`);
  }
  if (!areSizes(shape) || !areSizes(offsets) || offsets.length !== 2) {
    throw new Error(`The array “${name}” has no shape, or no offsets in the file.`);
  }
  const isCut = offsets[1] - offsets[0] !== TYPES[dtype][1] * shape.reduce((a, b) => a * b, 1);
  if (isCut || offsets[1] > data.length) {
    throw new Error(`This file is not an intact safetensors file: the array “${name}” is cut off.`);
  }
  return { dtype: dtype as Tensor["dtype"], shape, bytes: data.slice(offsets[0], offsets[1]) as Tensor["bytes"] };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function areSizes(values: unknown): values is number[] {
  return Array.isArray(values) && values.every((value) => Number.isSafeInteger(value) && value >= 0);
}

function build(tensors: Map<string, Tensor>, metadata: Record<string, string>): Model {
  const family = metadata.family as Family;
  if (!Object.hasOwn(PARAMETERS, family)) throw new Error(`The family “${metadata.family}” is not known; it must be gd++, diag or full.`);
  const [layers, heads, dim, context] = Object.entries(LIMITS).map(([name, limit]) => sizeOf(name, metadata[name], limit));
  const names = ["P", "Q", ...PARAMETERS[family].map((name) => `own.${name}`)];
  const extra = [...tensors.keys()].find((name) => !names.includes(name));
  if (extra !== undefined) throw new Error(`A model of the family ${family} has no array “${extra}”.`);
  const square = [layers, heads, dim + 1, dim + 1];
  const shapeOf = (name: string) => (family === "full" || name.length === 1 ? square : [layers, heads, 2]);
  const values = new Map(names.map((name) => [name, finite(name, tensors.get(name), shapeOf(name))]));
  const parameters = Object.fromEntries(PARAMETERS[family].map((name) => [name, values.get(`own.${name}`)!]));
  const damping = parseDamping(metadata.damping, layers);
  const model = { family, layers, heads, context, dim, parameters, damping };
  for (const name of ["P", "Q"] as const) checkMatrix(name, values.get(name)!, tensors.get(name)!.dtype, model);
  return model;
}

/** The thresholds in the metadata, null where a file has none. */
function parseDamping(text: string | undefined, layers: number): Damping | null {
  if (text === undefined) return null;
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    throw new Error("The damping of this file cannot be read: it is not JSON.");
  }
  return readDamping(record, layers);
}

function sizeOf(name: string, text: string | undefined, limit: number): number {
  const size = /^[1-9][0-9]{0,18}$/.test(text ?? "") ? Number(text) : NaN;
  if (!(size <= limit)) throw new Error(`“${name}” must be a whole number from 1 to ${limit}, got “${text ?? ""}”.`);
  return size;
}

/** The numbers of an array, which must have this shape. */
function finite(name: string, tensor: Tensor | undefined, shape: number[]): Float64Array {
  if (!tensor) throw new Error(`The file lacks the array “${name}”.`);
  if (tensor.shape.join() !== shape.join()) {
    throw new Error(`“${name}” must have shape (${shape.join(", ")}), got (${tensor.shape.join(", ")}).`);
  }
  const values = readValues(tensor);
  if (!values.every(Number.isFinite)) throw new Error(`“${name}” holds a number that is not finite.`);
  return values;
}

/** P and Q must be those of the parameters, to rounding. */
function checkMatrix(name: "P" | "Q", computed: Float64Array, dtype: Tensor["dtype"], model: Model): void {
  const size = model.dim + 1;
  const scale = name === "P" ? model.context : 1;
  computed.forEach((value, at) => {
    const [row, column] = [Math.floor(at / size) % size, at % size];
    const expected = expectedEntry(name, model, at, Math.floor(at / size ** 2), row, column) / scale;
    if (Math.abs(value - expected) > TOLERANCE[dtype] * Math.abs(expected) + TINY[dtype]) {
      throw new Error(`“${name}” is not what the family's parameters give.`);
    }
  });
}

/** An entry of `n P` or of Q: of Full as it is, of the others `(x, …, x, y)` on the diagonal. */
function expectedEntry(name: "P" | "Q", model: Model, at: number, head: number, row: number, column: number): number {
  const { family, parameters, dim } = model;
  if (family === "full") return parameters[name === "P" ? "p" : "q"][at];
  if (row !== column) return 0;
  const label = row === dim ? 1 : 0;
  if (family === "gd++") return name === "P" ? parameters.rates[2 * head + label] : 1 - label;
  return parameters[name === "P" ? "p" : "q"][2 * head + label];
}

function readValues({ dtype, bytes }: Tensor): Float64Array {
  const view = new DataView(bytes.buffer);
  const [width, read] = dtype === "F64" ? [8, view.getFloat64.bind(view)] : [4, view.getFloat32.bind(view)];
  return Float64Array.from({ length: bytes.length / width }, (_, i) => read(i * width, true));
}

/** The checksum that lintra writes: over the metadata as Python's JSON, then every array by name. */
async function digest(tensors: Map<string, Tensor>, metadata: Record<string, string>): Promise<string | null> {
  if (!globalThis.crypto?.subtle) return null; // some browsers keep it from pages that came without encryption
  const encode = (text: string) => new TextEncoder().encode(text);
  const fields = Object.keys(metadata).sort().map((name) => `${quoted(name)}: ${quoted(metadata[name])}`);
  const pieces: Uint8Array<ArrayBuffer>[] = [encode(`{${fields.join(", ")}}`)];
  for (const name of [...tensors.keys()].sort()) {
    const { dtype, shape, bytes } = tensors.get(name)!;
    const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
    pieces.push(encode(`${name} ${TYPES[dtype][0]} ${tuple} `), bytes);
  }
  const hash = await crypto.subtle.digest("SHA-256", await new Blob(pieces).arrayBuffer());
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A string as Python's JSON writes it, in ASCII. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
