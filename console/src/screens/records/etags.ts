/** The ETags of records that this page has read, for `If-Match`. The list is bounded, and the oldest entry is dropped first. */
const MAX = 2_000;
const known = new Map<string, { etag: string; updatedAt: string }>();

export function rememberEtag(object: string, id: string, etag: string | null, updatedAt: unknown): void {
  const key = `${object}/${id}`;
  known.delete(key);
  if (etag === null || typeof updatedAt !== "string") return;
  known.set(key, { etag, updatedAt });
  if (known.size > MAX) known.delete(known.keys().next().value!);
}

/** The ETag of a record in the version that the page shows. `undefined` if the record has changed since, or was never read on its own. */
export function etagOf(object: string, id: string, updatedAt: unknown): string | undefined {
  const found = known.get(`${object}/${id}`);
  return found !== undefined && found.updatedAt === updatedAt ? found.etag : undefined;
}
