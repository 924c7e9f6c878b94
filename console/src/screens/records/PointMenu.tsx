/** A menu at a point of the page, for a cell or the head of a column. When it closes, the focus returns to where it was. */
import type { ReactNode } from "react";
import { Menu } from "../../components/floating";

export function PointMenu({ at, label, onClose, children }: { at: { x: number; y: number } | null; label: string; onClose: () => void; children: ReactNode }) {
  if (at === null) return null;
  return (
    <Menu opened onChange={(opened) => !opened && onClose()} position="bottom-start" offset={2} width={230} trapFocus>
      <Menu.Target>
        <div style={{ position: "fixed", left: at.x, top: at.y, width: 1, height: 1, pointerEvents: "none" }} />
      </Menu.Target>
      <Menu.Dropdown aria-label={label}>{children}</Menu.Dropdown>
    </Menu>
  );
}
