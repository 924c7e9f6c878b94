// Packs the bundle (`dist`) into the crate that serves it, and checks the size budgets.
// Output in host/console/assets: index.html (the page's template, with {nonce}), one <name>.gz for each asset, manifest.json.
// Usage: node scripts/pack.mjs [output directory]
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { resolve } from "node:path";

const FIRST_LOAD_KIB_MAX = 250;
const ROUTE_KIB_MAX = 120;
const SMALL_MAX = 8;
const TYPES = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml", txt: "text/plain; charset=utf-8", woff2: "font/woff2", png: "image/png" };

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const dist = here("../dist/");
const out = resolve(process.argv[2] ?? here("../../host/console/assets"));
// There is no second copy of each file in brotli: it would nearly double what the files take in the binary, and browsers keep a file for a
// year, so only the first visit after an upgrade would load less. A proxy can request the unpacked files and pack them in its own way.
const gzip = (bytes) => execFileSync("gzip", ["-9n"], { input: bytes, maxBuffer: 1 << 27 });

const manifest = JSON.parse(readFileSync(`${dist}.vite/manifest.json`, "utf8"));
const page = readFileSync(`${dist}index.html`, "utf8");
const assets = new Map();
for (const name of readdirSync(`${dist}assets`).sort()) {
  const bytes = readFileSync(`${dist}assets/${name}`);
  assets.set(name, { bytes, packed: gzip(bytes) });
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
writeFileSync(`${out}/index.html`, page);
for (const [name, { packed }] of assets) writeFileSync(`${out}/${name}.gz`, packed);
const list = [...assets].map(([name, { bytes }]) => ({
  name,
  contentType: TYPES[name.split(".").pop()] ?? fail(`${name} is of no known type`),
  size: bytes.length,
  sha256: createHash("sha256").update(bytes).digest("hex"),
}));
writeFileSync(`${out}/manifest.json`, `${JSON.stringify({ assets: list }, null, 2)}\n`);

// ---- budgets

const size = (file) => assets.get(file.replace("assets/", ""))?.packed.length ?? fail(`${file} is not in the bundle`);
/** The files that an entry loads at once: itself, its static imports and their style sheets. */
function closure(key, found = new Set()) {
  const chunk = manifest[key] ?? fail(`${key} is not in the manifest: scripts/pack.mjs names the screens that people land on`);
  if (found.has(chunk.file)) return found;
  found.add(chunk.file);
  for (const sheet of chunk.css ?? []) found.add(sheet);
  for (const other of chunk.imports ?? []) closure(other, found);
  return found;
}
const kib = (bytes) => bytes / 1024;
const sum = (files) => [...files].reduce((total, file) => total + size(file), 0);

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry) ?? fail("there is no entry");
const shared = closure(entry);
// The page also names files besides the entry: the script for the color scheme and the icon.
for (const [, file] of page.matchAll(/\/admin\/(assets\/[\w.-]+)/g)) shared.add(file);

// The pages where a visit can begin, with the files that load before the person does anything. During the sign-in, the router already loads
// the screen of the address. The test `flows.mjs` checks what a real browser loads against the same budget.
const LANDINGS = {
  "create admin": ["src/app/gate/FirstRun.tsx", "src/screens/home/index.tsx"],
  "set password": ["src/app/gate/SetPassword.tsx"],
  "sign-in": ["src/app/gate/SignIn.tsx", "src/screens/home/index.tsx"],
  "sign-in before records": ["src/app/gate/SignIn.tsx", "src/screens/records/index.tsx"],
  home: ["src/screens/home/index.tsx", "src/components/ChartImpl.tsx"],
  records: ["src/screens/records/index.tsx"],
};
const rows = [];
for (const [name, keys] of Object.entries(LANDINGS)) {
  const files = keys.reduce((found, key) => closure(key, found), new Set(shared));
  rows.push([`first load: ${name}, ${files.size} files`, sum(files) + gzip(page).length, FIRST_LOAD_KIB_MAX]);
}
// A chunk that is loaded later adds to a page that already has the chunk that imports it.
const keys = Object.keys(manifest);
for (const key of keys.filter((each) => manifest[each].isDynamicEntry).sort()) {
  const additions = keys
    .filter((each) => manifest[each].dynamicImports?.includes(key))
    .map((from) => {
      const there = closure(from, new Set(shared));
      return sum([...closure(key)].filter((file) => !there.has(file)));
    });
  rows.push([key.replace(/^src\//, ""), Math.max(...additions), ROUTE_KIB_MAX]);
}
for (const [name, bytes, max] of rows) console.log(`${kib(bytes).toFixed(1).padStart(7)} KiB of ${String(max).padStart(3)}  ${name}`);
const total = [...assets.values()].reduce((all, { packed }) => all + packed.length, 0);
// A script that an action loads is one request, however small it is. One that comes along with screens is one more: `vite.config.ts`
// names what goes into one file.
const small = keys.filter((key) => !manifest[key].isDynamicEntry && manifest[key].file.endsWith(".js") && kib(size(manifest[key].file)) < 1);
console.log(`${assets.size} assets, ${kib(total).toFixed(0)} KiB packed, in ${out}. ${small.length} shared scripts have less than 1 KiB.`);
if (small.length > SMALL_MAX) fail(`more than ${SMALL_MAX} shared scripts have less than 1 KiB (vite.config.ts groups them): ${small.join(", ")}`);
const over = rows.filter(([, bytes, max]) => kib(bytes) > max);
if (over.length > 0) fail(`over the budget: ${over.map(([name]) => name).join(", ")}`);

function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
