/** View 6: a model file of the reader. */

import { element } from "../controls";
import type { Model } from "../models";
import { readModelFile } from "../safetensors";

export interface FileModel {
  name: string;
  model: Model;
  noise: string;
}

/** Listen to the file input and to the button back to the zoo; a bad file shows a message and changes nothing else. */
export function listenToFile(open: (model: FileModel | null) => void): void {
  const input = element<HTMLInputElement>("file");
  const showMessage = (message: string, isError = false) => {
    element("file-message").textContent = message;
    element("file-message").classList.toggle("bad", isError);
  };
  input.addEventListener("change", async () => {
    const file = input.files?.[0];
    if (!file) return;
    try {
      const { model, noise, checked } = await readModelFile(await file.arrayBuffer());
      open({ name: file.name, model, noise });
      const heads = `${model.heads} ${model.heads > 1 ? "heads" : "head"}`;
      const damping = model.damping ? "with damping" : "without damping";
      const size = `${model.family}, ${model.layers} layers, ${heads}, d = ${model.dim}, ${damping}`;
      showMessage(`Opened ${file.name}: ${size}.${checked ? "" : " This browser could not check its checksum."}`);
    } catch (error) {
      showMessage(`${file.name}: ${(error as Error).message}`, true);
    }
    input.value = "";
  });
  element("opened-close").addEventListener("click", () => {
    open(null);
    showMessage("");
  });
}
