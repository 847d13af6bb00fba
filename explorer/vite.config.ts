/** How the page is built: one file, with equations as MathML, the hash of its source, and a security policy. */

import katex from "katex";
import { createHash } from "node:crypto";
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

const INLINE = /<(script type="module"|style)[^>]*>(.*?)<\/(?:script|style)>/gs;

/** The page runs its own script and style, which are named by their hashes, and asks for no address. */
function policy(): Plugin {
  return {
    name: "policy",
    enforce: "post",
    generateBundle: {
      order: "post", // after script and style are in the page
      handler: (_, bundle) => {
        for (const file of Object.values(bundle)) {
          if (file.type === "asset" && file.fileName.endsWith(".html")) file.source = withPolicy(String(file.source));
        }
      },
    },
  };
}

function withPolicy(html: string): string {
  const hashes = { script: [] as string[], style: [] as string[] };
  for (const [, tag, content] of html.matchAll(INLINE)) {
    hashes[tag === "style" ? "style" : "script"].push(`'sha256-${sha256(content)}'`);
  }
  const rules = [
    "default-src 'none'",
    `script-src ${hashes.script.join(" ")}`,
    `style-src ${hashes.style.join(" ")}`,
    "img-src data:", // the empty icon
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ];
  const meta = `<meta http-equiv="Content-Security-Policy" content="${rules.join("; ")}">`;
  return html.replace("<!-- CONTENT_SECURITY_POLICY -->", () => meta);
}

function sha256(content: string): string {
  return createHash("sha256").update(content).digest("base64");
}

export default defineConfig({
  base: "./",
  plugins: [equations(), stamp(), viteSingleFile({ removeViteModuleLoader: true }), policy()],
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
