import { api } from "../../../api/client";
import type { Column } from "../../../api/record-shape";
import { recordPath } from "../../../api/records";

export type ExportFormat = "csv" | "ndjson";
/** The parameters of the list in the table, without paging: filters, `search`, `sort`, `select`. */
export type View = readonly (readonly [string, string])[];

const PAGING = new Set(["page", "pageSize", "limit", "offset", "expand", "count"]);

/** The parameters of a view's export. `named` has reference columns, each with the unique field that is written instead of the id. */
function exportQuery(view: View, format: ExportFormat, named: { column: Column; field: Column }[]): URLSearchParams {
  const query = new URLSearchParams([["format", format]]);
  for (const [name, value] of view) if (!PAGING.has(name)) query.append(name, value);
  const names = named.flatMap(({ column, field }) => (column.reference === undefined ? [] : [`${column.reference.relation}.${field.name}`]));
  if (names.length > 0) query.set("names", names.join(","));
  return query;
}

/**
 * Downloads all rows of a view. A HEAD request first checks that the server allows it. Otherwise the browser would save an error response
 * as a file.
 */
export async function exportView(object: string, view: View, format: ExportFormat, named: { column: Column; field: Column }[] = []): Promise<void> {
  const query = exportQuery(view, format, named);
  await api.HEAD("/api/v1/data/{object}/export", { params: { path: { object }, query: query.toString() } });
  const link = document.createElement("a");
  link.href = `${recordPath(object)}/export?${query}`;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}
