/** The versions of records that this page has seen: what `If-Match` sends. Bounded; the oldest is forgotten first. */
const MAX = 2_000;
const known = new Map<string, { etag: string; updatedAt: string }>();

export function rememberEtag(object: string, id: string, etag: string | null, updatedAt: unknown): void {
  const key = `${object}/${id}`;
  known.delete(key);
  if (etag === null || typeof updatedAt !== "string") return;
  known.set(key, { etag, updatedAt });
  if (known.size > MAX) known.delete(known.keys().next().value!);
}

/** The version of a record that is as the page shows it; `undefined` where it has changed since, or was never read alone. */
export function etagOf(object: string, id: string, updatedAt: unknown): string | undefined {
  const found = known.get(`${object}/${id}`);
  return found !== undefined && found.updatedAt === updatedAt ? found.etag : undefined;
}
