import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { type Plugin, type ProxyOptions, defineConfig } from "vite";
import { licences } from "./scripts/licences.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const server = process.env.BLOCKBASE_URL ?? "http://127.0.0.1:4000";

/** The file that sets the color scheme before the first paint: hashed, classic, in the head. */
function colorScheme(): Plugin {
  const text = readFileSync(here("scripts/color-scheme.js"), "utf8");
  const name = `color-scheme-${createHash("sha256").update(text).digest("hex").slice(0, 8)}.js`;
  let building = false;
  return {
    name: "color-scheme",
    configResolved(config) {
      building = config.command === "build";
    },
    configureServer(dev) {
      dev.middlewares.use(`/admin/assets/${name}`, (_, answer) => {
        answer.setHeader("content-type", "text/javascript");
        answer.end(text);
      });
    },
    generateBundle() {
      if (building) this.emitFile({ type: "asset", fileName: `assets/${name}`, source: text });
    },
    transformIndexHtml: {
      order: "pre",
      handler: (html) => html.replace("<!--color-scheme-->", `<script vite-ignore src="/admin/assets/${name}"></script>`),
    },
  };
}

// The server compares Origin with its own address, so the proxy speaks in that name.
const proxied: ProxyOptions = { target: server, changeOrigin: true, headers: { origin: new URL(server).origin } };

export default defineConfig({
  base: "/admin/",
  plugins: [react(), colorScheme(), licences()],
  resolve: {
    alias: {
      "@": here("src"),
      // rjsf names its usual validator in a helper for tests. That one compiles schemas, which the policy forbids.
      "@rjsf/validator-ajv8": here("src/components/schema-form/validator.ts"),
      // Descriptions of a block's manifest are text, never markup.
      "markdown-to-jsx/react": here("src/components/schema-form/plain-text.tsx"),
    },
  },
  server: { host: "127.0.0.1", proxy: { "/api": proxied, "/healthz": proxied, "/readyz": proxied } },
  html: { cspNonce: "{nonce}" },
  build: {
    target: "es2023",
    outDir: "dist",
    assetsDir: "assets",
    manifest: true,
    // Data URLs in style sheets would need another source in the policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Dozens of files below 1 KiB would each cost a request. What every page loads is one file, and so are the icons of the
    // screens.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "base", tags: ["$initial"], priority: 2 },
            { name: "icons", test: /@tabler/, includeDependenciesRecursively: false, priority: 1 },
          ],
        },
      },
    },
  },
});
