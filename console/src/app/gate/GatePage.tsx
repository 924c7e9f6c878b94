import type { ReactNode } from "react";
import { useTitle } from "../../components/Page";
import { Mark } from "../shell/Mark";
import classes from "./Gate.module.css";

/** The frame of the pages before the console: first run, sign-in, onboarding. */
export function GatePage({ title, lead, children }: { title: string; lead: ReactNode; children: ReactNode }) {
  useTitle(title);
  return (
    <main className={classes.page}>
      <div className={classes.card}>
        <div className={classes.brand}>
          <Mark /> Blockbase
        </div>
        <h1 className={classes.title}>{title}</h1>
        <p className={classes.lead}>{lead}</p>
        {children}
      </div>
    </main>
  );
}
