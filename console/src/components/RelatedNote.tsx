import type { Related } from "../api/related";
import classes from "./RelatedNote.module.css";

/** A text beside the name that distinguishes related records with the same name: the email address of a user. */
export function RelatedNote({ of: { note } }: { of: Related }) {
  return note === undefined ? null : <bdi className={classes.note}>{note}</bdi>;
}
