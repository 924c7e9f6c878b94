import { IconKey } from "@tabler/icons-react";
import { usePerson } from "../api/people";
import { shortId } from "./Id";
import { Initials } from "./Initials";
import classes from "./PersonName.module.css";

/** Who did something: initials and name; the id where this reader may not know more; "nobody" without a credential. */
export function PersonName({ id, isKey = false, nobody = "nobody signed in" }: { id: string | null | undefined; isKey?: boolean; nobody?: string }) {
  const person = usePerson(id);
  if (person === undefined) return <span className="dim">{nobody}</span>;
  const name = person.name ?? shortId(person.id);
  const key = isKey || person.kind === "key";
  return (
    <span className={classes.person} title={[person.name, person.email, person.id].filter(Boolean).join("\n")}>
      {key ? <IconKey size={15} className={classes.icon} aria-label="API key" /> : <Initials name={person.name ?? "?"} size={18} />}
      <bdi className={person.name === undefined ? "mono" : classes.name}>{name}</bdi>
    </span>
  );
}
