// Reads the secrets that the installer has set.

import * as secrets from "blockbase:block/secrets@0.1.0";

import { host, text } from "./host.js";

export function get(name) {
  return host("secrets.get", () => secrets.get(text("The name of a secret", name)));
}
