import { CopyText } from "./Copy";

/** Shows the last 8 characters of an id. A click copies the id, and hovering shows all of it. */
export function Id({ id, label = "Copy the id" }: { id: string; label?: string }) {
  return <CopyText text={id} shown={shortId(id)} label={label} />;
}

export function shortId(id: string): string {
  return id.length > 8 ? id.slice(-8) : id;
}
