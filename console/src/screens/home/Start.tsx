import { IconArrowRight, IconPlus } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { CodeBlock } from "../../components/CodeBlock";
import { asCurl } from "../../components/CopyAs";
import { KIND_SYMBOLS } from "../objects/model/relations";
import { TEMPLATES, type Template } from "../objects/templates/templates";
import classes from "./Home.module.css";

/** The home page of an empty server: the first step, and the steps after it. */
export function Start({ name }: { name: string | undefined }) {
  return (
    <div className={classes.start}>
      <div className={classes.welcome}>
        <h2>{name === undefined || name === "" ? "Your server is running" : <>Your server is running, <bdi>{name}</bdi></>}</h2>
        <p>It has no data yet. Describe what you want to keep, and its REST, GraphQL and MCP API, its events and its permissions are there at once.</p>
      </div>
      <ol>
        <Step number={1} title="Create an object" isNow>
          <p>An object is a kind of record, with fields of nineteen types and relations to others.</p>
          <Link to="/objects/new" className={classes.scratch}>
            <IconPlus size={20} aria-hidden="true" />
            <b>From scratch</b>
            <span>Name it, add fields, done.</span>
          </Link>
          <div className={classes.cards}>
            {TEMPLATES.map((template) => (
              <TemplateCard key={template.id} template={template} />
            ))}
          </div>
        </Step>
        <Step number={2} title="Add a record">
          <p>In a table that edits like a spreadsheet, by import, or by the API.</p>
        </Step>
        <Step number={3} title="Create a key">
          <p>A key lets a program in, with the rights of one role.</p>
        </Step>
        <Step number={4} title="Call the API">
          <p>This address is live. With an object of yours in place of task it answers with its records.</p>
          <CodeBlock code={asCurl({ method: "GET", path: "/api/v1/data/task" })} label="curl" />
        </Step>
      </ol>
    </div>
  );
}

function Step({ number, title, isNow = false, children }: { number: number; title: string; isNow?: boolean; children: ReactNode }) {
  return (
    <li className={classes.step} data-state={isNow ? "now" : undefined}>
      <span className={classes.stepNumber} aria-hidden="true">
        {number}
      </span>
      <div className={classes.stepBody}>
        <h3>{title}</h3>
        {children}
      </div>
    </li>
  );
}

function TemplateCard({ template: { id, label, sentence, objects, relations } }: { template: Template }) {
  return (
    <Link to="/objects/new" search={{ template: id }} className={classes.template}>
      <b>
        {label} <IconArrowRight size={14} aria-hidden="true" />
      </b>
      <span>{sentence}</span>
      <span className={classes.shape} aria-hidden="true">
        {objects.map(({ name }) => {
          const out = relations.filter(({ source }) => source === name);
          return (
            <span key={name}>
              <code>{name}</code>
              {out.map(({ name: relation, kind, target }) => (
                <small key={relation}>
                  {KIND_SYMBOLS[kind]} {target}
                </small>
              ))}
            </span>
          );
        })}
      </span>
    </Link>
  );
}

