/**
 * The command palette. It finds objects, screens, actions, and records by their id. It is our own, because `@mantine/spotlight` takes 5 KiB
 * (packed) without any command, and this whole file takes 3.5. Also, it ranks results and sends requests like the rest of the console.
 */
import { Modal, TextInput, useMantineColorScheme } from "@mantine/core";
import { IconArrowRight, IconFileText, IconFolderPlus, IconLogout, IconMoon, IconPencil, IconPlus, IconSearch, IconSun, IconTable, IconUser, type TablerIcon } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { type KnownObject, useObjects } from "../../api/objects";
import { allows, usePermissions } from "../../api/session";
import { useViewAs } from "../../api/view-as";
import { isUuid } from "../../api/uuid";
import { useSettled } from "../../components/SettledInput";
import { Bone } from "../../components/Skeleton";
import { useSignOut } from "../../components/AccountMenu";
import { findRecord } from "./find-record";
import { DESTINATIONS } from "./navigation";
import { closePalette, usePaletteOpened } from "./palette-store";
import { ranked } from "./rank";
import classes from "./Palette.module.css";

interface Command {
  id: string;
  group: "Records" | "Objects" | "Screens" | "Actions";
  label: string;
  /** Text to the right of the label that says what the command is about. */
  detail?: string;
  icon: TablerIcon;
  /** Other words that the search matches besides the label. */
  words: string;
  run: () => void;
}

const SHOWN_MAX = 60;
const OBJECTS_AT_FIRST = 6;

export default function Palette() {
  const isWanted = usePaletteOpened();
  // The palette is loaded by the first Ctrl K. A dialog that is open from the start does not know which element to give the focus back to.
  const [opened, setOpened] = useState(false);
  useEffect(() => setOpened(isWanted), [isWanted]);
  return (
    <Modal.Root opened={opened} onClose={closePalette} padding={0} size={560} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content aria-label="Search and commands" className={classes.content ?? ""}>
        <Modal.Body>
          <Search />
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

function Search() {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const listId = useId();
  const id = query.trim().toLowerCase();
  const commands = useCommands(id);
  const settledId = useSettled(id);
  const objects = useObjects().data;
  const record = useQuery({
    queryKey: ["palette", "record", settledId],
    queryFn: ({ signal }) => findRecord(settledId, objects ?? [], signal),
    enabled: isUuid(settledId) && objects !== undefined,
    staleTime: 10_000,
    // One search sends a request for each object, and runs while somebody types.
    retry: false,
  });
  const router = useRouter();
  const found: Command[] = useMemo(() => {
    const object = record.data;
    const records: Command[] =
      object === undefined || object === null || settledId !== id
        ? []
        : [
            {
              id: `record-${settledId}`,
              group: "Records",
              label: `${object} ${settledId}`,
              detail: "Open the record",
              icon: IconFileText,
              words: "",
              run: () => void router.navigate({ to: "/data/$object/$id", params: { object, id: settledId } }),
            },
          ];
    return [...records, ...ranked(commands, id, ({ label, words, detail }) => `${label} ${detail ?? ""} ${words}`).slice(0, SHOWN_MAX)];
  }, [commands, id, settledId, record.data, router]);
  const groups = useMemo(() => [...new Set(found.map(({ group }) => group))].map((group) => ({ group, members: found.filter((each) => each.group === group) })), [found]);
  const inOrder = groups.flatMap(({ members }) => members);
  const chosen = inOrder[Math.min(at, inOrder.length - 1)];

  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    closePalette();
    command.run();
  };
  const keyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? (event.ctrlKey ? { n: 1, p: -1 }[event.key] : undefined);
    if (step !== undefined) setAt((now) => (Math.min(now, inOrder.length - 1) + step + inOrder.length) % Math.max(inOrder.length, 1));
    else if (event.key === "Home" && query === "") setAt(0);
    else if (event.key === "End" && query === "") setAt(inOrder.length - 1);
    else if (event.key === "Enter") run(chosen);
    else return;
    event.preventDefault();
  };
  const searching = isUuid(id) && (settledId !== id || record.isFetching);
  return (
    <>
      <TextInput
        classNames={{ input: classes.input ?? "" }}
        size="md"
        variant="unstyled"
        leftSection={<IconSearch size={16} aria-hidden="true" />}
        placeholder="Find an object, a screen, an action, or a record by its id"
        aria-label="Search"
        role="combobox"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={chosen === undefined ? undefined : `${listId}-${chosen.id}`}
        aria-autocomplete="list"
        data-autofocus
        value={query}
        onChange={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keyDown}
        spellCheck={false}
        autoComplete="off"
      />
      <div className={classes.list} role="listbox" id={listId} aria-label="Results" ref={list} data-stays>
        {groups.map(({ group, members }) => (
          <div key={group} role="group" aria-label={group}>
            <div className={classes.group} aria-hidden="true">
              {group}
            </div>
            {members.map((command) => (
              <div
                key={command.id}
                id={`${listId}-${command.id}`}
                role="option"
                aria-selected={command === chosen}
                className={classes.option}
                onMouseMove={() => {
                  const index = inOrder.indexOf(command);
                  if (index !== at) setAt(index);
                }}
                onClick={() => run(command)}
              >
                <command.icon size={16} stroke={1.75} aria-hidden="true" />
                <bdi className="ellipsis">{command.label}</bdi>
                {command.detail !== undefined && <span className={classes.detail}>{command.detail}</span>}
                {command === chosen && <IconArrowRight size={14} aria-hidden="true" className={classes.arrow} />}
              </div>
            ))}
          </div>
        ))}
      </div>
      {inOrder.length === 0 && (
        <div className={classes.nothing}>
          {searching ? <Bone width="40%" /> : isUuid(id) ? "No object that you may read has a record with this id." : "Nothing is named so. A whole record id finds the record."}
        </div>
      )}
      <span className="sr-only" role="status">{`${inOrder.length} results`}</span>
    </>
  );
}

