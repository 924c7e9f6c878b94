/** The effect of a change before it is made: the server looks at the rows and at what depends on them, and changes nothing. */
import { useDebouncedValue } from "@mantine/hooks";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { address, request } from "../../../api/client";
import { isApiError } from "../../../api/errors";
import { printJson } from "../../../api/json";
import type { StepRequest } from "./draft";

export interface Dependent {
  kind: "relationship" | "unique" | "index" | "role" | "webhook" | "subscription" | "block" | "task";
  name: string;
  id: string | null;
  /** One sentence or phrase, to show as it is. */
  detail: string;
}

export interface Plan {
  destructive: boolean;
  rows: number;
  lost: { what: "records" | "values" | "links"; object: string; name: string | null; rows: number }[];
  breaking: { rule: string; object: string; field: string | null; rows: number; message: string }[];
  dependents: Dependent[];
  hidden: number;
}

export function planQuery(step: StepRequest, schemaVersion: number | undefined) {
  return queryOptions({
    queryKey: ["plan", schemaVersion ?? 0, step.method, step.path, step.body === undefined ? "" : printJson(step.body)],
    queryFn: async ({ signal }) => {
      const [path = "", query = ""] = step.path.split("?");
      const answer = await request<{ data: Plan }>(step.method, address(path, { ...Object.fromEntries(new URLSearchParams(query)), dryRun: true }), {
        ...(step.body === undefined ? {} : { body: step.body }),
        signal,
      });
      return answer.data;
    },
    staleTime: 10_000,
    retry: (failures, error) => failures < 1 && !(isApiError(error) && error.status < 500),
  });
}

/** The plan of a step while somebody still types it: asked for when they pause. `null` asks nothing. */
export function usePlan(step: StepRequest | null, schemaVersion: number | undefined, pauseMs = 400) {
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
