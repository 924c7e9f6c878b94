// The block's configuration.

import * as config from "blockbase:block/config@0.1.0";

import { host } from "./host.js";

export function get() {
  return JSON.parse(host("config.get", () => config.get()));
}
