import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { CodeBlock } from "./CodeBlock";
import classes from "./States.module.css";

export interface EmptyStateProps {
  title: string;
  /** One sentence that teaches. */
  children: ReactNode;
  /** One button. */
  action?: ReactNode;
  /** What the API reference says about it: an operation, as `POST /api/v1/webhooks`. No other documentation has an address that each server can reach. */
  docs?: string;
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
      {((action !== undefined && action !== false) || docs !== undefined) && (
        <div className={classes.emptyActions}>
          {action}
          {docs !== undefined && (
            <Link to="/api" search={{ operation: docs }}>
              Read about it in the API reference
            </Link>
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
