import { type RawSearch, given, oneOf, text } from "../../api/search";

/** The search parameters of `/blocks`. */
export function readBlocksSearch(raw: RawSearch) {
  return given({ open: text(raw.open) });
}

/** The search parameters of `/blocks/install`. `upgrade` is the block that gets a new version. */
export function readInstallBlockSearch(raw: RawSearch) {
  return given({ upgrade: text(raw.upgrade) });
}

/** The search parameters of `/blocks/$block`. */
export function readBlockSearch(raw: RawSearch) {
  return given({
    tab: oneOf(raw.tab, ["overview", "actions", "handlers", "hooks", "configuration", "secrets", "logs", "versions"]),
    level: oneOf(raw.level, ["trace", "debug", "info", "warn", "error"]),
    q: text(raw.q),
    action: text(raw.action),
    handler: text(raw.handler),
  });
}
