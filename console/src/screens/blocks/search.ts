import { type RawSearch, given, oneOf, text } from "../../app/search";

/** Of `/blocks`. */
export function readBlocksSearch(raw: RawSearch) {
  return given({ open: text(raw.open) });
}

/** Of `/blocks/install`: of a new block, or the next version of one. */
export function readInstallBlockSearch(raw: RawSearch) {
  return given({ upgrade: text(raw.upgrade) });
}

/** Of `/blocks/$block`. */
export function readBlockSearch(raw: RawSearch) {
  return given({
    tab: oneOf(raw.tab, ["overview", "actions", "handlers", "hooks", "configuration", "secrets", "logs", "versions"]),
    level: oneOf(raw.level, ["trace", "debug", "info", "warn", "error"]),
    q: text(raw.q),
    action: text(raw.action),
    handler: text(raw.handler),
  });
}
