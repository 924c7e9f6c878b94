/** The effect of a change before it is made. The server checks the rows and the things that depend on them, and changes nothing. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { type Described, requestRaw } from "../../../api/client";
import { parseJson, printJson } from "../../../api/json";
import type { Plan } from "../../../api/types";
import { useSettled } from "../../../components/SettledInput";

export function planQuery(step: Described, schemaVersion: number | undefined) {
  return queryOptions({
    queryKey: ["plan", schemaVersion ?? 0, step.method, step.path, step.body === undefined ? "" : printJson(step.body)],
    queryFn: async ({ signal }) => {
      const answer = await requestRaw(step.method, `${step.path}${step.path.includes("?") ? "&" : "?"}dryRun=true`, { body: step.body, signal });
      // For a dry run, each operation of the schema returns its plan.
      return (parseJson(await answer.text()) as unknown as { data: Plan }).data;
    },
    staleTime: 10_000,
  });
}

/** The plan of a step that a person is still typing. It is requested when they pause. With `null`, no request is sent. */
export function usePlan(step: Described | null, schemaVersion: number | undefined, pauseMs = 400) {
  const text = step === null ? null : printJson(step);
  const settled = useSettled(text, pauseMs);
  const isCurrent = settled === text;
  const asked = step !== null && isCurrent ? step : null;
  const query = useQuery({
    ...planQuery(asked ?? { method: "PATCH", path: "/" }, schemaVersion),
    enabled: asked !== null,
  });
  return { plan: asked === null ? undefined : query.data, error: asked === null ? null : query.error, isPending: step !== null && (!isCurrent || query.isPending), refetch: query.refetch };
}
