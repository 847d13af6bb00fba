/** The hash of the page's source, by which a committed page is known to be up to date. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = import.meta.dirname;
const LEFT_OUT = new Set(["node_modules", "dist"]);

/** SHA-256 over the names and contents of all source files, in the order of their names. */
export function sourceHash(): string {
  const hash = createHash("sha256");
  for (const name of files("").sort()) {
    hash.update(`${name}\n`);
    hash.update(readFileSync(join(ROOT, name)));
  }
  return hash.digest("hex");
}

function files(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (LEFT_OUT.has(entry.name)) return [];
    const name = folder ? `${folder}/${entry.name}` : entry.name;
    return entry.isDirectory() ? files(name) : [name];
  });
}
