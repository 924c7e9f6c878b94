import { Fragment, type ReactNode } from "react";
import classes from "./Details.module.css";

/**
 * The facts about one thing, in this order: their names at the left, their values at the right. A fact that is `null`, `undefined` or
 * `false` is left out.
 */
export function FactList({ facts }: { facts: Record<string, ReactNode> }) {
  const known = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined && value !== false);
  return (
    <dl className={classes.facts}>
      {known.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
