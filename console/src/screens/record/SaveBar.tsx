import { Button } from "@mantine/core";
import { useHotkeys } from "../../components/useHotkeys";
import { useCountdown } from "../../components/ErrorState";
import { isApiError } from "../../api/errors";
import classes from "./record.module.css";

export interface SaveBarProps {
  changed: string[];
  isSaving: boolean;
  onSave: () => void;
  onDiscard: () => void;
  saveLabel?: string;
  discardLabel?: string;
  failure?: unknown;
  /** A second way to save. */
  more?: { label: string; onClick: () => void };
  /** The reason why saving is not possible. */
  blocked?: string | undefined;
}

/** The unsaved changes, with the buttons to save and to discard them. */
export function SaveBar({ changed, isSaving, onSave, onDiscard, saveLabel = "Save", discardLabel = "Discard", failure = null, more, blocked }: SaveBarProps) {
  const wait = useCountdown(isApiError(failure) ? failure.retryAfterSeconds : undefined, failure);
  const isWaiting = wait !== undefined && wait > 0;
  useHotkeys({ "mod+s": onSave, "mod+Enter": onSave });
  return (
    <div className={classes.bar}>
      <span className={classes.barText} aria-live="polite">
        {blocked ?? (changed.length === 0 ? "" : `${changed.length === 1 ? "1 change" : `${changed.length} changes`}: ${changed.slice(0, 4).join(", ")}${changed.length > 4 ? ", …" : ""}`)}
      </span>
      <Button variant="default" onClick={onDiscard} disabled={isSaving}>
        {discardLabel}
      </Button>
      {more !== undefined && (
        <Button variant="default" onClick={more.onClick} disabled={isSaving || isWaiting || blocked !== undefined}>
          {more.label}
        </Button>
      )}
      <Button data-tip="Ctrl S" onClick={onSave} loading={isSaving} disabled={isWaiting || blocked !== undefined}>
        {isWaiting ? `${saveLabel} (${wait} s)` : saveLabel}
      </Button>
    </div>
  );
}
