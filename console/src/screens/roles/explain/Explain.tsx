/** Explains why a user with the role can see or change a record: the grants that decide, and the resulting condition. */
import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useId, useMemo } from "react";
import type { JsonObject } from "../../../api/json";
import { useObjects } from "../../../api/objects";
import { useRelated } from "../../../api/related";
import type { Action, ExplainBody, ExplainedGrant, Explanation, Grant } from "../../../api/types";
import { USERS } from "../../../api/users-object";
import { ErrorNotice } from "../../../components/ErrorState";
import { JsonView } from "../../../components/JsonView";
import { RelatedSearch } from "../../../components/RelationPicker";
import { SkeletonRows } from "../../../components/Skeleton";
import { StatusBadge } from "../../../components/StatusBadge";
import { UserSelect } from "../../users/UserSelect";
import { userQuery } from "../../users/users";
import { GrantInWords, Said } from "../conditions/GrantInWords";
import { type Names, useNames } from "../conditions/useNames";
import conditions from "../conditions/Conditions.module.css";
import { EXPLAINED, type ExplainChoice, explainBody, explainQuery, reasonWithoutParts } from "./explain";
import classes from "./Explain.module.css";

export interface ExplainProps {
  role: string;
  choice: ExplainChoice;
  onChoose: (choice: ExplainChoice) => void;
  /** Whether the role has unsaved changes. */
  isChanged: boolean;
  readsUsers: boolean;
}

export function Explain({ role, choice, onChoose, isChanged, readsUsers }: ExplainProps) {
  const { user, object, action = "read", record } = choice;
  const objects = useObjects();
  if (objects.data === undefined) return objects.error === null ? <SkeletonRows rows={6} columns={2} /> : <ErrorNotice error={objects.error} title="The objects could not be loaded" onRetry={objects.refetch} />;
  const names = [...new Set([...objects.data.map(({ name }) => name), USERS, ...(object === undefined ? [] : [object])])].sort();
  const body = explainBody(choice);
  return (
    <>
      <p className="dim">What this role and the role public allow on the records of an object, with the values of a user. Other roles of the user are not part of the answer.</p>
      {isChanged && <p className="dim">The answer is about the role as it is saved. Your changes are not in it.</p>}
      <div className={classes.choice}>
        {readsUsers && <UserSelect label="User" placeholder="Nobody in particular" clearable clearButtonProps={{ "aria-label": "Nobody in particular" }} value={user ?? null} onChange={(id) => onChoose({ ...choice, user: id ?? undefined })} />}
        <Select
          label="Object"
          placeholder="Choose an object"
          searchable
          allowDeselect={false}
          nothingFoundMessage="No such object"
          data={names}
          value={object ?? null}
          // The id belongs to the previous object, so it is cleared.
          onChange={(name) => onChoose({ ...choice, object: name ?? undefined, record: undefined })}
        />
        <Select label="Action" allowDeselect={false} data={EXPLAINED} value={action} onChange={(name) => onChoose({ ...choice, action: name === "read" || name === null ? undefined : name })} />
        {object !== undefined && <RecordChoice key={object} object={object} record={record} onChoose={(id) => onChoose({ ...choice, record: id })} />}
      </div>
      {body === undefined ? <p className="dim">Choose an object to see which grants decide about its records.</p> : <Answer role={role} body={body} readsUsers={readsUsers} />}
    </>
  );
}

function RecordChoice({ object, record, onChoose }: { object: string; record: string | undefined; onChoose: (id: string | undefined) => void }) {
  const id = useId();
  const found = useRelated(object, record ?? null);
  return (
    <div>
      <label className={classes.label} htmlFor={id}>
        Record
      </label>
      <RelatedSearch
        id={id}
        target={object}
        findsOnly
        placeholder="Any: search, or paste an id"
        shown={record === undefined ? "" : (found?.label ?? record)}
        onChoose={(chosen) => onChoose(chosen.id)}
        onClear={record === undefined ? undefined : () => onChoose(undefined)}
        clearTip="No record"
      />
    </div>
  );
}

