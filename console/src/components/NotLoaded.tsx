import { ErrorState } from "./ErrorState";
import { SkeletonRows } from "./Skeleton";

/** Shown in place of a list that is not there yet: placeholder rows, or the error of its query. `what` is its name, such as "The roles". */
export function NotLoaded({ query: { error, refetch }, what, ...size }: { query: { error: unknown; refetch: () => unknown }; what: string; rows: number; columns?: number }) {
  return error === null ? <SkeletonRows {...size} /> : <ErrorState error={error} title={`${what} could not be loaded`} onRetry={() => void refetch()} />;
}
