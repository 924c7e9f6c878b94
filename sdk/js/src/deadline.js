// The remaining time of the call.

import * as deadline from "blockbase:block/deadline@0.1.0";

import { host } from "./host.js";

export function remainingMs() {
  return host("deadline.remainingMs", () => deadline.remainingMs());
}

export function isCancelled() {
  return host("deadline.isCancelled", () => deadline.isCancelled());
}
