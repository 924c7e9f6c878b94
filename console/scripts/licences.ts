/** Writes the license of every package in the bundle to an asset. A license that deny.toml does not list stops the build. */
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import type { Plugin } from "vite";

const LICENCES = ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD"];

interface Manifest {
  name: string;
  version: string;
  license: string;
  repository?: string | { url: string };
}

function textOf(directory: string): [string, string] {
  const { name, version, license, repository } = JSON.parse(readFileSync(`${directory}/package.json`, "utf8")) as Manifest;
  if (!LICENCES.includes(license)) throw new Error(`${name} is licensed as ${license}.`);
  const files = readdirSync(directory).filter((file) => /^(licen[cs]e|copying|notice|thirdpartynotices)/i.test(file)).sort();
  const text = files.map((file) => readFileSync(`${directory}/${file}`, "utf8").replaceAll("\r", "").trim()).join("\n\n");
  const origin = typeof repository === "string" ? repository : repository?.url;
  return [`${name} ${version}`, `${name} ${version}\n${license}\n\n${text || `The package has no text of it. It is of ${origin ?? "an unnamed place"}.`}`];
}

export function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle(_, bundle) {
      const directories = new Set<string>();
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== "chunk") continue;
        for (const id of Object.keys(chunk.modules)) {
          const directory = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.replace(/^\0/, ""))?.[1];
          if (directory !== undefined) directories.add(directory);
        }
      }
      const texts = new Map([...directories].map(textOf));
      const sorted = [...texts.keys()].sort().map((key) => texts.get(key)!);
      const whole = `The console is built of these packages.\n\n${sorted.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
      const hash = createHash("sha256").update(whole).digest("hex").slice(0, 8);
      this.emitFile({ type: "asset", fileName: `assets/licences-${hash}.txt`, source: whole });
    },
  };
}
