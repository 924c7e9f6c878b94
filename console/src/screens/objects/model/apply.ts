/**
 * Applies steps one after another. The schema API has no transaction over several requests, so after a failure the earlier steps stay
 * applied.
 */
import { requestRaw } from "../../../api/client";
import type { Step } from "./draft";

export type StepState = "waiting" | "running" | "applied" | "failed";

export interface Applied {
  applied: Step[];
  failed: { step: Step; error: unknown } | null;
  left: Step[];
}

export async function applySteps(steps: Step[], onState: (step: Step, state: StepState) => void): Promise<Applied> {
  const applied: Step[] = [];
  for (const [index, step] of steps.entries()) {
    onState(step, "running");
    try {
      await requestRaw(step.request.method, step.request.path, { body: step.request.body });
    } catch (error) {
      onState(step, "failed");
      return { applied, failed: { step, error }, left: steps.slice(index + 1) };
    }
    onState(step, "applied");
    applied.push(step);
  }
  return { applied, failed: null, left: [] };
}
