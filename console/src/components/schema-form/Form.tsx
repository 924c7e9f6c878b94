import { Button } from "@mantine/core";
import { withTheme } from "@rjsf/core";
import type { ErrorSchema, RJSFSchema } from "@rjsf/utils";
import { useMemo } from "react";
import type { SchemaFormProps } from "../SchemaForm";
import { intoForm, outOfForm } from "./exact";
import classes from "./Form.module.css";
import { fields, templates, widgets } from "./theme";
import { interpreter } from "./validator";

const Themed = withTheme({ fields, templates, widgets });

const ALL_DEFAULTS = { emptyObjectFields: "skipEmptyDefaults" } as const;
const REQUIRED_DEFAULTS = { emptyObjectFields: "populateRequiredDefaults" } as const;
const nothing = () => {};

/** The server's issues in the format of rjsf: a tree by the segments of the path. */
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

export default function Form({ schema, value, onChange, onSubmit, issues, submit, withDefaults = false, busy = false, disabled = false }: SchemaFormProps) {
  const extraErrors = useMemo(() => errorTree(issues), [issues]);
  const formData = useMemo(() => intoForm(value), [value]);
  return (
    <div className={classes.form}>
      <Themed
        schema={schema as RJSFSchema}
        formData={formData}
        validator={interpreter}
        extraErrors={extraErrors}
        experimental_defaultFormStateBehavior={withDefaults ? ALL_DEFAULTS : REQUIRED_DEFAULTS}
        idPrefix="field"
        showErrorList={false}
        noHtml5Validate
        disabled={disabled || busy}
        // The errors appear at their fields. Without this handler, rjsf would also log them as errors of the page.
        onError={nothing}
        onChange={(form) => onChange(outOfForm(form.formData))}
        onSubmit={(form) => onSubmit(outOfForm(form.formData))}
      >
        <Button type="submit" loading={busy} disabled={disabled} mt="md">
          {submit}
        </Button>
      </Themed>
    </div>
  );
}
