/** The last 8 characters of an id, which are enough to tell it from others on the screen. */
export function shortId(id: string): string {
  return id.length > 8 ? id.slice(-8) : id;
}
