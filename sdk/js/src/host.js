// What every ask of the host goes through.

import { ask } from "./error.js";
import { isCalled } from "./phase.js";

export function host(name, call) {
  if (!isCalled()) throw new Error(`${name} was called outside of a handler. Code out there runs once, at the build, without a host.`);
  return ask(call);
}
