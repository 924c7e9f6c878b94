/** The form of a new account: the request body, and the field of each error. */
import type { ApiError } from "../../api/errors";

export interface NewUserDraft {
  email: string;
  name: string;
  /** The ids of the roles. */
  roles: string[];
}

export const EMPTY: NewUserDraft = { email: "", name: "", roles: [] };

export const isTyped = ({ email, name, roles }: NewUserDraft): boolean => email !== "" || name !== "" || roles.length > 0;

/** The request body, without empty values. */
export function bodyOf({ email, name, roles }: NewUserDraft): { email: string; name?: string; roles?: string[] } {
  return { email: email.trim(), ...(name.trim() === "" ? {} : { name: name.trim() }), ...(roles.length === 0 ? {} : { roles }) };
}

/**
 * The reason why the page shows a link that the server did not mail. If the server sends mail, the only reason is that the address has
 * already had too many mails.
 */
export const handedOver = (sendsMail: boolean): string =>
  `${sendsMail ? "This address has had as many mails as it may have in an hour" : "This server sends no mail (`SVC_SMTP_URL`)"}, so hand the link over yourself.`;

const FIELDS = ["email", "name", "roles"] as const;
export type NewUserField = (typeof FIELDS)[number];

/** The server's messages by field. Empty if the error is about no field. The error is then shown above the form. */
export function problemsOf(error: ApiError | null): Partial<Record<NewUserField, string>> {
  if (error === null) return {};
  // A path may contain an index: `roles[0]`, `/roles/0`.
  const found = Object.entries(error.byField).flatMap(([path, message]) => {
    const field = FIELDS.find((each) => each === /\w+/.exec(path)?.[0]);
    return field === undefined ? [] : [[field, message] as const];
  });
  // A conflict means that another account has the address.
  if (found.length === 0 && error.status === 409 && error.field === undefined) return { email: error.message };
  return Object.fromEntries(found);
}
