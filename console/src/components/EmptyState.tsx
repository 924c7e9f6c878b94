import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { CodeBlock } from "./CodeBlock";
import classes from "./States.module.css";

export interface EmptyStateProps {
  title: string;
  /** One sentence of explanation. */
  children: ReactNode;
  /** One button. */
  action?: ReactNode;
  /** An operation in the API reference, such as `POST /api/v1/webhooks`. Other documentation has no address that every server can reach. */
  docs?: string;
  /** A curl command that does the same. */
  curl?: string;
  /** Shell commands, in place of a curl command. */
  commands?: string;
}

/** Shown when a screen has no data yet: a sentence, a button, a link, and the curl command that does the same. */
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
