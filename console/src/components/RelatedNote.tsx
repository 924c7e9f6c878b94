import type { Related } from "../api/related";
import classes from "./RelatedNote.module.css";

/** What tells related records with equal names apart, beside the name: a user's address. */
export function RelatedNote({ of: { note } }: { of: Related }) {
  return note === undefined ? null : <bdi className={classes.note}>{note}</bdi>;
}
