import { Switch } from "@mantine/core";
import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { failed } from "./toast";

export interface EnabledSwitchProps<Item> {
  /** The query key of the list that shows the item. `isSame` finds the item in it. */
  listKey: QueryKey;
  item: Item;
  isSame: (other: Item) => boolean;
  name: string;
  save: (enabled: boolean) => Promise<unknown>;
  disabled: boolean;
  label?: string;
}

/** A switch that applies the change at once, and reverts it if the server refuses. */
export function EnabledSwitch<Item extends { enabled: boolean }>({ listKey, item, isSame, name, save, disabled, label }: EnabledSwitchProps<Item>) {
  const cache = useQueryClient();
  const change = async (enabled: boolean) => {
    const set = (value: boolean) => cache.setQueryData<Item[]>(listKey, (before) => before?.map((each) => (isSame(each) ? { ...each, enabled: value } : each)));
    set(enabled);
    try {
      await save(enabled);
    } catch (error) {
      set(!enabled);
      failed(`${name} was not ${enabled ? "enabled" : "disabled"}`, error);
    }
    void cache.invalidateQueries({ queryKey: listKey, exact: true });
  };
  return (
    <Switch
      label={label}
      checked={item.enabled}
      disabled={disabled}
      aria-label={label === undefined ? `${name} is enabled` : undefined}
      onClick={(event) => event.stopPropagation()}
      onChange={({ currentTarget: { checked } }) => void change(checked)}
    />
  );
}
