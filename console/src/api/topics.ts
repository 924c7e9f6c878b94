/** Which topics somebody asks for. A test of the server compares this with the server's own matching, on random texts. */

/** Whether a topic matches a pattern: `*` is one segment, `#` any number. */
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

/** The same for a filter: a text without `*` and `#` is a prefix, as the API has it. */
export function topicPasses(filter: string, topic: string): boolean {
  return /[*#]/.test(filter) ? topicMatches(filter, topic) : topic.startsWith(filter);
}
