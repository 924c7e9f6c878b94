import { ActionIcon, Button, Popover, TextInput } from "@mantine/core";
import { useState } from "react";
import { messageOf } from "../../../api/errors";
import { readNumber } from "../../../api/json";
import type { Column } from "../../../api/record-shape";
import classes from "./fields.module.css";

/** Adds to a number in one step on the server, so that changes of several people at the same time add up. */
export function Increment({ column, isNull, onIncrement }: { column: Column; isNull: boolean; onIncrement: (amount: string) => Promise<void> }) {
  const [opened, setOpened] = useState(false);
  const [amount, setAmount] = useState("1");
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const number = readNumber(amount);
  const send = async (sign: 1 | -1) => {
    if (number === null) return setError("Enter a number.");
    const text = String(number);
    setBusy(true);
    setError(undefined);
    try {
      await onIncrement(sign === 1 ? text : text.startsWith("-") ? text.slice(1) : `-${text}`);
      setOpened(false);
    } catch (caught) {
      setError(messageOf(caught));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" trapFocus returnFocus withinPortal shadow="md">
      <Popover.Target>
        <ActionIcon data-tip={isNull ? "null cannot be added to: enter a number first" : "Add or subtract on the server"} aria-label={`Add to ${column.name}`} disabled={isNull} className={classes.plusMinus} onClick={() => setOpened(!opened)}>
          <span className={classes.sign} aria-hidden="true">
            ±
          </span>
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          className={classes.increment}
          aria-label={`Add to ${column.name}`}
          onSubmit={(event) => {
            event.preventDefault();
            event.stopPropagation();
            void send(1);
          }}
        >
          <TextInput
            label={`Change ${column.name} by`}
            description="Saved at once. The server adds, so that changes made at the same time all count."
            inputMode="decimal"
            value={amount}
            onChange={(event) => {
              setAmount(event.currentTarget.value);
              setError(undefined);
            }}
            error={error}
            data-autofocus
            autoComplete="off"
          />
          <div className={classes.incrementButtons}>
            <Button variant="default" disabled={isBusy} onClick={() => void send(-1)}>
              − Subtract
            </Button>
            <Button type="submit" disabled={isBusy}>
              + Add
            </Button>
          </div>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
