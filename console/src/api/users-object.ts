/**
 * The users of the service as an object that relationships lead to. The server lists them at `/api/v1/data/users`, but no list of
 * objects names them, and no schema describes them: this is their one description. They are written on the screen Users alone.
 */
import type { DataObject, Schema } from "./types";

export const USERS = "users";

export const USERS_OBJECT: DataObject = {
  name: USERS,
  label: "Users",
  description: "The accounts of this service.",
  fields: [
    { name: "name", type: "text" },
    { name: "image", type: "text" },
    { name: "email", type: "email", isUnique: true },
  ],
};

/** Whether a relationship leads to users. */
export const leadsToUsers = ({ relationships }: Pick<Schema, "relationships">): boolean => relationships.some(({ target }) => target === USERS);

/** One record of an object in a sentence: "each task", "each user". */
export const oneOf = (object: string): string => (object === USERS ? "user" : object);

/** What a reference leads to: "a record of task", "a user". */
export const recordOf = (object: string): string => (object === USERS ? "a user" : `a record of ${object}`);
