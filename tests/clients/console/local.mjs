// Runs test files on this machine. For each file, it starts the binary in BLOCKBASE, and in front of it the preview of console/dist.
// CONSOLE=binary tests the console that is embedded in the binary. POSTGRES=postgres://user@host:port gives each server its own database
// there.
// Usage: BLOCKBASE=path/to/blockbase npm run local -- shell.mjs [more.mjs] [-- node options]
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const binary = resolve(process.env.BLOCKBASE ?? "blockbase");
const split = process.argv.indexOf("--");
const files = process.argv.slice(2, split === -1 ? undefined : split);
const options = split === -1 ? [] : process.argv.slice(split + 1);
const running = [];

function started(command, args, { env = {}, cwd, pattern, log }) {
  const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH, HOME: cwd ?? process.env.HOME, ...env }, stdio: ["ignore", "pipe", log === undefined ? "inherit" : openSync(log, "w")] });
  running.push(child);
  return new Promise((done, failed) => {
    let printed = "";
    child.stdout.on("data", (bytes) => {
      printed += bytes;
      const found = pattern.exec(printed);
      if (found) done(found[1]);
    });
    child.on("exit", (code) => failed(new Error(`${command} ended with ${code}`)));
  });
}

/** Starts a server with these settings. Returns the address of its console. If `log` is given, the server's log goes to this file. */
async function server(env = {}, log) {
  const cwd = mkdtempSync(join(tmpdir(), "blockbase-console-"));
  directories.push(cwd);
  const settings = { SVC_LISTEN: "127.0.0.1:0", SVC_RATE_LIMIT_RPM: "0", SVC_AUTH_RATE_LIMIT_RPM: "0", SVC_LOG: "error", SVC_ALLOW_PRIVATE_NETWORK: "true", ...env };
  if (process.env.POSTGRES !== undefined) {
    const database = `console_${randomBytes(6).toString("hex")}`;
    execFileSync("psql", ["--quiet", "--command", `CREATE DATABASE ${database}`, `${process.env.POSTGRES}/postgres`]);
    Object.assign(settings, { SVC_DATABASE_URL: `${process.env.POSTGRES}/${database}`, SVC_SECRET: randomBytes(32).toString("base64") });
  }
  const base = await started(binary, ["serve"], { env: settings, cwd, pattern: /listens on (\S+)/, log });
  if (process.env.CONSOLE === "binary") return base;
  const preview = new URL("../../../console/scripts/preview.mjs", import.meta.url).pathname;
  return (await started("node", [preview], { env: { BLOCKBASE_URL: base, PORT: "0" }, pattern: /console on (\S+)\/admin/ })).trim();
}

const directories = [];
let failures = 0;
for (const file of files) {
  const env = { ...process.env, BLOCKBASE: binary, BASE_URL: await server(file.startsWith("events") ? { SVC_RETRY_BASE_MS: "1" } : {}), ENGINE: process.env.POSTGRES === undefined ? "sqlite" : "postgres", ARTIFACTS: process.env.ARTIFACTS ?? "artifacts" };
  if (file.startsWith("gate")) {
    env.CLAIM_URL = await server({ SVC_ADMIN_EMAIL: "boot@example.com", SVC_ADMIN_PASSWORD: "the first password" });
    env.CLAIM_2_URL = await server({ SVC_ADMIN_EMAIL: "boot@example.com", SVC_ADMIN_PASSWORD: "the first password" });
    env.SETUP_URL = await server({ SVC_SETUP_TOKEN: "let-me-in-please-1234" });
    directories.push(mkdtempSync(join(tmpdir(), "blockbase-console-")));
    env.MAIL_LOG = join(directories.at(-1), "log");
    env.MAIL_URL = await server({ SVC_MAIL_LOG: "true", SVC_REQUIRE_EMAIL_VERIFICATION: "true", SVC_LOG: "info" }, env.MAIL_LOG);
  }
  const test = spawn("node", ["--test", "--test-reporter=spec", ...options, file], { stdio: "inherit", env });
  failures += await new Promise((done) => test.on("exit", done));
  for (const child of running.splice(0)) child.removeAllListeners("exit").kill();
}
for (const directory of directories) rmSync(directory, { recursive: true, force: true });
process.exit(failures === 0 ? 0 : 1);
