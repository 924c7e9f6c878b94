import { useCallback, useEffect, useRef, useState } from "react";
import { type Job, type Progress, type Report, run } from "./job";

export interface JobState {
  /** "Change status", "Delete". */
  title: string;
  /** "Changed", "Deleted". */
  verb: string;
  progress: Progress | null;
  report: Report | null;
}

/** Runs one job at a time, and warns before the page is closed while it does. */
export function useJob() {
  const [state, setState] = useState<JobState | null>(null);
  const controller = useRef<AbortController | null>(null);
  const running = state !== null && state.report === null;
  useEffect(() => {
    if (!running) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [running]);
  // Leaving the screen ends the job after the call that is under way.
  useEffect(() => () => controller.current?.abort(), []);
  /** A quiet job shows only what went wrong. */
  const start = useCallback(async (title: string, verb: string, job: Omit<Job, "signal" | "onProgress">, { quiet = false }: { quiet?: boolean } = {}): Promise<Report> => {
    controller.current = new AbortController();
    if (!quiet) setState({ title, verb, progress: null, report: null });
    const report = await run({ ...job, signal: controller.current.signal, onProgress: (progress) => setState((now) => (now === null || now.report !== null ? now : { ...now, progress })) });
    const isClean = report.stopped === undefined && report.refused.length === 0 && report.missing === 0;
    if (!quiet || !isClean) setState({ title, verb, progress: null, report });
    return report;
  }, []);
  const cancel = useCallback(() => controller.current?.abort(), []);
  const close = useCallback(() => setState(null), []);
  return { state, start, cancel, close };
}
