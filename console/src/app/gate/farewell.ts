/** A sentence that says why the person is on the sign-in page. It stays there until somebody has signed in. */
let sentence: string | null = null;

export function leaveFarewell(text: string | null): void {
  sentence = text;
}

export function farewell(): string | null {
  return sentence;
}
