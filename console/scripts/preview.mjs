// Serves the built console (`npm run bundle`) in the same way as the binary, with the policy and a new nonce for each page. Requests to
// /api go to a running server.
// Usage: BLOCKBASE_URL=http://127.0.0.1:4000 [PORT=4173] npm run preview
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { policy } from "./policy.mjs";

// DIST can name another bundle.
const dist = process.env.DIST ?? fileURLToPath(new URL("../dist/", import.meta.url));
const upstream = new URL(process.env.BLOCKBASE_URL ?? "http://127.0.0.1:4000");
const TYPES = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", txt: "text/plain; charset=utf-8", json: "application/json", woff2: "font/woff2" };

// The binary takes a URL of 65,534 bytes, and Node alone takes 16 KiB of headers.
const server = http.createServer({ maxHeaderSize: 128 * 1024 }, (request, answer) => {
  const { pathname } = new URL(request.url, "http://preview");
  if (pathname === "/") return answer.writeHead(303, { location: "/admin" }).end();
  const asset = /^\/admin\/assets\/([\w.-]+)$/.exec(pathname)?.[1];
  if (asset !== undefined) return sendAsset(asset, answer);
  if (pathname === "/admin" || pathname.startsWith("/admin/")) return sendPage(answer);
  proxy(request, answer);
});

const packed = new Map();
function sendAsset(name, answer) {
  const path = `${dist}assets/${name}`;
  if (!existsSync(path)) return answer.writeHead(404).end("There is no such asset.");
  const stamp = statSync(path).mtimeMs;
  let known = packed.get(name);
  if (known?.stamp !== stamp) packed.set(name, (known = { stamp, bytes: gzipSync(readFileSync(path), { level: 9 }) }));
  answer.writeHead(200, {
    "content-type": TYPES[name.split(".").pop()] ?? "application/octet-stream",
    "content-encoding": "gzip",
    "cache-control": "public, max-age=31536000, immutable",
    "x-content-type-options": "nosniff",
  });
  answer.end(known.bytes);
}

function sendPage(answer) {
  const nonce = randomBytes(16).toString("base64");
  answer.writeHead(200, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy(nonce),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
  });
  answer.end(readFileSync(`${dist}index.html`, "utf8").replaceAll("{nonce}", nonce));
}

// The response is streamed, so that event streams are not delayed. The server compares Host and Origin with its own address, so both are
// replaced.
function proxy(request, answer) {
  const headers = { ...request.headers, host: upstream.host };
  for (const name of ["origin", "referer"]) if (headers[name]) headers[name] = upstream.origin + (name === "referer" ? "/admin" : "");
  const onward = http.request({ host: upstream.hostname, port: upstream.port, method: request.method, path: request.url, headers }, (given) => {
    answer.writeHead(given.statusCode, given.headers);
    given.pipe(answer);
  });
  onward.on("error", () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end("The server does not answer.")));
  answer.on("close", () => onward.destroy());
  request.pipe(onward);
}

server.listen(Number(process.env.PORT ?? 4173), "127.0.0.1", () => console.log(`console on http://127.0.0.1:${server.address().port}/admin`));
