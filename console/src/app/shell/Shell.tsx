/** The frame of the console: rail, screen, status bar. It appears with the first paint. */
import { ActionIcon } from "@mantine/core";
import { useLocalStorage, useMediaQuery } from "@mantine/hooks";
import { IconLayoutSidebarLeftCollapse, IconLayoutSidebarLeftExpand, IconMenu2, IconSearch } from "@tabler/icons-react";
import { Link, useLocation } from "@tanstack/react-router";
import { type ReactNode, Suspense, lazy, useEffect, useRef, useState } from "react";
import { SkeletonRows } from "../../components/Skeleton";
import { useEver } from "../../components/later";
import { useHotkeys } from "../../components/useHotkeys";
import { allows, usePermissions } from "../../api/session";
import { useObjects } from "../../api/objects";
import { Mark } from "./Mark";
import { NothingGranted } from "./NothingGranted";
import { DESTINATIONS } from "./navigation";
import { Rail } from "./Rail";
import { StatusBar } from "./StatusBar";
import { ViewAsBar } from "./ViewAsBar";
import { openPalette, usePaletteOpened } from "./palette-store";
import { useLiveSchema } from "./useLiveSchema";
import classes from "./Shell.module.css";

const MenuDrawer = lazy(() => import("./MenuDrawer"));
const Palette = lazy(() => import("./Palette"));

/** The empty frame, before the server has said who is signed in. */
export function Frame({ children }: { children?: ReactNode }) {
  return (
    <div className={classes.frame}>
      <div className={classes.topbar} />
      <div className={classes.rail}>
        <div className={classes.railHead}>
          <Mark />
        </div>
      </div>
      <main className={classes.main}>
        <h1 className="sr-only">Blockbase</h1>
        {children}
      </main>
      <div className={classes.status} />
    </div>
  );
}

export function Shell({ children }: { children: ReactNode }) {
  const [folded, setFolded] = useLocalStorage({ key: "blockbase.rail", defaultValue: false, getInitialValueInEffect: false });
  const [drawer, setDrawer] = useState(false);
  const isNarrow = useMediaQuery("(max-width: 48em)", undefined, { getInitialValueInEffect: false }) ?? false;
  const paletteWanted = useEver(usePaletteOpened());
  const { pathname } = useLocation();
  const main = useRef<HTMLElement>(null);
  const mayNothing = useMayNothing();
  useLiveSchema();
  useHotkeys({ "mod+k": openPalette });
  useEffect(() => setDrawer(false), [pathname]);
  // After a change of the screen, the focus moves to the new screen, unless the screen has already taken it.
  const before = useRef(pathname);
  useEffect(() => {
    if (before.current === pathname) return;
    before.current = pathname;
    const { activeElement } = document;
    if (activeElement === null || activeElement === document.body || activeElement.closest("[data-rail]") !== null) main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return (
    <div className={classes.frame} data-folded={(folded && !isNarrow) || undefined}>
      <a className={classes.skip} href="#content">
        Skip to the content
      </a>
      {isNarrow ? (
        <>
          <nav className={classes.topbar} aria-label="Top">
            <ActionIcon aria-label="Open the menu" onClick={() => setDrawer(true)}>
              <IconMenu2 size={18} />
            </ActionIcon>
            <span>
              <Mark /> Blockbase
            </span>
            <ActionIcon aria-label="Search" onClick={openPalette}>
              <IconSearch size={18} />
            </ActionIcon>
          </nav>
          {drawer && (
            <Suspense fallback={null}>
              <MenuDrawer onClose={() => setDrawer(false)} />
            </Suspense>
          )}
        </>
      ) : (
        <nav className={classes.rail} aria-label="Main" data-rail>
          <div className={classes.railHead}>
            {!folded && (
              <Link to="/">
                <Mark /> Blockbase
              </Link>
            )}
            <ActionIcon aria-label={folded ? "Unfold the menu" : "Fold the menu"} aria-expanded={!folded} onClick={() => setFolded(!folded)}>
              {folded ? <IconLayoutSidebarLeftExpand size={18} /> : <IconLayoutSidebarLeftCollapse size={18} />}
            </ActionIcon>
          </div>
          <Rail folded={folded} />
        </nav>
      )}
      <main className={classes.main} id="content" ref={main} tabIndex={-1}>
        <ViewAsBar />
        <Suspense fallback={<SkeletonRows />}>{pathname === "/" && mayNothing ? <NothingGranted /> : children}</Suspense>
      </main>
      <StatusBar />
      {paletteWanted && (
        <Suspense fallback={null}>
          <Palette />
        </Suspense>
      )}
    </div>
  );
}

/** Whether this person may open no screen and no object. */
function useMayNothing(): boolean {
  const permissions = usePermissions();
  const objects = useObjects().data;
  if (permissions === undefined || objects === undefined) return false;
  const resources = ["objects", ...DESTINATIONS.flatMap(({ resource }) => resource ?? [])];
  return objects.length === 0 && !resources.some((resource) => allows(permissions, resource, "read"));
}
