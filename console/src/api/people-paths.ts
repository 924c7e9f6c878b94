/** Routes about accounts, as the OpenAPI document describes them and `schema.d.ts` would. */
import type { components } from "./schema";

type Answer<Status extends number, Body> = { [Code in Status]: { headers: Record<string, unknown>; content: { "application/json": Body } } };

/** A link with which a user chooses a password. It is in this answer only. */
export interface PasswordLink {
  link: string;
  /** Format: date-time */
  expiresAt: string;
}

export interface PeoplePaths {
  "/api/v1/users": {
    post: {
      parameters: { query?: never; header?: never; path?: never; cookie?: never };
      /** `roles` are ids or names. */
      requestBody: { content: { "application/json": { email: string; name?: string; roles?: string[] } } };
      /** `linkExpiresAt` is a date-time. */
      responses: Answer<201, { data: components["schemas"]["SvcManagedUser"]; link: string; linkExpiresAt: string }>;
    };
  };
  "/api/v1/users/{id}/password-link": {
    post: {
      parameters: { query?: never; header?: never; path: { id: string }; cookie?: never };
      requestBody?: never;
      responses: Answer<201, { data: PasswordLink }>;
    };
  };
}

/** `Paths` with these routes. */
export type WithPeople<Paths> = {
  [Path in keyof Paths]: Path extends keyof PeoplePaths ? Omit<Paths[Path], keyof PeoplePaths[Path]> & PeoplePaths[Path] : Paths[Path];
} & Omit<PeoplePaths, keyof Paths>;
