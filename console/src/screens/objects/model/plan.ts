/** The effect of a change before it is made: the server looks at the rows and at what depends on them, and changes nothing. */
import { useDebouncedValue } from "@mantine/hooks";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { type Described, requestRaw } from "../../../api/client";
import { parseJson, printJson } from "../../../api/json";
import type { Plan } from "../../../api/types";

export function planQuery(step: Described, schemaVersion: number | undefined) {
  return queryOptions({
    queryKey: ["plan", schemaVersion ?? 0, step.method, step.path, step.body === undefined ? "" : printJson(step.body)],
    queryFn: async ({ signal }) => {
      const answer = await requestRaw(step.method, `${step.path}${step.path.includes("?") ? "&" : "?"}dryRun=true`, { body: step.body, signal });
      // Each operation of the schema answers a dry run with its plan.
      return (parseJson(await answer.text()) as unknown as { data: Plan }).data;
    },
    staleTime: 10_000,
  });
}

/** The plan of a step while somebody still types it: asked for when they pause. `null` asks nothing. */
export function usePlan(step: Described | null, schemaVersion: number | undefined, pauseMs = 400) {
  const text = step === null ? null : printJson(step);
  const [settled] = useDebouncedValue(text, pauseMs);
  const isCurrent = settled === text;
  const asked = step !== null && isCurrent ? step : null;
  const query = useQuery({
    ...planQuery(asked ?? { method: "PATCH", path: "/" }, schemaVersion),
    enabled: asked !== null,
  });
  return { plan: asked === null ? undefined : query.data, error: asked === null ? null : query.error, isPending: step !== null && (!isCurrent || query.isPending), refetch: query.refetch };
}
