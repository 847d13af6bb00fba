/** How the page is built: one file, with its equations made into MathML and the hash of its source in it. */

import katex from "katex";
import { resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";
import { sourceHash } from "./source.ts";

const DOUBLE: Record<string, string> = { E: "𝔼", R: "ℝ" }; // browsers no longer make these themselves

/** `<tex>…</tex>` becomes MathML, so that the page needs no program and no font for it. */
function equations(): Plugin {
  return {
    name: "equations",
    transformIndexHtml: {
      order: "pre",
      handler: (html) =>
        html.replace(/<tex>(.*?)<\/tex>/gs, (_, tex: string) =>
          katex
            .renderToString(tex.replaceAll("&amp;", "&"), { output: "mathml", throwOnError: true })
            .replace(/<annotation.*?<\/annotation>/s, "")
            .replace(/<mi mathvariant="double-struck">(.)<\/mi>/g, (_, letter: string) => `<mi>${DOUBLE[letter]}</mi>`),
        ),
    },
  };
}

function stamp(): Plugin {
  return {
    name: "stamp",
    transformIndexHtml: (html) => html.replace("SOURCE_HASH", sourceHash()),
  };
}

export default defineConfig({
  base: "./",
  plugins: [equations(), stamp(), viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    outDir: process.env.LINTRA_PAGE ?? "dist",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // which know light-dark()
    assetsInlineLimit: Infinity,
    reportCompressedSize: false,
    rollupOptions: { input: resolve(import.meta.dirname, "explorer.html") },
  },
});