function Answer({ role, body, readsUsers }: { role: string; body: ExplainBody; readsUsers: boolean }) {
  const { data, error, refetch } = useQuery(explainQuery(role, body));
  const user = useQuery({ ...userQuery(body.userId ?? ""), enabled: body.userId !== undefined && readsUsers }).data;
  return (
    <>
      <p role="status">
        {data === undefined ? null : data.passes === null ? (
          <span className="dim">No record is chosen. Choose one to see whether it passes.</span>
        ) : data.passes ? (
          <StatusBadge tone="ok">This record passes</StatusBadge>
        ) : (
          <StatusBadge tone="bad">This record does not pass</StatusBadge>
        )}
      </p>
      {data !== undefined ? <Reasons body={body} explanation={data} userName={user?.name || user?.email || undefined} /> : error === null ? <SkeletonRows rows={6} columns={2} /> : <ErrorNotice error={error} onRetry={() => void refetch()} />}
    </>
  );
}

function Reasons({ body: { object, action, userId }, explanation: { grants, condition }, userName }: { body: ExplainBody; explanation: Explanation; userName: string | undefined }) {
  // The names in the other conditions are found in the same way as those in the grants.
  const clauses = useMemo<Grant[]>(
    () => [...grants, ...[condition, ...grants.flatMap(({ failing }) => failing)].map((where): Grant => ({ resource: object, actions: [action], where }))],
    [grants, object, action, condition],
  );
  const names = useNames(clauses);
  // The condition has the user's id. Their name is easier to read.
  const filled: Names = { ...names, titleOf: (column, id) => (id === userId ? userName : undefined) ?? names.titleOf(column, id) };
  if (grants.length === 0) return <p>No grant of this role or of public allows this.</p>;
  return (
    <>
      <section className={conditions.section} aria-labelledby="explain-grants">
        <div className={conditions.head}>
          <h2 id="explain-grants">Grants that allow this</h2>
        </div>
        <ul className={conditions.list} aria-labelledby="explain-grants">
          {grants.map((grant, index) => (
            // Two grants may be equal, so the index is the key.
            <li key={index}>
              <GrantInWords grant={grant} names={names} />
              <Verdict grant={grant} object={object} action={action} names={filled} />
            </li>
          ))}
        </ul>
      </section>
      <section className={conditions.section} aria-labelledby="explain-condition">
        <div className={conditions.head}>
          <h2 id="explain-condition">What they come to</h2>
        </div>
        <p>
          {userId === undefined ? "This role may" : <>With this role, <bdi>{userName ?? userId}</bdi> may</>} {action} {action === "create" ? "records" : "these records"} of <bdi className="mono">{object}</bdi>
          {action === "create" && " that meet this"}:
        </p>
        <p className={conditions.said} data-sentence>
          {isNever(condition) ? "no records" : <Said clause={condition} resource={object} own={[]} names={filled} isBroken={false} nothing={action === "create" ? "any record" : "all records"} />}
        </p>
        {isNever(condition) && grants.some(({ broken }) => broken !== true) && <p className="dim">{userId === undefined ? "A grant gives nothing if its condition names a value of the caller and no user is chosen." : "A grant gives nothing if its condition names a value that the user does not have."}</p>}
        <details className={classes.json}>
          <summary>Condition as JSON</summary>
          <JsonView value={condition} label="Condition" open={6} />
        </details>
      </section>
    </>
  );
}

/** Whether the record passes a grant, and what it does not meet. Nothing if no record is chosen. */
function Verdict({ grant, object, action, names }: { grant: ExplainedGrant; object: string; action: Action; names: Names }) {
  const { passes, failing } = grant;
  if (passes === null) return null;
  const [yes, no] = action === "create" ? ["This grant allows a record like this", "This grant does not allow a record like this"] : ["This grant reaches the record", "This grant does not reach the record"];
  return (
    <p className={classes.verdict} data-verdict>
      <StatusBadge tone={passes ? "ok" : "bad"} plain>
        {passes ? yes : no}
      </StatusBadge>
      {!passes && failing.length === 0 && reasonWithoutParts(grant, action)}
      {failing.map((clause, index) => (
        // The parts have no names, and their order stays.
        <Fragment key={index}>
          {index === 0 ? ". Not met: " : "; "}
          <Said clause={clause} resource={object} own={[]} names={names} isBroken={false} nothing="" />
        </Fragment>
      ))}
    </p>
  );
}

/** Whether no record can meet the condition. */
function isNever(condition: JsonObject): boolean {
  const [only, ...more] = Object.entries(condition);
  return only !== undefined && more.length === 0 && only[0] === "_or" && Array.isArray(only[1]) && only[1].length === 0;
}
