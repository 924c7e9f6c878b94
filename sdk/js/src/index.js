// The exports of the SDK. If a block does not use a module, the build leaves out the module and the host functions that it imports.

export { action, hook, subscription } from "./handlers.js";
export { HandlerError } from "./error.js";
export * as config from "./config.js";
export * as data from "./data.js";
export * as deadline from "./deadline.js";
export * as http from "./http.js";
export * as log from "./log.js";
export * as secrets from "./secrets.js";
export { fromBase64, fromHex, hmacSha256, sha256, timingSafeEqual, toBase64, toHex } from "./crypto.js";
