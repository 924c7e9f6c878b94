/** Builds a filter of several conditions, with and, or, not, and conditions on related records. */
import { Button, Modal } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { isApiError } from "../../../api/errors";
import { printJson } from "../../../api/json";
import { quantity } from "../../../api/numbers";
import { ErrorNotice } from "../../../components/ErrorState";
import { useSettled } from "../../../components/SettledInput";
import type { RecordShape } from "../columns";
import { filterParameters, queryText } from "../list-query";
import { countList } from "../lists";
import { ConditionFields, JsonToggle } from "./ConditionFields";
import { Sentence } from "./Sentence";
import { type Filter, type Part, type ShapeOf, TOO_LONG, filterOf, fitsAddress } from "./tree";
import { useConditionDraft } from "./useConditionDraft";
import { type TitleOf, wordsOfAll } from "./words";
import { submits } from "../../../components/submits";
import classes from "./Editors.module.css";

export interface BuilderProps {
  shape: RecordShape;
  of: ShapeOf;
  /** The parts of the filter, which AND joins, or a text that is not a valid condition. */
  from: Part[] | string;
  search: string;
  titleOf: TitleOf;
  onApply: (filter: Filter) => void;
  onClose: () => void;
}

export function Builder({ shape, of, from, search, titleOf, onApply, onClose }: BuilderProps) {
  const draft = useConditionDraft({ shape, of, titleOf, from, onSubmit: () => apply() });
  const { text, json, parts } = draft;
  const isWhole = json !== undefined;
  const built = filterOf(parts, shape, of);
  // A condition that was written as text keeps its JSON, unless plain conditions mean the same.
  const filter: Filter = text !== null && json !== undefined && built.where !== "" ? { conditions: [], where: printJson(json) } : built;
  const isTooLong = isWhole && !fitsAddress(filter, search);
  const words = wordsOfAll(parts, "and", { shape, of, titleOf });

  const query = queryText(filterParameters({ ...filter, search, sort: [] }, shape));
  const settled = useSettled(query);
  const isCurrent = settled === query && isWhole && !isTooLong;
  const counted = useQuery({
    // The same key as for the totals of the list, so that live changes start a new count.
    queryKey: ["data", shape.name, "total", settled],
    queryFn: ({ signal }) => countList(shape, settled, signal),
    // The filter before this one may have been incomplete.
    enabled: isCurrent,
    retry: false,
  });
  const refusal = isCurrent ? counted.error : null;
  const isRefused = isApiError(refusal) && refusal.status >= 400 && refusal.status < 500 && refusal.status !== 429;

  const apply = () => {
    draft.check();
    if (isWhole && !isTooLong && !isRefused) onApply(filter);
  };

  return (
    <Modal opened onClose={onClose} title="Filter" size={780} xOffset={12}>
      <form className={classes.builder} onSubmit={submits(() => apply())}>
        <p className={classes.said} data-sentence>
          {words.length === 0 ? <span className="dim">All records. Choose a column or a relation.</span> : <Sentence words={words} />}
        </p>
        <ConditionFields draft={draft} shape={shape} label="Condition" hint="The condition as the parameter `where` takes it: fields, operators and relations, `_and`, `_or` and `_not`." />
        {refusal !== null && <ErrorNotice error={refusal} title={isRefused ? "The server refuses this filter" : "The records could not be counted"} />}
        <div className={classes.builderFoot}>
          <span className={classes.found} role="status">
            {!isWhole ? (
              draft.edit.isChecked && text === null ? (
                <span className={classes.missing}>Complete the marked conditions, or remove them.</span>
              ) : (
                ""
              )
            ) : isTooLong ? (
              <span className={classes.missing}>{TOO_LONG}</span>
            ) : isCurrent && counted.data !== undefined ? (
              quantity(counted.data, "record matches", "records match")
            ) : refusal === null ? (
              "Counting"
            ) : (
              ""
            )}
          </span>
          <JsonToggle draft={draft} />
          <Button type="submit" disabled={isRefused || isTooLong || (text !== null && !isWhole)}>
            Apply
          </Button>
        </div>
      </form>
    </Modal>
  );
}
