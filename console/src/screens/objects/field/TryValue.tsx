import { TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { isApiError } from "../../../api/errors";
import { useObjects } from "../../../api/objects";
import { useCan } from "../../../api/session";
import type { Field } from "../../../api/types";
import { useSettled } from "../../../components/SettledInput";
import { StatusBadge } from "../../../components/StatusBadge";
import { Ticked } from "../../../components/Ticked";
import { typeInfo } from "../model/fieldTypes";
import { guess, tryQuery } from "../model/tryValue";
import classes from "./FieldForm.module.css";

/** Shows whether the field would accept a typed value, by the server's own rules. */
export function TryValue({ field }: { field: Field }) {
  const [text, setText] = useState("");
  const settled = useSettled(text);
  const settledField = useSettled(field);
  const asksServer = useCan("objects", "create");
  const { data: objects } = useObjects();
  const isBlank = text === "";
  const query = useQuery({ ...tryQuery(settledField, settled, freeName(objects?.map(({ name }) => name) ?? [])), enabled: asksServer && settled !== "", placeholderData: (previous) => previous });
  const refused = isApiError(query.error) && query.error.status === 403;
  const verdict = isBlank ? null : !asksServer || refused ? guess(field, text) : (query.data ?? null);
  return (
    <div className={classes.try}>
      <TextInput
        label="Try a value"
        placeholder={typeInfo(field.type).example}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
        dir="auto"
      />
      <div className={classes.verdict} role="status">
        {verdict === null ? (
          <span className="dim">{isBlank ? "Nothing is saved. The value is checked against the rules above as you type." : query.error === null ? "…" : `Not tried: ${query.error.message}`}</span>
        ) : (
          <>
            <StatusBadge tone={verdict.ok ? "ok" : "bad"} plain>
              {verdict.ok ? "taken" : "refused"}
            </StatusBadge>{" "}
            <span dir="auto"><Ticked text={verdict.message} /></span>
            {verdict.isGuess && <span className="dim"> Judged by this browser; the server has the last word.</span>}
          </>
        )}
      </div>
    </div>
  );
}

function freeName(taken: string[]): string {
  let name = "try_a_value";
  for (let number = 2; taken.includes(name); number++) name = `try_a_value_${number}`;
  return name;
}
