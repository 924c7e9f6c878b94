/** In the place of a Markdown renderer: the text as it is. */
import type { ReactNode } from "react";

export function Markdown({ children }: { children?: ReactNode }) {
  return <>{children}</>;
}
