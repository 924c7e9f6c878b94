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

/** Runs one job at a time. While it runs, the browser asks before it closes the page. */
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
  // If the person leaves the screen, the job ends after the current call.
  useEffect(() => () => controller.current?.abort(), []);
  /** Starts a job. A quiet job shows a dialog only if a record was not changed. */
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
