import { ErrorNotice } from "./ErrorState";
import { SkeletonLines } from "./Skeleton";

/**
 * Shown in place of a part of a screen that is not there yet: placeholder lines, or the error of its query. `what` is its name, such as "The
 * runs".
 */
export function PartNotLoaded({ query: { error, refetch }, what, lines }: { query: { error: unknown; refetch: () => unknown }; what: string; lines?: number }) {
  return error === null ? <SkeletonLines lines={lines} /> : <ErrorNotice error={error} title={`${what} could not be loaded`} onRetry={() => void refetch()} />;
}
