/** The footer of the table. It shows the visible rows and the page, and has the buttons to change the page. */
import { ActionIcon, NativeSelect, TextInput } from "@mantine/core";
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { type VisibleRows, hasPageBehind, pageBefore } from "./page-shown";
import { NUMBER } from "../../api/numbers";
import { SIZES } from "./views/view";
import classes from "./Records.module.css";

export interface FooterProps {
  visible: VisibleRows;
  count: number;
  total: number | null | undefined;
  size: number;
  page: number;
  onPage: (page: number) => void;
  /** Left out if the size of the pages is fixed. */
  onSize?: (size: number) => void;
}

export function Footer({ visible, count, total, size, page, onPage, onSize }: FooterProps) {
  const pages = Math.max(1, Math.ceil(count / size));
  const [typed, setTyped] = useState(String(page));
  useEffect(() => setTyped(String(page)), [page]);
  const go = () => {
    const wanted = Number(typed.replaceAll(",", "").trim());
    if (Number.isInteger(wanted) && wanted >= 1) onPage(Math.min(wanted, pages));
    else setTyped(String(page));
  };
  return (
    <nav className={classes.footer} aria-label="Pages">
      <span>
        {count === 0 ? "0" : `${NUMBER.format((page - 1) * size + 1)}–${NUMBER.format(Math.min(page * size, count))}`}
        {total !== null && total !== undefined && ` of ${NUMBER.format(total)}`}
      </span>
      <span className={classes.pages}>
        <ActionIcon aria-label="Previous page" disabled={visible.first === 0} onClick={() => onPage(pageBefore(visible.first, size))}>
          <IconChevronLeft size={16} />
        </ActionIcon>
        <TextInput className={classes.pageInput} aria-label={`Page, of ${total === undefined || total === null ? "unknown" : NUMBER.format(pages)}`} inputMode="numeric" value={typed} onChange={(event) => setTyped(event.currentTarget.value)} onBlur={go} onKeyDown={(event) => event.key === "Enter" && go()} />
        <span className={classes.wideOnly}>{total === undefined || total === null ? "" : `of ${NUMBER.format(pages)}`}</span>
        <ActionIcon aria-label="Next page" disabled={!hasPageBehind(visible, page, size, count)} onClick={() => onPage(page + 1)}>
          <IconChevronRight size={16} />
        </ActionIcon>
      </span>
      {onSize !== undefined && <NativeSelect className={classes.wideOnly} w={120} aria-label="Page size" data={[...new Set([...SIZES, size])].sort((one, other) => one - other).map((each) => ({ value: String(each), label: `${each} a page` }))} value={String(size)} onChange={(event) => onSize(Number(event.currentTarget.value))} />}
    </nav>
  );
}
