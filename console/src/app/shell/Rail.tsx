import { TextInput } from "@mantine/core";
import { IconPlus, IconTable } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { allows, useCan, usePermissions } from "../../api/session";
import { useObjects } from "../../api/objects";
import { AccountMenu } from "../../components/AccountMenu";
import { DESTINATIONS, type Destination } from "./navigation";
import classes from "./Shell.module.css";

/** The rail has a search if there are at least this many objects. */
const FILTER_FROM = 10;
/** The rail shows at most this many objects. The search and the palette find the others. */
const SHOWN_MAX = 100;

/** The main menu: the screens, and below Objects the objects by name, because the data matters most. */
export function Rail({ folded }: { folded: boolean }) {
  const permissions = usePermissions();
  // Until the permissions are loaded, the rail shows no screen that it might have to remove again.
  const shown = DESTINATIONS.filter(({ resource }) => resource === undefined || allows(permissions, resource, "read"));
  return (
    <>
      <div className={classes.railBody}>
        {shown.map((destination) => (
          <div key={destination.to}>
            <RailLink destination={destination} folded={folded} />
            {destination.to === "/objects" && !folded && <RailObjects />}
          </div>
        ))}
      </div>
      <div className={classes.railFoot}>
        <AccountMenu folded={folded} />
      </div>
    </>
  );
}

function RailLink({ destination: { to, label, icon: Icon }, folded }: { destination: Destination; folded: boolean }) {
  return (
    <Link to={to} className={classes.item} activeOptions={{ exact: to === "/" || to === "/objects", includeSearch: false }} aria-label={folded ? label : undefined} data-tip={folded ? label : undefined}>
      <Icon size={17} stroke={1.75} aria-hidden="true" />
      {!folded && <span>{label}</span>}
    </Link>
  );
}

function RailObjects() {
  const { data: objects } = useObjects();
  const canCreate = useCan("objects", "create");
  const [filter, setFilter] = useState("");
  if (objects === undefined) return null;
  const wanted = filter.trim().toLowerCase();
  const matching = wanted === "" ? objects : objects.filter(({ name, label }) => name.toLowerCase().includes(wanted) || (label ?? "").toLowerCase().includes(wanted));
  return (
    <>
      {objects.length >= FILTER_FROM && (
        <div className={classes.filter}>
          <TextInput
            aria-label="Find an object"
            placeholder={`Find in ${objects.length} objects`}
            value={filter}
            onChange={(event) => setFilter(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") setFilter("");
            }}
          />
        </div>
      )}
      <div className={classes.objects} data-many={objects.length >= 2 * FILTER_FROM || undefined}>
        {matching.slice(0, SHOWN_MAX).map(({ name, label }) => (
          <Link key={name} to="/data/$object" params={{ object: name }} className={classes.item} activeOptions={{ includeSearch: false }} data-tip={label !== undefined && label !== name ? `${label}\n${name}` : name.length > 20 ? name : undefined}>
            <IconTable size={14} stroke={1.75} aria-hidden="true" />
            <span dir="auto">{name}</span>
          </Link>
        ))}
        {matching.length > SHOWN_MAX && <div className={classes.note}>{matching.length - SHOWN_MAX} more. Find one by its name above.</div>}
        {objects.length === 0 && canCreate && (
          <Link to="/objects/new" className={classes.item}>
            <IconPlus size={14} aria-hidden="true" />
            <span>Create object</span>
          </Link>
        )}
        {objects.length === 0 && !canCreate && <div className={classes.note}>No objects that you may read</div>}
        {objects.length > 0 && matching.length === 0 && <div className={classes.note}>No object is named so</div>}
      </div>
    </>
  );
}
