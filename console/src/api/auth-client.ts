/** The better-auth client, loaded with the first sign-in or sign-out. It keeps nothing in web storage. */
import { createAuthClient } from "better-auth/client";
import { isSessionEstablished, signInAgain } from "./session-lost";

/**
 * If the session of a request has ended, this waits until the person has signed in, and then sends the request again, as for every other
 * request of the console. A password reset needs no session.
 */
async function patientFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const enters = /\/(sign-(in|up|out)|reset-password)/.test(new URL(request.url).pathname);
  const response = await fetch(request.clone());
  if (response.status !== 401 || enters || !isSessionEstablished()) return response;
  await signInAgain();
  return fetch(request);
}

export const client = createAuthClient({
  baseURL: location.origin,
  // The default plugins would load the page again after a sign-in, at the `callbackURL`. This address is only meant for links in mails.
  disableDefaultFetchPlugins: true,
  fetchOptions: { credentials: "same-origin", customFetchImpl: patientFetch },
  sessionOptions: { refetchOnWindowFocus: false },
});
