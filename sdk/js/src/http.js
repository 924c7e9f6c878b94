// Requests to other services, limited by the manifest's `permissions.http`.

import * as http from "blockbase:block/http@0.1.0";

import { host, text } from "./host.js";
import { Message, lowered } from "./message.js";

/** The first value that is too large for the interface. */
const TIMEOUT_MS_END = 2 ** 31;

class Response extends Message {
  constructor(answer) {
    super(answer.headers, answer.body);
    this.status = answer.status;
    this.ok = answer.status >= 200 && answer.status < 300;
  }
}

export function send({ method = "GET", url, headers, body, timeoutMs }) {
  const message = lowered(headers, body);
  if (timeoutMs !== undefined && !(timeoutMs >= 0 && timeoutMs < TIMEOUT_MS_END)) {
    throw new TypeError("timeoutMs has to be a number of milliseconds.");
  }
  const request = {
    method: text("The method", method).toUpperCase(),
    url: text("The URL", url),
    headers: message.headers,
    body: message.body ?? null,
    timeoutMs: timeoutMs === undefined ? null : Math.ceil(timeoutMs),
  };
  return new Response(host("http.send", () => http.send(request)));
}

export function get(url, options) {
  return send({ ...options, method: "GET", url });
}

export function post(url, body, options) {
  return send({ ...options, method: "POST", url, body });
}
