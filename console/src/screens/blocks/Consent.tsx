import { IconCheck } from "@tabler/icons-react";
import { type ReactNode, useMemo } from "react";
import { StatusBadge } from "../../components/StatusBadge";
import { GrantFacts } from "../roles/conditions/GrantInWords";
import { useNames } from "../roles/conditions/useNames";
import { inWords, isLimited } from "./blocks";
import classes from "./Blocks.module.css";
import type { BlockInstances, BlockPermissions, DataPermission, InstanceReuse, NewPermissions } from "../../api/types";

interface Asked {
  permissions: BlockPermissions;
  /** The reuse of instances that takes effect. */
  instances: BlockInstances | null;
  added?: Partial<NewPermissions> | null | undefined;
}

/** What a block may do, in plain words. `isNew` marks what the previous version did not have. */
export function Consent({ permissions, instances, added }: Asked) {
  const isNew = (part: keyof BlockPermissions, value: unknown) => (added?.[part] ?? []).some((each: unknown) => JSON.stringify(each) === JSON.stringify(value));
  const { data, secrets, http } = permissions;
  return (
    <ul className={classes.consent}>
      {data.map((each) => (
        <Line key={JSON.stringify(each)} isNew={isNew("data", each)}>
          It may {inWords(each)}.
          {isLimited(each) && <Limits permission={each} />}
        </Line>
      ))}
      {secrets.map((name) => (
        <Line key={name} isNew={isNew("secrets", name)}>
          It may read the secret <code className="mono">{name}</code>, once you set it.
        </Line>
      ))}
      {http.map((host) => (
        <Line key={host} isNew={isNew("http", host)}>
          It may call <code className="mono">{host}</code>.
        </Line>
      ))}
      {data.length + secrets.length + http.length === 0 && <Line isNew={false}>It gets no data, no secrets, and calls no other machine.</Line>}
      {instances?.reuse !== undefined && <Line isNew={(added?.instances ?? []).length > 0}>{reuseInWords(instances.reuse)}</Line>}
    </ul>
  );
}

/** The reuse of instances as sentences. */
function reuseInWords({ calls, seconds, asCaller }: InstanceReuse): string {
  const next = asCaller === true ? "the next call of the same caller" : "the next, whoever makes them";
  return `State can pass from one call to ${next}. An instance serves up to ${calls} calls, and waits up to ${seconds} s for the next one.`;
}

/** The conditions and fields of a permission, as sentences. */
function Limits({ permission }: { permission: DataPermission }) {
  const grants = useMemo(() => [permission], [permission]);
  return <GrantFacts grant={permission} names={useNames(grants)} />;
}

function Line({ isNew, children }: { isNew: boolean; children: ReactNode }) {
  return (
    <li>
      <IconCheck size={14} aria-hidden="true" />
      <div dir="auto">{children}</div>
      {isNew && <StatusBadge tone="warn">new</StatusBadge>}
    </li>
  );
}
