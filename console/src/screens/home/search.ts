import type { RawSearch } from "../../api/search";

export type HomeSearch = Record<never, never>;

export function readHomeSearch(_: RawSearch): HomeSearch {
  return {};
}
