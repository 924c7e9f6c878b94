// Requests to other services, as far as the manifest's `permissions.http` goes.

import * as http from "blockbase:block/http@0.1.0";

import { host } from "./host.js";
import { Message, lowered } from "./message.js";

class Response extends Message {
  constructor(answer) {
    super(answer.headers, answer.body);
    this.status = answer.status;
    this.ok = answer.status >= 200 && answer.status < 300;
  }
}

export function send({ method = "GET", url, headers, body, timeoutMs }) {
  const message = lowered(headers, body);
  const request = {
    method: method.toUpperCase(),
    url: String(url),
    headers: message.headers,
    body: message.body ?? null,
    timeoutMs: timeoutMs ?? null,
  };
  return new Response(host("http.send", () => http.send(request)));
}

export function get(url, options) {
  return send({ ...options, method: "GET", url });
}

export function post(url, body, options) {
  return send({ ...options, method: "POST", url, body });
}
