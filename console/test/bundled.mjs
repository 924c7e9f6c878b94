// A module of src/ for tests of Node, with what it imports.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

export async function bundled(path) {
  const bundle = await rolldown({ input: fileURLToPath(new URL(`../src/${path}`, import.meta.url)), logLevel: "silent" });
  const { output } = await bundle.generate({ format: "esm", codeSplitting: false });
  await bundle.close();
  const directory = mkdtempSync(join(tmpdir(), "blockbase-console-test-"));
  const file = join(directory, "module.mjs");
  writeFileSync(file, output[0].code);
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
