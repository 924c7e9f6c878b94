import { ActionIcon, Combobox, TextInput, useCombobox } from "@mantine/core";
import { IconArrowUpRight, IconPlus, IconX } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, Suspense, lazy, useEffect, useRef, useState } from "react";
import { messageOf } from "../api/errors";
import type { JsonObject } from "../api/json";
import { useRecordShape } from "../api/record-shape";
import { type Related, useRelated, useRelatedSearch } from "../api/related";
import { useCan, useCanRecords } from "../api/session";
import { USERS, oneOf } from "../api/users-object";
import { Id, shortId } from "./Id";
import { RelatedNote } from "./RelatedNote";
import { RecordLink } from "./RecordLink";
import { useSettled } from "./SettledInput";
import { Ticked } from "./Ticked";
import { typing } from "./typing";
import { useDescription } from "./useDescription";
import classes from "./RelationPicker.module.css";

const NewRecordDialog = lazy(() => import("../screens/record/NewRecordDialog"));

const CREATE = "create:";

export interface RelationPickerProps {
  /** The object that holds the reference. */
  object: string;
  /** The relation's name: `project` of the column `project_id`. */
  relation: string;
  /** The id of the related record. */
  value: string | null;
  onChange: (id: string | null) => void;
  /** If it is left out, the schema gives the target. */
  target?: string | undefined;
  id?: string | undefined;
  /** The accessible name, if no label element refers to the field. */
  label?: string | undefined;
  disabled?: boolean | undefined;
  error?: boolean | undefined;
  describedBy?: string | undefined;
  placeholder?: string | undefined;
  /** Whether the field may be empty. */
  clearable?: boolean | undefined;
  /** Takes the focus when it appears. Cells that are edited in place use this. */
  autoFocus?: boolean | undefined;
  /** Hides the line with the id below the field. */
  compact?: boolean | undefined;
  /**
   * Called with the typed text while it does not name a record, and with null when that text is gone. A listener has to keep the text, and
   * must not save while there is one.
   */
  onUnresolved?: ((text: string | null) => void) | undefined;
  /** The text that the listener kept. */
  unresolved?: string | undefined;
  /** Called for the keys that the list of matches does not use. */
  onKeyDown?: ((event: KeyboardEvent) => void) | undefined;
}

/** Chooses the record that a reference leads to. It searches while the person types, by the text that stands for the target's records. */
export function RelationPicker(props: RelationPickerProps) {
  const { object, relation, value, onChange, clearable = true, compact = false, disabled = false } = props;
  const shape = useRecordShape(object);
  const target = props.target ?? shape.data?.columns.find(({ reference }) => reference?.relation === relation)?.reference?.target;
  const found = useRelated(target ?? "", target === undefined ? null : value);
  const reads = useCan(target ?? "", "read");
  return (
    <div>
      <RelatedSearch
        {...props}
        target={target}
        shown={value === null ? "" : (found?.label ?? (reads ? value : shortId(value)))}
        onChoose={({ id }) => onChange(id)}
        onClear={clearable && value !== null && !disabled ? () => onChange(null) : undefined}
      />
      {!compact && value !== null && (
        <div className={classes.below}>
          <Id id={value} />
          {found?.note !== undefined && <bdi>{found.note}</bdi>}
          {target !== undefined && found !== null && (
            <RecordLink object={target} id={value} className={classes.open}>
              Open <IconArrowUpRight size={12} aria-hidden="true" />
            </RecordLink>
          )}
          {found === null && <span>gone, or not for you to see</span>}
        </div>
      )}
    </div>
  );
}

export interface RelatedSearchProps extends Pick<RelationPickerProps, "id" | "label" | "disabled" | "error" | "describedBy" | "placeholder" | "autoFocus" | "onUnresolved" | "unresolved" | "onKeyDown"> {
  target: string | undefined;
  /** The text in the field while nobody types. */
  shown: string;
  onChoose: (chosen: Related) => void;
  onClear?: (() => void) | undefined;
  /** Records that the list leaves out. */
  without?: ReadonlySet<string> | undefined;
  /** Only finds existing records, and offers no "create". */
  findsOnly?: boolean | undefined;
  /** The tooltip of the button that clears the field. */
  clearTip?: string | undefined;
}

