import { api } from "../../../api/client";
import type { Column } from "../../../api/record-shape";
import { recordPath } from "../../../api/records";

export type ExportFormat = "csv" | "ndjson";
/** The list's parameters as the table shows it: filters, `search`, `sort`, `select`; without paging. */
export type View = readonly (readonly [string, string])[];

const PAGING = new Set(["page", "pageSize", "limit", "offset", "expand", "count"]);

/** The parameters of the export of a view. `named` are reference columns, and the unique fields that are written instead of ids. */
function exportQuery(view: View, format: ExportFormat, named: { column: Column; field: Column }[]): URLSearchParams {
  const query = new URLSearchParams([["format", format]]);
  for (const [name, value] of view) if (!PAGING.has(name)) query.append(name, value);
  const names = named.flatMap(({ column, field }) => (column.reference === undefined ? [] : [`${column.reference.relation}.${field.name}`]));
  if (names.length > 0) query.set("names", names.join(","));
  return query;
}

/** Downloads all rows of a view. Asks first whether the server would give them, so that a refusal is an error here and not kept as a file. */
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
