/** The effect of deleting a record on other records: those that refer to it, and its links. */
import { api, dataOf, ok } from "../../api/client";
import { isApiError } from "../../api/errors";
import type { RecordShape, ReverseKey } from "../../api/record-shape";
import { allows } from "../../api/session";
import type { Permissions } from "../../api/types";

export interface Dependents {
  reverse: ReverseKey;
  count: number;
}

export const plural = (count: number, name: string) => `${count.toLocaleString("en")} ${name}`;

export async function dependentsOf(shape: RecordShape, id: string): Promise<Dependents[]> {
  const counted = await Promise.all(
    shape.reverse.map(async (reverse): Promise<Dependents> => {
      try {
        const query = { [`${reverse.column}[eq]`]: id, limit: 1, select: "id" };
        const { pagination } = await ok(api.GET("/api/v1/data/{object}", { params: { path: { object: reverse.object }, query } }));
        return { reverse, count: Number(pagination.totalCount) };
      } catch (error) {
        // If this person may not read these records, they cannot be counted. The server then decides about the deletion.
        if (isApiError(error)) return { reverse, count: 0 };
        throw error;
      }
    }),
  );
  return counted.filter(({ count }) => count > 0);
}

export async function linksOf({ object, links }: RecordShape, id: string, permissions: Permissions | undefined): Promise<number> {
  // The server refuses to expand relations to objects that the caller may not read.
  const readable = links.filter(({ target }) => allows(permissions, target, "read"));
  if (readable.length === 0) return 0;
  try {
    const query = { expand: readable.map(({ key }) => key).join(",") };
    const data = await dataOf(api.GET("/api/v1/data/{object}/{id}", { params: { path: { object, id }, query } }));
    return readable.reduce((sum, { key }) => sum + (Array.isArray(data[key]) ? data[key].length : 0), 0);
  } catch {
    return 0;
  }
}

/** The effect in words: "3 note and 12 links go too. 2 task lose their parent." */
export function sentences(dependents: Dependents[], links: number): string {
  const along = [
    ...dependents.filter(({ reverse }) => reverse.onDelete === "cascade").map(({ reverse, count }) => plural(count, reverse.object)),
    ...(links > 0 ? [plural(links, links === 1 ? "link" : "links")] : []),
  ];
  const cleared = dependents.filter(({ reverse }) => reverse.onDelete === "set_null");
  return [
    along.length > 0 ? `${new Intl.ListFormat("en").format(along)} ${along.length === 1 && along[0]!.startsWith("1 ") ? "goes" : "go"} too.` : "",
    ...cleared.map(({ reverse, count }) => `${plural(count, reverse.object)} ${count === 1 ? "loses its" : "lose their"} ${reverse.relation}.`),
  ]
    .filter(Boolean)
    .join(" ");
}
