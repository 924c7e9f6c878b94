import { Link } from "@tanstack/react-router";
import type { HTMLAttributes, ReactNode } from "react";
import { useCan } from "../api/session";
import { USERS } from "../api/users-object";

export interface RecordLinkProps extends HTMLAttributes<HTMLAnchorElement> {
  object: string;
  id: string;
  children: ReactNode;
}

/** A link to the page of a record. For a user, it leads to the account if the person may read all accounts. */
export function RecordLink({ object, id, children, ...rest }: RecordLinkProps) {
  const readsAccounts = useCan(USERS, "read", "all");
  if (object === USERS && readsAccounts)
    return (
      <Link to="/users" search={{ open: id }} {...rest}>
        {children}
      </Link>
    );
  return (
    <Link to="/data/$object/$id" params={{ object, id }} search={{}} {...rest}>
      {children}
    </Link>
  );
}
