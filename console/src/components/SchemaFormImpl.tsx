import { Button } from "@mantine/core";
import { withTheme } from "@rjsf/core";
import { Theme } from "@rjsf/mantine";
import type { ErrorSchema, RJSFSchema } from "@rjsf/utils";
import { useMemo } from "react";
import { parseJson, printJson, type JsonValue } from "../api/json";
import type { SchemaFormProps } from "./SchemaForm";
import { interpreter } from "./schema-validator";
import classes from "./SchemaForm.module.css";

const Form = withTheme(Theme);

/** The server's issues as rjsf has them: a tree by the path's segments. */
function errorTree(issues: SchemaFormProps["issues"] = []): ErrorSchema {
  const tree: Record<string, unknown> = {};
  for (const { path, message } of issues) {
    let at = tree;
    for (const segment of path.split(/[/.]/).filter((each) => each !== "" && each !== "#" && each !== "$")) {
      at[segment] ??= {};
      at = at[segment] as Record<string, unknown>;
    }
    (at.__errors ??= []) as string[];
    (at.__errors as string[]).push(message);
  }
  return tree as ErrorSchema;
}

export default function SchemaFormImpl({ schema, value, onChange, onSubmit, issues, submit, busy = false, disabled = false }: SchemaFormProps) {
  const extraErrors = useMemo(() => errorTree(issues), [issues]);
  return (
    <div className={classes.form}>
      <Form
        schema={schema as RJSFSchema}
        // rjsf compares and copies plain data; numbers without loss come back by the text.
        formData={value === undefined ? undefined : (JSON.parse(printJson(value)) as unknown)}
        validator={interpreter}
        extraErrors={extraErrors}
        showErrorList={false}
        noHtml5Validate
        disabled={disabled || busy}
        onChange={({ formData }) => onChange(formData === undefined ? undefined : parseJson(JSON.stringify(formData)))}
        onSubmit={({ formData }) => onSubmit(formData === undefined ? undefined : (parseJson(JSON.stringify(formData)) as JsonValue))}
      >
        <Button type="submit" loading={busy} disabled={disabled} mt="md">
          {submit}
        </Button>
      </Form>
    </div>
  );
}
