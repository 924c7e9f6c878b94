import type { RawSearch } from "../../app/search";

export type HomeSearch = Record<never, never>;

export function readHomeSearch(_: RawSearch): HomeSearch {
  return {};
}
