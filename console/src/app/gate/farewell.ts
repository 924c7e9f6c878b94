/** One sentence that the sign-in page shows until somebody has signed in: why they are there. */
let sentence: string | null = null;

export function leaveFarewell(text: string | null): void {
  sentence = text;
}

export function farewell(): string | null {
  return sentence;
}
