/** Searches objects for a record with this id, a few objects at a time. It stops at the first object that has the record. */
import { api, dataOf } from "../../api/client";
import { isApiError } from "../../api/errors";
import type { KnownObject } from "../../api/objects";

const AT_ONCE = 6;

/** The name of the record's object. Null if no object has it. */
export async function findRecord(id: string, objects: KnownObject[], signal: AbortSignal): Promise<string | null> {
  const left = [...objects];
  let found: string | null = null;
  const look = async () => {
    for (let object = left.shift(); object !== undefined && found === null; object = left.shift()) {
      try {
        const query = { id, limit: 1, select: "id", count: "none" };
        const data = await dataOf(api.GET("/api/v1/data/{object}", { params: { path: { object: object.name }, query }, signal }));
        if (data.length > 0) found ??= object.name;
      } catch (error) {
        // This person may not read the object, so the search skips it.
        if (!isApiError(error) || error.status === 0 || error.status >= 500) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, look));
  return found;
}
