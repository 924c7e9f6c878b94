import { Anchor } from "@mantine/core";
import type { ReactNode } from "react";
import { CodeBlock } from "./CodeBlock";
import classes from "./States.module.css";

export interface EmptyStateProps {
  title: string;
  /** One sentence that teaches. */
  children: ReactNode;
  /** One button. */
  action?: ReactNode;
  /** A page of the docs. */
  docs?: { label: string; href: string };
  /** The curl that does the same. */
  curl?: string;
  /** What to type in a terminal instead of a curl. */
  commands?: string;
}

/** What a screen shows when there is nothing yet: a sentence, a button, a link, and the curl that does the same. */
export function EmptyState({ title, children, action, docs, curl, commands }: EmptyStateProps) {
  return (
    <section className={classes.empty} aria-label={title}>
      <h2 className={classes.emptyTitle}>{title}</h2>
      <p className={classes.emptyText}>{children}</p>
      {(action !== undefined || docs !== undefined) && (
        <div className={classes.emptyActions}>
          {action}
          {docs !== undefined && (
            <Anchor href={docs.href} target="_blank" rel="noreferrer" size="sm">
              {docs.label}
            </Anchor>
          )}
        </div>
      )}
      {commands !== undefined && (
        <div className={classes.wide}>
          <CodeBlock code={commands} label="On the command line" />
        </div>
      )}
      {curl !== undefined && (
        <div className={classes.wide}>
          <CodeBlock code={curl} label="The same with curl" />
        </div>
      )}
    </section>
  );
}
