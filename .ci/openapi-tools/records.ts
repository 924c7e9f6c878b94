// The console writes the types of record routes by hand. They have to fit the document. `console/` has copies of files of
// `console/src/api`.
import type { JsonValue } from "./console/json";
import type { RecordPaths } from "./console/record-paths";
import type { paths } from "./schema";

type List = RecordPaths["/api/v1/data/{object}"];
type Query = RecordPaths["/api/v1/data/{object}/query"];
type One = RecordPaths["/api/v1/data/{object}/{id}"];
type Links = RecordPaths["/api/v1/data/{object}/{id}/links/{relation}"];
type Bulk = RecordPaths["/api/v1/data/{object}/bulk"];
type Aggregate = RecordPaths["/api/v1/data/{object}/aggregate"];
type Export = RecordPaths["/api/v1/data/{object}/export"];
type Action = RecordPaths["/api/v1/blocks/{block}/actions/{action}"];

type ApiList = paths["/api/v1/data/task"];
type ApiQuery = paths["/api/v1/data/task/query"];
type ApiOne = paths["/api/v1/data/task/{id}"];
type ApiLinks = paths["/api/v1/data/task/{id}/links/tags"];
type ApiBulk = paths["/api/v1/data/task/bulk"];
type ApiAggregate = paths["/api/v1/data/task/aggregate"];
type ApiExport = paths["/api/v1/data/task/export"];
type ApiAction = paths["/api/v1/blocks/tasks/actions/complete"];

interface WithJson {
  content: { "application/json": unknown };
}
type Content<Message extends WithJson> = Message["content"]["application/json"];
type Body<Operation extends { requestBody?: WithJson }> = Content<NonNullable<Operation["requestBody"]>>;

/** The document leaves some values open. They are JSON. */
type Json<Type> = unknown extends Type ? JsonValue : Type extends object ? { [Key in keyof Type]: Json<Type[Key]> } : Type;

type Fits<Console, Api extends Console> = [Console, Api];

// What the API answers is what the console reads.
type ApiPage = Json<Content<ApiList["get"]["responses"][200]>>;
export type Answers = [
  Fits<Content<List["get"]["responses"][200]>, ApiPage>,
  Fits<Content<List["post"]["responses"][200]>, Json<Content<ApiList["post"]["responses"][201]>>>,
  Fits<Content<Query["post"]["responses"][200]>, Json<Content<ApiQuery["post"]["responses"][200]>>>,
  Fits<Content<One["get"]["responses"][200]>, Json<Content<ApiOne["get"]["responses"][200]>>>,
  Fits<Content<One["patch"]["responses"][200]>, Json<Content<ApiOne["patch"]["responses"][200]>>>,
  Fits<keyof ApiOne["delete"]["responses"], 204>,
  Fits<Content<Links["post"]["responses"][200]>, Json<Content<ApiLinks["post"]["responses"][200]>>>,
  Fits<Content<Links["delete"]["responses"][200]>, Json<Content<ApiLinks["delete"]["responses"][200]>>>,
  Fits<Content<Bulk["post"]["responses"][200]>, Json<Content<ApiBulk["post"]["responses"][201]>>>,
  Fits<Content<Bulk["patch"]["responses"][200]>, Json<Content<ApiBulk["patch"]["responses"][200]>>>,
  Fits<Content<Bulk["delete"]["responses"][200]>, Json<Content<ApiBulk["delete"]["responses"][200]>>>,
  Fits<Content<Aggregate["get"]["responses"][200]>, Json<Content<ApiAggregate["get"]["responses"][200]>>>,
  Fits<Content<Export["get"]["responses"][200]>, ApiExport["get"]["responses"][200]["content"]["text/csv"]>,
  Fits<Content<Action["post"]["responses"][200]>, Json<Content<ApiAction["post"]["responses"][200]>>>,
];
// @ts-expect-error A page needs its records.
export type Pageless = Fits<Content<List["get"]["responses"][200]>, Omit<ApiPage, "data">>;

// What the console sends is what the API takes.
const ids = ["0190a2c4-0000-7000-8000-000000000000"];
export const bodies = [
  { title: "One" } satisfies Body<List["post"]> satisfies Body<ApiList["post"]>,
  { where: { done: true }, cursor: true, pageSize: 50, sort: "title" } satisfies Body<Query["post"]> satisfies Body<ApiQuery["post"]>,
  { done: true } satisfies Body<One["patch"]> satisfies Body<ApiOne["patch"]>,
  { ids } satisfies Body<Links["post"]> satisfies Body<ApiLinks["post"]>,
  { ids } satisfies Body<Links["delete"]> satisfies Body<ApiLinks["delete"]>,
  { data: [{ title: "One" }] } satisfies Body<Bulk["post"]> satisfies Body<ApiBulk["post"]>,
  { ids, values: { done: true } } satisfies Body<Bulk["patch"]> satisfies Body<ApiBulk["patch"]>,
  { ids } satisfies Body<Bulk["delete"]> satisfies Body<ApiBulk["delete"]>,
  { id: ids[0] } satisfies Body<Action["post"]> satisfies Body<ApiAction["post"]>,
];
// @ts-expect-error An action's input has the properties that its block requires.
export const input = {} satisfies Body<ApiAction["post"]>;
// The names of headers have no case.
export const headers = [
  { "if-match": "*" } satisfies One["patch"]["parameters"]["header"] satisfies One["delete"]["parameters"]["header"],
  { "If-Match": "*" } satisfies ApiOne["patch"]["parameters"]["header"] satisfies ApiOne["delete"]["parameters"]["header"],
];
