// GraphiQL over the endpoint that served the page.
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { GraphiQL } from "graphiql";
import { fetcher } from "./fetcher.js";
import { storage } from "./storage.js";

const DEFAULT_QUERY = `# GraphiQL of Blockbase
#
# The schema follows the objects of this service:
# each has a list with filter, search, sort and
# pages, a record by its id, an aggregate, and
# mutations. The book icon opens all of it.
#
# Requests carry this browser's session. An API
# key goes into the headers below:
#   { "X-API-Key": "svc_…" }
#
# Ctrl-Enter runs, Ctrl-Space completes. Events of
# a subscription are shown as they come:
#   subscription {
#     events(topics: ["data.#"]) { topic payload }
#   }

{
  svc_schema_version
  svc_objects
}
`;

const place = document.getElementById("graphiql");

globalThis.MonacoEnvironment = {
  getWorker(_id, label) {
    const name = { graphql: "graphqlWorker", json: "jsonWorker" }[label] ?? "editorWorker";
    return new Worker(place.dataset[name], { type: "module", name: label });
  },
};

// What the address holds is shown, and not run.
const asked = new URLSearchParams(location.search);
const given = (name) => asked.get(name) || undefined;

createRoot(place).render(
  createElement(
    GraphiQL,
    {
      fetcher,
      storage,
      defaultQuery: DEFAULT_QUERY,
      initialQuery: given("query"),
      initialVariables: given("variables"),
      operationName: given("operationName"),
    },
    createElement(GraphiQL.Logo, null, "Blockbase"),
  ),
);
