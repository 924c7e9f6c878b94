import { Link, type LinkProps } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import classes from "./Page.module.css";

/** The target of a link. Make it with `linkOptions({ to, params, search })` of the router, which checks it. */
export type LinkTarget = Pick<LinkProps, "to" | "params" | "search">;

export interface PageTab {
  label: string;
  link: LinkTarget;
  active: boolean;
}

export interface PageProps {
  /** The heading, and the title of the browser's tab. */
  title: string;
  /** Links to the parent pages, before the heading. */
  crumbs?: { label: string; link: LinkTarget }[];
  /** Shown beside the title, such as a count or a badge. */
  aside?: ReactNode;
  tabs?: PageTab[];
  actions?: ReactNode;
  toolbar?: ReactNode;
  /** The open `Inspector`, if there is one. */
  inspector?: ReactNode;
  /** Adds space around the content. Tables leave it off. */
  padded?: boolean;
  /** Limits the width, so that forms and texts stay readable. */
  narrow?: boolean;
  children: ReactNode;
}

/** The frame of a screen. It contains the title, tabs and actions, a toolbar, the content, and the inspector. */
export function Page({ title, crumbs = [], aside, tabs, actions, toolbar, inspector, padded = false, narrow = false, children }: PageProps) {
  useTitle(title);
  return (
    <div className={classes.page}>
      <header className={classes.head}>
        <h1 className={classes.title} dir="auto">
          {crumbs.map(({ label, link }) => (
            <span key={label}>
              <Link className={classes.crumb} {...(link as LinkProps)}>
                {label}
              </Link>
              <span className={classes.slash} aria-hidden="true">
                /
              </span>
            </span>
          ))}
          {title}
        </h1>
        {aside !== undefined && <div className={classes.count}>{aside}</div>}
        {tabs !== undefined && (
          <nav className={classes.tabs} aria-label={`${title}: views`}>
            {tabs.map(({ label, active, link }) => (
              <Link key={label} className={classes.tab} data-active={active || undefined} aria-current={active ? "page" : undefined} {...(link as LinkProps)}>
                {label}
              </Link>
            ))}
          </nav>
        )}
        {actions !== undefined && <div className={classes.actions}>{actions}</div>}
      </header>
      {toolbar !== undefined && (
        <div className={classes.toolbar} role="toolbar" aria-label="View">
          {toolbar}
        </div>
      )}
      <div className={classes.body}>
        <div className={[classes.content, padded && classes.padded, narrow && classes.narrow].filter(Boolean).join(" ")}>
          {children}
        </div>
        {inspector}
      </div>
    </div>
  );
}

/** Sets the title of the browser's tab while the component is mounted. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Blockbase`;
  }, [title]);
}
