import { CopyText } from "./Copy";
import { shortId } from "./short-id";

export { shortId };

/** Shows the last 8 characters of an id. A click copies the id, and hovering shows all of it. */
export function Id({ id, label = "Copy the id" }: { id: string; label?: string }) {
  return <CopyText text={id} shown={shortId(id)} label={label} />;
}
