import { ActionIcon, Button } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useCallback, useEffect, useRef, useState } from "react";
import classes from "./Copy.module.css";

/**
 * Returns a function that copies a text, and a flag that is `true` for a moment afterwards. On a page that is not secure (plain HTTP), it
 * copies through a selection.
 */
export function useCopy(): [boolean, (text: string) => Promise<void>] {
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = useCallback(async (text: string) => {
    await writeClipboard(text);
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), 1_500);
  }, []);
  return [copied, copy];
}

async function writeClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    return;
  } catch {
    // The clipboard API needs a secure context and permission. Otherwise use the old way.
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** A text in monospace. A click copies `text`. `shown` is the text on the screen. */
export function CopyText({ text, shown = text, label = "Copy" }: { text: string; shown?: string; label?: string }) {
  const [copied, copy] = useCopy();
  const Icon = copied ? IconCheck : IconCopy;
  return (
    <span
      role="button"
      tabIndex={0}
      className={classes.copy}
      data-copied={copied || undefined}
      data-tip={copied ? "Copied" : shown === text ? label : text}
      onClick={(event) => {
        event.stopPropagation();
        void copy(text);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        void copy(text);
      }}
    >
      <span>{shown}</span>
      <span className="sr-only">, {copied ? "copied" : label.toLowerCase()}</span>
      <Icon size={12} className={classes.icon} aria-hidden="true" />
    </span>
  );
}

export function CopyButton({ text, label = "Copy", icon = false }: { text: string; label?: string; icon?: boolean }) {
  const [copied, copy] = useCopy();
  const Icon = copied ? IconCheck : IconCopy;
  if (icon)
    return (
      <ActionIcon aria-label={label} data-tip={copied ? "Copied" : label} onClick={() => void copy(text)}>
        <Icon size={15} />
      </ActionIcon>
    );
  return (
    <Button variant="default" leftSection={<Icon size={14} />} onClick={() => void copy(text)}>
      {copied ? "Copied" : label}
    </Button>
  );
}
