import { Select, type SelectProps } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { userQuery, usersQuery } from "./users";

const TYPING_MS = 150;

/** Chooses a user by name or address. Guests and those who are banned are not offered. */
export function UserSelect({ value, ...rest }: Omit<SelectProps, "data" | "searchable" | "searchValue" | "onSearchChange"> & { value: string | null }) {
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed.trim(), TYPING_MS);
  const found = useQuery({ ...usersQuery({ search: search || undefined, page: 1 }), placeholderData: keepPreviousData });
  const chosen = useQuery({ ...userQuery(value ?? ""), enabled: value !== null });
  const users = found.data?.data.filter(({ isAnonymous, banned }) => !isAnonymous && !banned) ?? [];
  // The one who is chosen keeps their name while others are searched for.
  const all = chosen.data === undefined || users.some(({ id }) => id === chosen.data.id) ? users : [...users, chosen.data];
  return (
    <Select
      {...rest}
      searchable
      value={value}
      onSearchChange={setTyped}
      data={all.map(({ id, name, email }) => ({ value: id, label: [name, email].filter(Boolean).join(" · ") }))}
      // The server has searched: what it found stays, whatever the label holds.
      filter={({ options }) => options}
    />
  );
}
