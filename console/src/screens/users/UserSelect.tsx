import { Select, type SelectProps } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSettled } from "../../components/SettledInput";
import { userQuery, usersQuery } from "./users";

type UserSelectProps = Omit<SelectProps, "data" | "searchable" | "searchValue" | "onSearchChange"> & {
  value: string | null;
  /** The id of a user who is left out. */
  without?: string;
};

/** Chooses a user by name or email address. Guests and banned users are left out. */
export function UserSelect({ value, without, ...rest }: UserSelectProps) {
  const [typed, setTyped] = useState("");
  const search = useSettled(typed.trim());
  const found = useQuery({ ...usersQuery({ search: search || undefined, page: 1 }), placeholderData: keepPreviousData });
  const chosen = useQuery({ ...userQuery(value ?? ""), enabled: value !== null });
  const users = found.data?.data.filter(({ id, isAnonymous, banned }) => id !== without && !isAnonymous && !banned) ?? [];
  // The chosen user stays in the list during a search for others, so that their name is shown.
  const all = chosen.data === undefined || users.some(({ id }) => id === chosen.data.id) ? users : [...users, chosen.data];
  return (
    <Select
      {...rest}
      searchable
      value={value}
      onSearchChange={setTyped}
      data={all.map(({ id, name, email }) => ({ value: id, label: [name, email].filter(Boolean).join(" · ") || id }))}
      // The server has already searched, so the select must not filter its results by their label.
      filter={({ options }) => options}
    />
  );
}
