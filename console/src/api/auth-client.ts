/** The better-auth client, loaded with the first sign-in or sign-out. */
import { createAuthClient } from "better-auth/client";

export const client = createAuthClient({
  baseURL: typeof location === "undefined" ? "http://localhost" : location.origin,
  fetchOptions: { credentials: "same-origin" },
  // One tab does not tell others by storage.
  sessionOptions: { refetchOnWindowFocus: false },
});
