import { IconKey } from "@tabler/icons-react";
import { useActor } from "../api/actors";
import { Id, shortId } from "./Id";
import { Initials } from "./Initials";
import classes from "./Actor.module.css";

export interface ActorProps {
  id: string | null | undefined;
  /** Shows the initials, or an icon for a key. */
  picture?: boolean;
  isKey?: boolean;
  /** The text that is shown without an id. */
  nobody?: string;
}

/** The person or key behind a change: "you", the name of a user or key, or else the id. */
export function Actor({ id, picture = false, isKey = false, nobody = "the server" }: ActorProps) {
  const known = useActor(id);
  if (typeof id !== "string" || id === "") return <span className="dim">{nobody}</span>;
  if (picture)
    return (
      <span className={classes.person} title={[known?.name, known?.email, id].filter(Boolean).join("\n")}>
        {isKey || known?.kind === "key" ? <IconKey size={15} className={classes.icon} aria-label="API key" /> : <Initials name={known?.name ?? "?"} size={18} />}
        <bdi className={known ? classes.name : "mono"}>{known?.name ?? shortId(id)}</bdi>
      </span>
    );
  if (known === undefined) return <span className="dim">…</span>;
  if (known === null) return <Id id={id} label="Copy the id of who did it" />;
  return (
    <span title={id}>
      <bdi>{known.kind === "me" ? "you" : known.name}</bdi>
      {known.kind === "key" && <span className="dim"> (key)</span>}
    </span>
  );
}
