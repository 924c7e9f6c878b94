import { CopyText } from "./Copy";

/** An id by its last 8 characters: copied by a click, whole on hover. */
export function Id({ id, label = "Copy the id" }: { id: string; label?: string }) {
  return <CopyText text={id} shown={shortId(id)} label={label} />;
}

export function shortId(id: string): string {
  return id.length > 8 ? id.slice(-8) : id;
}
