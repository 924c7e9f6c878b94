import { Fragment, type ReactNode } from "react";
import classes from "./Details.module.css";

export interface FactListProps {
  /** The facts by their names, in this order. One that is `null`, `undefined` or `false` is left out. */
  facts: Record<string, ReactNode>;
  className?: string | undefined;
}

/** The facts about one thing: their names at the left, their values at the right. */
export function FactList({ facts, className = classes.facts }: FactListProps) {
  const known = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined && value !== false);
  return (
    <dl className={className}>
      {known.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
