import { useActorName } from "../api/actors";
import { Id } from "./Id";

/** Who did something: "you", a user's or a key's name, else the id. Null: nobody who was signed in. */
export function Actor({ id }: { id: string | null | undefined }) {
  const known = useActorName(id);
  if (id === null || id === undefined) return <span className="dim">the server</span>;
  if (known === undefined) return <span className="dim">…</span>;
  if (known === null) return <Id id={id} label="Copy the id of who did it" />;
  return (
    <span title={id}>
      <bdi>{known.name}</bdi>
      {known.kind === "key" && <span className="dim"> (key)</span>}
    </span>
  );
}
