/** Replaces a Markdown renderer, and shows the text unchanged. */
import type { ReactNode } from "react";

export function Markdown({ children }: { children?: ReactNode }) {
  return <>{children}</>;
}
