/** Matches topics with patterns. A test of the server compares this with the server's own matching, on random texts. */

/** Whether a topic matches a pattern. `*` matches one segment, `#` any number of segments. */
export function topicMatches(pattern: string, topic: string): boolean {
  const wanted = pattern.split(".");
  const has = topic.split(".");
  const from = (w: number, h: number): boolean => {
    if (w === wanted.length) return h === has.length;
    if (wanted[w] === "#") {
      for (let next = h; next <= has.length; next++) if (from(w + 1, next)) return true;
      return false;
    }
    return h < has.length && (wanted[w] === "*" || wanted[w] === has[h]) && from(w + 1, h + 1);
  };
  return from(0, 0);
}

/** Whether a topic passes a filter. As in the API, a filter without `*` and `#` is a prefix. */
export function topicPasses(filter: string, topic: string): boolean {
  return /[*#]/.test(filter) ? topicMatches(filter, topic) : topic.startsWith(filter);
}