/** A field that finds records of an object, and can create one in place. */
export function RelatedSearch({ target, shown, onChoose, onClear, without, findsOnly = false, clearTip = "Set to null", id, label, disabled, error, describedBy, placeholder, autoFocus, onUnresolved, unresolved, onKeyDown }: RelatedSearchProps) {
  const [typed, setTyped] = useState<string | null>(unresolved ?? null);
  const input = useRef<HTMLInputElement>(null);
  useDescription(input, describedBy);
  const [creating, setCreating] = useState<string | null>(null);
  const term = useSettled(typed ?? "");
  const cache = useQueryClient();
  /** Enter was pressed before the server answered. When the matches arrive, the first one is chosen. */
  const [isWaiting, setWaiting] = useState(false);
  const box = useCombobox({
    onDropdownClose: () => {
      box.resetSelectedOption();
      setWaiting(false);
      // If no listener keeps the text, it disappears with the list.
      if (onUnresolved === undefined || typed === "") setTyped(null);
    },
  });
  const { dropdownOpened, selectFirstOption, resetSelectedOption } = box;
  const mayRead = useCan(target ?? "", "read");
  const search = useRelatedSearch(target ?? "", term, target !== undefined && mayRead && box.dropdownOpened);
  const mayCreate = useCanRecords(target ?? "", "create") && target !== undefined && !findsOnly;
  const found = search.data?.filter((each) => without?.has(each.id) !== true) ?? [];
  const shape = useRecordShape(target ?? "").data;
  const targetLabel = target === USERS ? oneOf(USERS) : (shape?.label ?? target ?? "");
  const choose = (chosen: Related) => {
    setTyped(null);
    setWaiting(false);
    if (target !== undefined && chosen.label !== undefined) cache.setQueryData(["data", target, "related", chosen.id], chosen);
    onChoose(chosen);
    box.closeDropdown();
  };
  const type = (text: string | null) => {
    setTyped(text);
    onUnresolved?.(text === null || text.trim() === "" ? null : text);
  };
  const wanted = typed ?? "";
  const isSettled = wanted.trim() !== "" && wanted === term && search.isSuccess && !search.isFetching;
  const first = isSettled ? found[0] : undefined;
  const firstId = first?.id;
  const taken = useRef(choose);
  useEffect(() => {
    taken.current = choose;
  });
  // Marks the first match, so that Enter chooses it.
  useEffect(() => {
    if (firstId === undefined || !dropdownOpened) return resetSelectedOption();
    const timer = setTimeout(selectFirstOption);
    return () => clearTimeout(timer);
  }, [firstId, wanted, dropdownOpened, selectFirstOption, resetSelectedOption]);
  useEffect(() => {
    if (!isWaiting || !isSettled) return;
    setWaiting(false);
    if (first !== undefined) taken.current(first);
  }, [isWaiting, isSettled, first]);
  // The text was discarded elsewhere, for example with "Discard".
  useEffect(() => {
    if (unresolved === undefined && onUnresolved !== undefined) setTyped((now) => (now === "" ? now : null));
    // oxlint-disable-next-line react/exhaustive-deps
  }, [unresolved]);
  return (
    <>
      <Combobox
        store={box}
        onOptionSubmit={(option) => {
          if (option === CREATE) {
            setCreating(typed ?? "");
            box.closeDropdown();
            return;
          }
          choose(found.find((each) => each.id === option) ?? { id: option });
        }}
        transitionProps={{ duration: 0 }}
      >
        <Combobox.Target withExpandedAttribute>
          <TextInput
            ref={input}
            id={id}
            aria-label={label}
            error={error}
            disabled={disabled || target === undefined}
            autoFocus={autoFocus}
            dir="auto"
            placeholder={placeholder ?? `Search ${target === USERS ? USERS : targetLabel}`}
            {...typing(box, typed, shown, type)}
            onBlur={() => box.closeDropdown()}
            onKeyDown={(event) => {
              // If the list is open, Escape closes only the list and nothing around it.
              if (event.key === "Escape" && (box.dropdownOpened || typed !== null)) {
                event.stopPropagation();
                type(null);
              }
              if (event.key === "Enter" && wanted.trim() !== "") {
                event.preventDefault();
                event.stopPropagation();
                if (!isSettled || !box.dropdownOpened) setWaiting(true);
                box.openDropdown();
              }
              if (!event.isPropagationStopped() && !(event.key === "Enter" && box.dropdownOpened)) onKeyDown?.(event);
            }}
            rightSection={
              onClear === undefined ? (
                <Combobox.Chevron />
              ) : (
                <ActionIcon data-tip={clearTip} size={20} aria-label={`Clear ${label ?? targetLabel}`} onMouseDown={(event) => event.preventDefault()} onClick={onClear}>
                  <IconX size={13} />
                </ActionIcon>
              )
            }
            rightSectionPointerEvents={onClear === undefined ? "none" : "all"}
          />
        </Combobox.Target>
        <Combobox.Dropdown>
          <Combobox.Options mah={260} style={{ overflowY: "auto" }} aria-label={`${targetLabel} found`}>
            {found.map((each) => (
              <Combobox.Option key={each.id} value={each.id}>
                <span className={classes.option}>
                  <bdi className={classes.optionText}>{each.label ?? <span className={classes.optionId}>without a name</span>}</bdi>
                  <RelatedNote of={each} />
                  <span className={classes.optionId}>{shortId(each.id)}</span>
                </span>
              </Combobox.Option>
            ))}
            {target !== undefined && !mayRead && (
              <div className={classes.note}>
                <Ticked text={`You need \`read\` on \`${target}\` to choose here. Somebody who may update roles can give it to you.`} />
              </div>
            )}
            {search.isError && <div className={classes.error}>{messageOf(search.error)}</div>}
            {search.isSuccess && found.length === 0 && (
              <Combobox.Empty>{(typed ?? "") === "" ? `There is no ${targetLabel} to choose.` : `No ${targetLabel} matches.`}</Combobox.Empty>
            )}
            {search.isLoading && <div className={classes.note}>Searching</div>}
            {mayCreate && (
              <Combobox.Option value={CREATE}>
                <span className={classes.option}>
                  <IconPlus size={13} aria-hidden="true" />
                  <bdi className={classes.optionText}>{(typed ?? "").trim() === "" ? `Create ${targetLabel}` : `Create ${targetLabel} “${typed!.trim()}”`}</bdi>
                </span>
              </Combobox.Option>
            )}
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
      {creating !== null && target !== undefined && (
        <Suspense fallback={null}>
          <NewRecordDialog
            object={target}
            text={creating}
            onClose={() => {
              setCreating(null);
              setTimeout(() => input.current?.focus());
            }}
            onCreated={(record: JsonObject, text) => {
              setCreating(null);
              choose({ id: String(record.id), label: text });
            }}
          />
        </Suspense>
      )}
    </>
  );
}
