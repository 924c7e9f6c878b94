import { Drawer } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Mark } from "./Mark";
import { Rail } from "./Rail";
import classes from "./Shell.module.css";

/** The rail on narrow screens. */
export default function MenuDrawer({ onClose }: { onClose: () => void }) {
  return (
    <Drawer.Root opened onClose={onClose} size={280} padding={0}>
      <Drawer.Overlay />
      <Drawer.Content aria-label="Menu">
      <nav className={classes.drawerBody} aria-label="Main" data-rail>
        <div className={classes.railHead}>
          <Link to="/">
            <Mark /> Blockbase
          </Link>
        </div>
        <Rail folded={false} />
      </nav>
      </Drawer.Content>
    </Drawer.Root>
  );
}
