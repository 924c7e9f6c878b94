// A change of the API that the console has not followed breaks its types.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
const modules = join(folder, "node_modules");
/** A field of an answer of the API. `.ci/openapi` renames the same one in the server's document. */
const [FIELD, RENAMED] = ["lastUsedAt", "usedAt"];

test("a renamed field of an answer is an error in each file that reads it", () => {
  const copy = mkdtempSync(join(tmpdir(), "blockbase-console-renamed-"));
  try {
    cpSync(join(folder, "src"), join(copy, "src"), { recursive: true });
    symlinkSync(modules, join(copy, "node_modules"));
    const config = JSON.parse(readFileSync(join(folder, "tsconfig.json"), "utf8"));
    writeFileSync(join(copy, "tsconfig.json"), JSON.stringify({ ...config, include: ["src"] }));
    const types = join(copy, "src/api/schema.d.ts");
    const before = readFileSync(types, "utf8");
    const after = before.replaceAll(new RegExp(`\\b${FIELD}\\b`, "g"), RENAMED);
    assert.notEqual(after, before, `${FIELD} is not in the document any more: rename another field here and in .ci/openapi`);
    writeFileSync(types, after);

    const readers = readdirSync(join(copy, "src"), { recursive: true })
      .filter((name) => /\.tsx?$/.test(name) && readFileSync(join(copy, "src", name), "utf8").includes(FIELD))
      .map((name) => `src/${name}`);
    assert.ok(readers.length > 0, `no file reads ${FIELD}`);
    const { stdout } = spawnSync(process.execPath, [join(modules, "typescript-native/bin/tsc"), "--pretty", "false"], { cwd: copy, encoding: "utf8" });
    const errors = stdout.split("\n").filter((line) => line.includes("error TS"));
    assert.deepEqual([...new Set(errors.map((line) => line.split("(")[0]))].toSorted(), readers.toSorted(), stdout);
    for (const error of errors) assert.match(error, new RegExp(`\\b${FIELD}\\b`));
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
});
