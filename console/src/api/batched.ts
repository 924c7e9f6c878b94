/** Joins lookups of single things into requests for several. This file does not use React. */

interface Lookup<Thing> {
  id: string;
  found: (thing: Thing | null) => void;
  failed: (error: unknown) => void;
}

/**
 * Returns a function that looks up one thing by its id. Lookups of the same moment, such as those of all rows of a screen, share one call of
 * `read`, or several with at most `idsMax` ids each. A thing that `read` does not return is null. If a call fails, all its lookups fail.
 */
export function batched<Thing>(idsMax: number, read: (ids: string[]) => Promise<ReadonlyMap<string, Thing>>): (id: string) => Promise<Thing | null> {
  let waiting: Lookup<Thing>[] = [];
  const send = () => {
    const lookups = waiting;
    waiting = [];
    const ids = [...new Set(lookups.map(({ id }) => id))];
    for (let from = 0; from < ids.length; from += idsMax) {
      const part = new Set(ids.slice(from, from + idsMax));
      const ofPart = lookups.filter(({ id }) => part.has(id));
      void read([...part]).then(
        (things) => {
          for (const { id, found } of ofPart) found(things.get(id) ?? null);
        },
        (error: unknown) => {
          for (const { failed } of ofPart) failed(error);
        },
      );
    }
  };
  return (id) =>
    new Promise<Thing | null>((found, failed) => {
      if (waiting.length === 0) setTimeout(send);
      waiting.push({ id, found, failed });
    });
}
