// What a block imports. A module that a block does not use stays out of its component, and so does what it asks of the host.

export { action, hook, subscription } from "./handlers.js";
export { HandlerError } from "./error.js";
export * as config from "./config.js";
export * as data from "./data.js";
export * as deadline from "./deadline.js";
export * as http from "./http.js";
export * as log from "./log.js";
export * as secrets from "./secrets.js";
export { fromBase64, fromHex, hmacSha256, sha256, timingSafeEqual, toBase64, toHex } from "./crypto.js";
