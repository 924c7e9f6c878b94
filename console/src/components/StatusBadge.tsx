import { IconAlertTriangle, IconCircleCheck, IconCircleDashed, IconCircleX, IconClock, IconInfoCircle, type TablerIcon } from "@tabler/icons-react";
import type { ReactNode } from "react";
import classes from "./StatusBadge.module.css";

export type Tone = "ok" | "wait" | "warn" | "bad" | "info" | "off";

const ICONS: Record<Tone, TablerIcon> = {
  ok: IconCircleCheck,
  wait: IconClock,
  warn: IconAlertTriangle,
  bad: IconCircleX,
  info: IconInfoCircle,
  off: IconCircleDashed,
};

/** A state, as a word with an icon, and never only as a color. `plain` removes the background (in tables). */
export function StatusBadge({ tone, plain = false, children }: { tone: Tone; plain?: boolean; children: ReactNode }) {
  const Icon = ICONS[tone];
  return (
    <span className={classes.badge} data-tone={tone} data-plain={plain || undefined}>
      <Icon size={14} stroke={2} aria-hidden="true" />
      {children}
    </span>
  );
}
