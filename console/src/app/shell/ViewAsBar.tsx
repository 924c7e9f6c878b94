import { Button } from "@mantine/core";
import { IconEye } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { forgetAll } from "../../api/session";
import { useViewAs, viewAs } from "../../api/view-as";
import classes from "./Shell.module.css";

/** Says whose rights the page shows, with a button to leave this view. */
export function ViewAsBar() {
  const cache = useQueryClient();
  const role = useViewAs();
  // The console drops the data that it read with other rights, and loads the data on the screen again.
  useEffect(() => {
    const unwatch = viewAs.watch(() => {
      forgetAll(cache);
      void cache.refetchQueries({ type: "active" });
    });
    return () => {
      unwatch();
    };
  }, [cache]);
  if (role === null) return null;
  return (
    <div className={classes.viewAs} role="status">
      <IconEye size={16} aria-hidden="true" />
      <span>
        You see what the role <bdi className="mono">{role.name}</bdi> may see, cut to your own rights. Nothing can be changed.
      </span>
      <Button variant="default" size="compact-xs" onClick={viewAs.end}>
        Leave view
      </Button>
    </div>
  );
}
