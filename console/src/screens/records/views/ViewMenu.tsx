/** The menu of saved views: choose, save, rename, delete, and set the default. */
import { ActionIcon, Button, Group } from "@mantine/core";
import { IconBookmark, IconCheck, IconChevronDown, IconDots, IconPencil, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { Menu } from "../../../components/floating";
import { later, useEver } from "../../../components/later";
import { undoable } from "../../../components/toast";
import type { Naming } from "./NameDialog";
import { PLAIN, type SavedView, type SavedViews } from "./view";
import classes from "./Views.module.css";

export interface ViewMenuProps {
  saved: SavedViews;
  /** The view that the screen shows now. */
  view: SavedView;
  base: SavedView | null;
  isChanged: boolean;
  onChoose: (name: string) => void;
  onReset: () => void;
  onKeep: (views: SavedViews) => void;
}

const NameDialog = later(() => import("./NameDialog").then((loaded) => loaded.NameDialog));

export function ViewMenu({ saved, view, base, isChanged, onChoose, onReset, onKeep }: ViewMenuProps) {
  const [naming, setNaming] = useState<Naming | null>(null);
  const wasNaming = useEver(naming !== null);
  const title = base?.name ?? "All records";
  const put = (next: SavedView, name: string) => ({ ...saved, views: saved.views.map((each) => (each.name === name ? next : each)), preset: saved.preset === name ? next.name : saved.preset });
  const remove = (gone: SavedView) => {
    const wasShown = base?.name === gone.name;
    onKeep({ ...saved, views: saved.views.filter((each) => each !== gone), preset: saved.preset === gone.name ? null : saved.preset });
    if (wasShown) onChoose(PLAIN);
    undoable({
      message: `View ${gone.name} deleted.`,
      onUndo: () => {
        onKeep(saved);
        if (wasShown) onChoose(gone.name);
      },
      commit: () => {},
    });
  };
  return (
    <Group gap={4} wrap="nowrap">
      <Menu position="bottom-start" width={280}>
        <Menu.Target>
          <Button variant="default" leftSection={<IconBookmark size={14} />} rightSection={<IconChevronDown size={13} />} aria-label={`View: ${title}${isChanged ? ", changed" : ""}`} classNames={{ label: classes.label! }}>
            <bdi>{title}</bdi>
            {isChanged && <span className={classes.dot} aria-hidden="true" />}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={base === null ? <IconCheck size={14} /> : <span className={classes.space} />} onClick={() => onChoose(PLAIN)}>
            All records
          </Menu.Item>
          {saved.views.map((each) => (
            <Menu.Item key={each.name} leftSection={base?.name === each.name ? <IconCheck size={14} /> : <span className={classes.space} />} rightSection={saved.preset === each.name ? <span className="dim">default</span> : undefined} onClick={() => onChoose(each.name)}>
              <bdi className={classes.name}>{each.name}</bdi>
            </Menu.Item>
          ))}
          <Menu.Divider />
          {base !== null && isChanged && <Menu.Item onClick={() => onKeep(put({ ...view, name: base.name }, base.name))}>Save changes to {base.name}</Menu.Item>}
          {isChanged && <Menu.Item onClick={onReset}>Discard changes</Menu.Item>}
          <Menu.Item onClick={() => setNaming({ kind: "save" })}>Save as a new view</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {base !== null && (
        <Menu position="bottom-start" width={220}>
          <Menu.Target>
            <ActionIcon aria-label={`Actions of the view ${base.name}`}>
              <IconDots size={16} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item leftSection={<IconPencil size={14} />} onClick={() => setNaming({ kind: "rename", view: base })}>
              Rename
            </Menu.Item>
            {saved.preset === base.name ? (
              <Menu.Item onClick={() => onKeep({ ...saved, preset: null })}>Do not open with this view</Menu.Item>
            ) : (
              <Menu.Item onClick={() => onKeep({ ...saved, preset: base.name })}>Open with this view</Menu.Item>
            )}
            <Menu.Item color="red" leftSection={<IconTrash size={14} />} onClick={() => remove(base)}>
              Delete view
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      )}
      {wasNaming && (
        <NameDialog
          naming={naming}
          taken={saved.views.map(({ name }) => name)}
          onClose={() => setNaming(null)}
          onName={(name, preset) => {
            if (naming?.kind === "rename") {
              onKeep(put({ ...naming.view, name }, naming.view.name));
            } else {
              onKeep({ ...saved, views: [...saved.views, { ...view, name }], preset: preset ? name : saved.preset });
            }
            onChoose(name);
            setNaming(null);
          }}
        />
      )}
    </Group>
  );
}
