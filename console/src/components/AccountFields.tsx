import { Button, PasswordInput, TextInput } from "@mantine/core";
import { type ApiError, isApiError } from "../api/errors";
import { ErrorNotice, useCountdown } from "./ErrorState";

/** The field that each error code of the server belongs to. */
const FIELD_OF: Record<string, string> = {
  INVALID_EMAIL: "email",
  USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL: "email",
  USER_ALREADY_EXISTS: "email",
  PASSWORD_TOO_SHORT: "password",
  PASSWORD_TOO_LONG: "password",
  PASSWORD_COMPROMISED: "password",
  PASSWORD_TOO_COMMON: "password",
  INVALID_PASSWORD: "currentPassword",
  setup_token_required: "setupToken",
};

export function fieldOf(error: ApiError | null): string | undefined {
  if (error === null) return undefined;
  return error.field ?? FIELD_OF[error.code] ?? (/password/i.test(error.message) && error.code !== "INVALID_EMAIL_OR_PASSWORD" ? "password" : undefined);
}

/** Whether the server refused a sign-in because the person first has to confirm their address. The server has mailed a link for this. */
export const isUnconfirmed = (error: unknown): boolean => isApiError(error) && error.code === "EMAIL_NOT_VERIFIED";

/** The server's message if the error belongs to this field. */
export function errorAt(error: ApiError | null, field: string): string | undefined {
  return fieldOf(error) === field ? error?.message : undefined;
}

/** Shows an error that belongs to none of the fields, above the button. */
export function RestOfError({ error, fields }: { error: ApiError | null; fields: string[] }) {
  if (error === null) return null;
  const field = fieldOf(error);
  if (field !== undefined && fields.includes(field)) return null;
  return <ErrorNotice error={error} title={TITLES[error.code] ?? (error.status === 429 ? "Too many tries" : undefined)!} />;
}

const TITLES: Record<string, string> = {
  INVALID_EMAIL_OR_PASSWORD: "Email or password is wrong",
  EMAIL_PASSWORD_SIGN_UP_DISABLED: "Sign-up is closed",
};

export function EmailField(props: { value: string; onChange: (value: string) => void; error?: string | undefined; readOnly?: boolean; autoFocus?: boolean }) {
  const { value, onChange, error, readOnly = false, autoFocus = false } = props;
  return (
    <TextInput
      size="sm"
      label="Email"
      type="email"
      name="email"
      autoComplete="username"
      required
      withAsterisk={false}
      value={value}
      readOnly={readOnly}
      autoFocus={autoFocus}
      error={error}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

export function PasswordField(props: {
  label?: string;
  name?: string;
  value: string;
  onChange: (value: string) => void;
  error?: string | undefined;
  isNew?: boolean;
  /** Whether this field repeats the new password. */
  isRepeated?: boolean;
  autoFocus?: boolean;
}) {
  const { label = "Password", name = "password", value, onChange, error, isNew = false, isRepeated = false, autoFocus = false } = props;
  return (
    <PasswordInput
      size="sm"
      label={label}
      name={name}
      autoComplete={isNew || isRepeated ? "new-password" : "current-password"}
      required
      withAsterisk={false}
      autoFocus={autoFocus}
      data-autofocus={autoFocus || undefined}
      value={value}
      error={error}
      aria-invalid={error !== undefined}
      {...(isNew ? { description: "8 to 128 characters, and not a common one.", minLength: 8, maxLength: 128 } : {})}
      visibilityToggleButtonProps={{ "aria-label": "Show the password" }}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/** A submit button. If the server sent `Retry-After`, the button is disabled for that time and shows the seconds. */
export function SubmitButton({ error, busy, children }: { error: ApiError | null; busy: boolean; children: string }) {
  const seconds = useCountdown(error?.retryAfterSeconds, error);
  const waits = seconds !== undefined && seconds > 0;
  return (
    <Button type="submit" size="sm" fullWidth loading={busy} disabled={waits}>
      {waits ? `${children} in ${seconds} s` : children}
    </Button>
  );
}
