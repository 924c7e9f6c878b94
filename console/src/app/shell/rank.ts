/**
 * Sorts items by how well their text matches a query. A word of the query can match at the start of the text, at the start of a word,
 * anywhere, or as letters in the same order.
 */
export function ranked<Item>(items: Item[], query: string, textOf: (item: Item) => string): Item[] {
  if (query === "") return items;
  const words = query.split(/\s+/);
  const scored: { item: Item; score: number; index: number }[] = [];
  items.forEach((item, index) => {
    const text = textOf(item).toLowerCase();
    let score = 0;
    for (const word of words) {
      const one = scoreOf(text, word);
      if (one === 0) return;
      score += one;
    }
    scored.push({ item, score, index });
  });
  return scored.sort((one, other) => other.score - one.score || one.index - other.index).map(({ item }) => item);
}

function scoreOf(text: string, word: string): number {
  const at = text.indexOf(word);
  if (at === 0) return text.length === word.length || /\W/.test(text[word.length] ?? " ") ? 100 : 80;
  if (at > 0) return /[\s_-]/.test(text[at - 1]!) ? 60 : 30;
  if (word.length < 3) return 0;
  // Matches letters in the same order and close to each other: "wbhk" finds "webhooks".
  let from = 0;
  for (const letter of word) {
    const next = text.indexOf(letter, from);
    if (next === -1 || next - from > 6) return 0;
    from = next + 1;
  }
  return 10;
}
