// Builds what the binary embeds, into `built`: assets named by their content, the page that refers to them, and their list.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

// Relative to the page's address, /api/v1/graphql.
const ASSETS = "graphql/assets/";
// Those of deny.toml that occur, and one that asks for nothing.
const LICENCES = ["MIT", "Apache-2.0", "BSD-2-Clause", "0BSD"];

const here = (path) => new URL(path, import.meta.url).pathname;

const common = {
  absWorkingDir: here("."),
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  outdir: "built",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  legalComments: "none",
  logLevel: "warning",
  target: "es2022",
};

const prettierPlugins = {
  name: "prettier-plugins",
  setup(build) {
    build.onResolve({ filter: /^prettier\/(plugins\/estree|parser-babel)$/ }, () => ({ path: here("json-format.js") }));
    // The older name is of a CommonJS module, whose members esbuild does not give by name.
    build.onResolve({ filter: /^prettier\/parser-graphql$/ }, ({ importer, resolveDir, kind }) =>
      build.resolve("prettier/plugins/graphql", { importer, resolveDir, kind }),
    );
  },
};

const scripts = await build({
  ...common,
  entryPoints: {
    main: "main.js",
    "editor.worker": "monaco-editor/esm/vs/editor/editor.worker.js",
    "graphql.worker": "monaco-graphql/esm/graphql.worker.js",
    "json.worker": "monaco-editor/esm/vs/language/json/json.worker.js",
  },
  format: "esm",
  splitting: true,
  define: { "process.env.NODE_ENV": '"production"' },
  // The style sheet has all of it.
  loader: { ".css": "empty" },
  plugins: [prettierPlugins],
});
const styles = await build({ ...common, entryPoints: ["style.css"], loader: { ".ttf": "file" } });

const files = new Map();
for (const file of [...scripts.outputFiles, ...styles.outputFiles]) files.set(file.path.split("/").pop(), file.contents);
const licences = Buffer.from(licenceTexts([scripts.metafile, styles.metafile]));
files.set(`licences-${hash(licences)}.txt`, licences);

const page = readFileSync(here("page.html"), "utf8").replace(/\{([a-z.]+)\.([a-z]+)\}/g, (_, stem, type) => {
  const named = new RegExp(`^${stem.replace(".", "\\.")}-[A-Z0-9]{8}\\.${type}$`);
  const found = [...files.keys()].filter((name) => named.test(name));
  if (found.length !== 1) throw new Error(`${stem}.${type} is ${found.join(" and ") || "nothing"}`);
  return ASSETS + found[0];
});

rmSync(here("built"), { recursive: true, force: true });
mkdirSync(here("built"));
const names = [...files.keys()].sort();
for (const name of names) {
  writeFileSync(here(`built/${name}.gz`), execFileSync("gzip", ["-9n"], { input: files.get(name), maxBuffer: 1 << 26 }));
}
writeFileSync(here("built/page.html"), page);
writeFileSync(here("built/assets.rs"), `&[\n${names.map((name) => `    ("${name}", include_bytes!("${name}.gz")),\n`).join("")}]\n`);

const bytes = readdirSync(here("built")).reduce((sum, name) => sum + readFileSync(here(`built/${name}`)).length, 0);
console.log(`${names.length} assets, ${bytes} bytes with the page`);

function hash(bytes) {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 8).toUpperCase();
}

/** The licence of every package of which something is in the bundles. */
function licenceTexts(metafiles) {
  const packages = new Map();
  const outputs = metafiles.flatMap((metafile) => Object.values(metafile.outputs));
  for (const [input, { bytesInOutput }] of outputs.flatMap(({ inputs }) => Object.entries(inputs))) {
    const directory = input.match(/^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0];
    if (!directory || bytesInOutput === 0) continue;
    const { name, version, license, repository } = JSON.parse(readFileSync(here(`${directory}/package.json`), "utf8"));
    if (!LICENCES.includes(license)) throw new Error(`${name} is licensed as ${license}`);
    const texts = readdirSync(here(directory)).filter((file) => /^(licen[cs]e|copying|notice|thirdpartynotices)/i.test(file)).sort();
    const text = texts.map((file) => readFileSync(here(`${directory}/${file}`), "utf8").replaceAll("\r", "").trim()).join("\n\n");
    packages.set(`${name} ${version}`, `${name} ${version}\n${license}\n\n${text || `The package has no text of it. It is of ${repository.url ?? repository}.`}`);
  }
  const sorted = [...packages.keys()].sort().map((key) => packages.get(key));
  const icons = "The icons of Monaco's font are Microsoft's codicons, by CC-BY-4.0: https://github.com/microsoft/vscode-codicons";
  return `GraphiQL as this server gives it is built of these packages.\n${icons}\n\n${sorted.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}
