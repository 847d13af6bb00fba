/** View 6: a reader's own model file. */

import { element } from "../controls";
import type { Model } from "../models";
import { readModelFile } from "../safetensors";

export interface OwnModel {
  name: string;
  model: Model;
  noise: string;
}

/** Listen to the file input and to the way back; a bad file gets a sentence and changes nothing. */
export function listenToFile(open: (model: OwnModel | null) => void): void {
  const input = element<HTMLInputElement>("file");
  const say = (sentence: string, bad = false) => {
    element("file-message").textContent = sentence;
    element("file-message").classList.toggle("bad", bad);
  };
  input.addEventListener("change", async () => {
    const file = input.files?.[0];
    if (!file) return;
    try {
      const { model, noise, checked } = await readModelFile(await file.arrayBuffer());
      open({ name: file.name, model, noise });
      const heads = `${model.heads} ${model.heads > 1 ? "heads" : "head"}`;
      const size = `${model.family}, ${model.layers} layers, ${heads}, d = ${model.dim}`;
      say(`Opened ${file.name}: ${size}.${checked ? "" : " This browser could not check its checksum."}`);
    } catch (error) {
      say(`${file.name}: ${(error as Error).message}`, true);
    }
    input.value = "";
  });
  element("own-close").addEventListener("click", () => {
    open(null);
    say("");
  });
}
