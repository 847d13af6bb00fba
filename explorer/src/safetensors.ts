/** Model files of lintra: a safetensors file with the family's own numbers, metadata and a checksum. */

import type { Family, Model } from "./models";

export interface ModelFile {
  model: Model;
  noise: string; // the prior it was trained on, empty where that is not known
  checked: boolean; // whether the browser could compute the checksum
}

interface Tensor {
  dtype: string;
  shape: number[];
  bytes: Uint8Array<ArrayBuffer>;
}

const FORMAT = "lintra-model-1";
const OWN: Record<Family, string[]> = { "gd++": ["rates"], diag: ["p", "q"], full: ["p", "q"] };
const TYPES: Record<string, [name: string, width: number]> = { F64: ["float64", 8], F32: ["float32", 4] };

/** Read a model; every file that is not one is refused with a sentence. */
export async function readModelFile(content: ArrayBuffer): Promise<ModelFile> {
  const { tensors, metadata } = parse(content);
  if (metadata.format !== FORMAT) {
    const kind = metadata.format ?? "unknown";
    throw new Error(`This file is not a model of lintra: its format is “${kind}”, not “${FORMAT}”.`);
  }
  const { sha256, ...signed } = metadata;
  const found = await digest(tensors, signed);
  if (found !== null && found !== sha256) {
    throw new Error("This file was altered: its content does not match the checksum written with it.");
  }
  return { model: build(tensors, metadata), noise: metadata.noise ?? "", checked: found !== null };
}

function parse(content: ArrayBuffer): { tensors: Map<string, Tensor>; metadata: Record<string, string> } {
  const whole = "This file is not a whole safetensors file";
  if (content.byteLength < 8) throw new Error(`${whole}: it has ${content.byteLength} bytes.`);
  const length = Number(new DataView(content).getBigUint64(0, true));
  if (length > content.byteLength - 8) throw new Error(`${whole}: it ends inside its header.`);
  let header: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>;
  try {
    header = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 8, length)));
  } catch {
    throw new Error(`${whole}: its header cannot be read.`);
  }
  const { __metadata__: metadata, ...entries } = header as typeof header & { __metadata__?: Record<string, string> };
  const tensors = new Map<string, Tensor>();
  for (const [name, { dtype, shape, data_offsets: [start, end] }] of Object.entries(entries)) {
    const width = TYPES[dtype]?.[1];
    if (!width) throw new Error(`The array “${name}” holds numbers of type ${dtype}; F64 or F32 is needed.`);
    const wrong = end - start !== width * shape.reduce((a, b) => a * b, 1);
    if (wrong || 8 + length + end > content.byteLength) throw new Error(`${whole}: the array “${name}” is cut off.`);
    tensors.set(name, { dtype, shape, bytes: new Uint8Array(content.slice(8 + length + start, 8 + length + end)) });
  }
  return { tensors, metadata: metadata ?? {} };
}

function build(tensors: Map<string, Tensor>, metadata: Record<string, string>): Model {
  const family = metadata.family as Family;
  if (!(family in OWN)) throw new Error(`The family “${metadata.family}” is not known; it must be gd++, diag or full.`);
  const [layers, heads, dim, context] = ["layers", "heads", "dim", "context"].map((name) => Number(metadata[name]));
  if (![layers, heads, dim, context].every((value) => Number.isInteger(value) && value > 0)) {
    throw new Error("The file does not say how many layers, heads, inputs and examples the model is for.");
  }
  const expected = family === "full" ? [layers, heads, dim + 1, dim + 1] : [layers, heads, 2];
  const parameters: Record<string, Float64Array> = {};
  for (const name of OWN[family]) {
    const tensor = tensors.get(`own.${name}`);
    if (!tensor) throw new Error(`The file lacks the array “own.${name}” of a model of the family ${family}.`);
    if (tensor.shape.join() !== expected.join()) {
      throw new Error(`“own.${name}” must have shape (${expected.join(", ")}), got (${tensor.shape.join(", ")}).`);
    }
    parameters[name] = numbers(tensor);
    if (!parameters[name].every(Number.isFinite)) throw new Error(`“own.${name}” holds a number that is not finite.`);
  }
  return { family, layers, heads, context, dim, parameters };
}

function numbers({ dtype, bytes }: Tensor): Float64Array {
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
