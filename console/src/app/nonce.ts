/** The nonce of this page's policy. Whatever makes a style element at run time needs it. */
import { setNonce } from "get-nonce";

const meta = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]');

/** Empty where the page came without a policy (the development server). */
export const nonce = meta?.nonce ?? "";

if (nonce !== "") setNonce(nonce);
