import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { KnownObject } from "../../../api/objects";
import type { Relationship } from "../../../api/types";
import { Inspector, type PaneActions } from "../../../components/Inspector";
import { TypeIcon } from "../field/FieldForm";
import { RuleChips } from "../object/FieldsTab";
import { typeInfo } from "../model/fieldTypes";
import { KIND_SYMBOLS } from "../model/relations";
import { RecordCount } from "./ObjectsScreen";
import classes from "./ObjectInspector.module.css";

const FIELDS_SHOWN_MAX = 60;

/** The inspector of an object, with a short list of its fields and relations. */
export function ObjectInspector({ object, relations, ...pane }: { object: KnownObject; relations: Relationship[] } & PaneActions) {
  const { name, label, description, fields } = object;
  const own = relations.filter(({ source, target }) => source === name || target === name);
  return (
    <Inspector
      title={name}
      {...pane}
      footer={
        <>
          {fields !== undefined && (
            <Button renderRoot={(props) => <Link to="/objects/$object" params={{ object: name }} {...props} />}>
              Edit object
            </Button>
          )}
          <Button renderRoot={(props) => <Link to="/data/$object" params={{ object: name }} {...props} />} variant="default">
            Records
          </Button>
        </>
      }
    >
      {label !== undefined && <p className={classes.label} dir="auto">{label}</p>}
      {description !== undefined && <p className="dim" dir="auto">{description}</p>}
      <p>
        <RecordCount object={name} /> records
      </p>
      {fields !== undefined && (
        <>
          <h3 className={classes.head}>Fields</h3>
          <ul className={classes.list}>
            {fields.slice(0, FIELDS_SHOWN_MAX).map((field) => (
              <li key={field.name}>
                <TypeIcon type={field.type} />
                <Link to="/objects/$object" params={{ object: name }} search={{ open: field.name }} className={classes.field}>
                  {field.name}
                </Link>
                <span className="dim">{typeInfo(field.type).label}</span>
                <RuleChips field={field} />
              </li>
            ))}
            {fields.length > FIELDS_SHOWN_MAX && <li className="dim">and {fields.length - FIELDS_SHOWN_MAX} more</li>}
            {fields.length === 0 && <li className="dim">none</li>}
          </ul>
          <h3 className={classes.head}>Relations</h3>
          <ul className={classes.list}>
            {own.map((relation) => (
              <li key={relation.id}>
                <code className="mono">{relation.name}</code>
                <span>
                  {relation.source} {KIND_SYMBOLS[relation.kind]} {relation.target}
                </span>
              </li>
            ))}
            {own.length === 0 && <li className="dim">none</li>}
          </ul>
        </>
      )}
    </Inspector>
  );
}