function useCommands(query: string): Command[] {
  const router = useRouter();
  const permissions = usePermissions();
  const isViewing = useViewAs() !== null;
  const objects = useObjects().data;
  const signOut = useSignOut();
  const { setColorScheme } = useMantineColorScheme();
  const { mutate: leave } = signOut;
  return useMemo(() => {
    const { navigate } = router;
    const may = (resource: string, action: "create" | "read") => allows(permissions, resource, action) && (action === "read" || !isViewing);
    const screens: Command[] = DESTINATIONS.filter(({ resource }) => resource === undefined || may(resource, "read")).map(({ to, label, icon, words = "" }) => ({
      id: `screen-${label}`,
      group: "Screens",
      label,
      icon,
      words,
      run: () => void navigate({ to }),
    }));
    const actions: (Command | false)[] = [
      may("objects", "create") && action("create-object", "Create object", IconFolderPlus, "new table collection", () => void navigate({ to: "/objects/new" })),
      may("webhooks", "create") && action("create-webhook", "Create webhook", IconPlus, "new", () => void navigate({ to: "/webhooks", search: { new: true } })),
      may("blocks", "create") && action("install-block", "Install a block", IconPlus, "new upload", () => void navigate({ to: "/blocks/install" })),
      may("roles", "create") && action("create-role", "Create role", IconPlus, "new", () => void navigate({ to: "/roles", search: { new: true } })),
      may("api_keys", "create") && action("create-key", "Create API key", IconPlus, "new", () => void navigate({ to: "/keys", search: { new: true } })),
      may("tasks", "create") && action("create-task", "Create scheduled task", IconPlus, "new cron", () => void navigate({ to: "/tasks", search: { new: true } })),
      action("graphiql", "Open GraphiQL", IconArrowRight, "graphql query", () => window.open("/api/v1/graphql", "_blank", "noopener")),
      action("account", "Your account", IconUser, "password name sessions profile", () => void navigate({ to: "/account" })),
      action("theme-light", "Light theme", IconSun, "color scheme appearance", () => setColorScheme("light")),
      action("theme-dark", "Dark theme", IconMoon, "color scheme appearance", () => setColorScheme("dark")),
      action("theme-auto", "Theme as the system", IconSun, "color scheme appearance auto", () => setColorScheme("auto")),
      action("sign-out", "Sign out", IconLogout, "log out leave", () => leave()),
    ];
    // Before the person types, a few objects come first, because the data matters most.
    const shown = query === "" ? (objects ?? []).slice(0, OBJECTS_AT_FIRST) : (objects ?? []);
    return [...shown.flatMap((object) => ofObject(object, query, may, navigate)), ...screens, ...actions.filter((each) => each !== false)];
  }, [router, permissions, isViewing, objects, query, setColorScheme, leave]);
}

function action(id: string, label: string, icon: TablerIcon, words: string, run: () => void): Command {
  return { id, group: "Actions", label, icon, words, run };
}

function ofObject({ name, label = "" }: KnownObject, query: string, may: (resource: string, action: "create" | "read") => boolean, navigate: ReturnType<typeof useRouter>["navigate"]): Command[] {
  const records: Command = { id: `records-${name}`, group: "Objects", label: name, detail: "Records", icon: IconTable, words: label, run: () => void navigate({ to: "/data/$object", params: { object: name } }) };
  // Before the person types, the two other commands would only hide the rest.
  if (query === "") return [records];
  const fields: Command = { id: `fields-${name}`, group: "Objects", label: name, detail: "Fields and rules", icon: IconPencil, words: `${label} schema edit`, run: () => void navigate({ to: "/objects/$object", params: { object: name } }) };
  const create: Command = { id: `create-${name}`, group: "Actions", label: `Create ${name}`, detail: "New record", icon: IconPlus, words: `${label} new record`, run: () => void navigate({ to: "/data/$object/new", params: { object: name } }) };
  return [records, ...(may("objects", "read") ? [fields] : []), ...(may(name, "create") ? [create] : [])];
}
