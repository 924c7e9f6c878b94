/** One sentence that the next sign-in page shows: why the person is there. */
let sentence: string | null = null;

export function leaveFarewell(text: string): void {
  sentence = text;
}

export function takeFarewell(): string | null {
  const said = sentence;
  sentence = null;
  return said;
}
