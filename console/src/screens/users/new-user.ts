/** The form of a new account: what is sent, and which field the server refuses. */
import type { ApiError } from "../../api/errors";

export interface NewUserDraft {
  email: string;
  name: string;
  /** Ids. */
  roles: string[];
}

export const EMPTY: NewUserDraft = { email: "", name: "", roles: [] };

export const isTyped = ({ email, name, roles }: NewUserDraft): boolean => email !== "" || name !== "" || roles.length > 0;

/** What is sent, without what is empty. */
export function bodyOf({ email, name, roles }: NewUserDraft): { email: string; name?: string; roles?: string[] } {
  return { email: email.trim(), ...(name.trim() === "" ? {} : { name: name.trim() }), ...(roles.length === 0 ? {} : { roles }) };
}

/** Why the server shows a link instead of mailing it. With mail, only an address that has had too many gets none. */
export const handedOver = (sendsMail: boolean): string =>
  `${sendsMail ? "This address has had as many mails as it may have in an hour" : "This server sends no mail (`SVC_SMTP_URL`)"}, so hand the link over yourself.`;

const FIELDS = ["email", "name", "roles"] as const;
export type NewUserField = (typeof FIELDS)[number];

/** The server's sentences by field. Empty where an error is about none of them, so that it is shown above the form. */
export function problemsOf(error: ApiError | null): Partial<Record<NewUserField, string>> {
  if (error === null) return {};
  // A field may be named with a place in it: `roles[0]`, `/roles/0`.
  const found = Object.entries(error.byField).flatMap(([path, message]) => {
    const field = FIELDS.find((each) => each === /\w+/.exec(path)?.[0]);
    return field === undefined ? [] : [[field, message] as const];
  });
  // A taken address is a conflict.
  if (found.length === 0 && error.status === 409 && error.field === undefined) return { email: error.message };
  return Object.fromEntries(found);
}
