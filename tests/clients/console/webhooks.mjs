// The samples that verify a webhook's signature. While the secret is being rotated, each accepts a delivery with the new and with the old
// secret. If EVERY_LANGUAGE is set, the test fails if a language is not on this machine. Otherwise it leaves out its sample.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { admin, folder, look, must, open, receiver, until } from "./harness.mjs";

const directory = folder("samples");
const file = (name, text) => (writeFileSync(join(directory, name), text), join(directory, name));

const owner = await admin();
const received = [];
const address = await receiver((request, answer) => {
  const parts = [];
  request.on("data", (bytes) => parts.push(bytes));
  request.on("end", () => {
    received.push({ body: Buffer.concat(parts).toString(), header: request.headers["x-svc-signature"] });
    answer.writeHead(204).end();
  });
});

/**
 * For each language, writes a file with the sample around it and returns the program that runs it. The program prints `true` or `false` for
 * the arguments body, header, secret.
 */
const DRIVERS = {
  JavaScript: (sample) => [process.execPath, file("sample.mjs", `${sample}\nconsole.log(isGenuine(...process.argv.slice(2, 5)));`)],
  Python: (sample) => ["python3", file("sample.py", `${sample}\nimport sys\nprint(str(is_genuine(sys.argv[1].encode(), sys.argv[2], sys.argv[3])).lower())\n`)],
  PHP: (sample) => ["php", file("sample.php", `${sample}\necho is_genuine($argv[1], $argv[2], $argv[3]) ? "true" : "false";\n`)],
  Go: (sample) => {
    const main = 'package main\n\nimport (\n\t"fmt"\n\t"os"\n\t"time"\n)\n\nfunc main() {\n\tfmt.Println(IsGenuine([]byte(os.Args[1]), os.Args[2], os.Args[3], 5*time.Minute))\n}\n';
    const [one, other] = [file("sample.go", sample.replace("package webhook", "package main")), file("main.go", main)];
    const out = join(directory, "sample");
    const built = spawnSync("go", ["build", "-o", out, one, other], { cwd: directory, encoding: "utf8", env: { ...process.env, GO111MODULE: "off" } });
    if (built.error !== undefined) return ["go"];
    assert.equal(built.status, 0, built.stderr);
    return [out];
  },
  Rust: (sample) => {
    const crate = join(directory, "rust");
    mkdirSync(join(crate, "src"), { recursive: true });
    file("rust/Cargo.toml", '[package]\nname = "sample"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\nhex = "0.4"\nhmac = "0.13"\nsha2 = "0.11"\n\n[workspace]\n');
    const now = "std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64";
    const main = `fn main() {\n    let given: Vec<String> = std::env::args().skip(1).collect();\n    println!("{}", is_genuine(given[0].as_bytes(), &given[1], &given[2], ${now}, 300));\n}\n`;
    file("rust/src/main.rs", `${sample}\n\n${main}`);
    // The server has the same dependencies, so they are on this machine.
    const built = spawnSync("cargo", ["build", "--quiet", "--offline", "--target-dir", join(crate, "target")], { cwd: crate, encoding: "utf8" });
    if (built.error !== undefined) return ["cargo-is-absent"];
    assert.equal(built.status, 0, built.stderr);
    return [join(crate, "target", "debug", "sample")];
  },
};

test("every sample accepts a delivery by either secret of a rotation, and no other", async (context) => {
  const made = await must(owner, "POST", "/api/v1/webhooks", { url: `${address}/`, topics: ["data.#"] });
  const rotated = await must(owner, "POST", `/api/v1/webhooks/${made.data.id}/rotate-secret`);
  await must(owner, "POST", `/api/v1/webhooks/${made.data.id}/test`);
  await until("a delivery", () => received.length > 0);
  const [{ body, header }] = received;
  assert.equal(header.match(/v1=/g).length, 2, header);
  const old = made.secret;
  const fresh = rotated.secret ?? rotated.data.secret;
  assert.notEqual(old, fresh);

  const page = await open("/admin/webhooks?tab=verify", { as: owner });
  await look(page, "verify");
  for (const [language, driver] of Object.entries(DRIVERS)) {
    await page.getByText(language, { exact: true }).first().click();
    const code = page.getByRole("region", { name: language, exact: true });
    const [program, ...given] = driver(await code.innerText());
    const verdict = (...three) => {
      const ran = spawnSync(program, [...given, ...three], { encoding: "utf8" });
      if (ran.error?.code === "ENOENT") return "absent";
      assert.equal(ran.status, 0, `${language}: ${ran.stderr}`);
      return ran.stdout.trim();
    };
    if (verdict(body, header, fresh) === "absent") {
      assert.equal(process.env.EVERY_LANGUAGE, undefined, `${language} is not on this machine; \`./dev tools --long\` installs it`);
      context.diagnostic(`${language} is not on this machine`);
      continue;
    }
    assert.equal(verdict(body, header, fresh), "true", `${language}, the new secret`);
    assert.equal(verdict(body, header, old), "true", `${language}, the old secret`);
    assert.equal(verdict(body, header, "whsec_another"), "false", `${language}, another secret`);
    assert.equal(verdict(`${body} `, header, fresh), "false", `${language}, another body`);
    assert.equal(verdict(body, header.replace(/t=\d+/, "t=1790000000"), fresh), "false", `${language}, an old delivery`);
  }
});
