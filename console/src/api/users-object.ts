/**
 * The users of the service, as an object that relationships can lead to. The server lists them at `/api/v1/data/users`, but they are in no
 * list of objects and no schema. So this file describes them. Only the screen Users can change them.
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

/** The word for one record of an object, as in "each task" or "each user". */
export const oneOf = (object: string): string => (object === USERS ? "user" : object);

/** The words for the target of a reference: "a record of task", "a user". */
export const recordOf = (object: string): string => (object === USERS ? "a user" : `a record of ${object}`);
