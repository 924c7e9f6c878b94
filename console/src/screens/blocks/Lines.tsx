import { StatusBadge, type Tone } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { printJson } from "../../api/json";
import type { LogLine } from "../../api/types";
import classes from "./Blocks.module.css";

const TONES: Record<string, Tone> = { error: "bad", warn: "warn", info: "info" };

/** The lines of a log, as text and never as HTML. */
export function Lines({ lines, label }: { lines: Omit<LogLine, "id" | "callId">[]; label: string }) {
  return (
    <div className={classes.lines} role="log" aria-label={label} tabIndex={0}>
      {lines.map(({ at, level, message, fields }, index) => (
        // Lines are only added at one end, so the index identifies a line.
        // oxlint-disable-next-line react/no-array-index-key
        <div className={classes.line} key={`${at} ${index}`}>
          <Time at={at} />
          <StatusBadge tone={TONES[level] ?? "off"} plain>
            {level}
          </StatusBadge>
          <span className={classes.message} dir="auto">
            {message}
            {fields !== null && <span className="dim mono"> {printJson(fields)}</span>}
          </span>
        </div>
      ))}
    </div>
  );
}
