/** The footer of the table. It shows the visible rows and the page, and has the buttons to change the page. */
import { ActionIcon, NativeSelect, TextInput } from "@mantine/core";
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { type VisibleRows, hasPageBehind, pageBefore, pageShown } from "./page-shown";
import { NUMBER } from "../../api/numbers";
import { SIZES } from "./views/view";
import classes from "./Records.module.css";

export interface FooterProps {
  visible: VisibleRows;
  /**
   * The rows that are visible at the moment of a click. `visible` follows the table a little later, so a button that relied on it would
   * start from an earlier page.
   */
  visibleNow: () => VisibleRows;
  count: number;
  total: number | null | undefined;
  size: number;
  page: number;
  onPage: (page: number) => void;
  /** Left out if the size of the pages is fixed. */
  onSize?: (size: number) => void;
}

export function Footer({ visible, visibleNow, count, total, size, page, onPage, onSize }: FooterProps) {
  const pages = Math.max(1, Math.ceil(count / size));
  const [typed, setTyped] = useState(String(page));
  // The table may scroll while the person types. What they have typed stays until it is sent.
  const isTyping = useRef(false);
  useEffect(() => {
    if (!isTyping.current) setTyped(String(page));
  }, [page]);
  const go = () => {
    isTyping.current = false;
    const wanted = Number(typed.replaceAll(",", "").trim());
    const isPage = Number.isInteger(wanted) && wanted >= 1;
    const to = isPage ? Math.min(wanted, pages) : page;
    setTyped(String(to));
    if (isPage) onPage(to);
  };
  const edit = (text: string) => {
    isTyping.current = true;
    setTyped(text);
  };
  return (
    <nav className={classes.footer} aria-label="Pages">
      <span>
        {count === 0 ? "0" : `${NUMBER.format((page - 1) * size + 1)}–${NUMBER.format(Math.min(page * size, count))}`}
        {total !== null && total !== undefined && ` of ${NUMBER.format(total)}`}
      </span>
      <span className={classes.pages}>
        <ActionIcon aria-label="Previous page" disabled={visible.first === 0} onClick={() => onPage(pageBefore(visibleNow().first, size))}>
          <IconChevronLeft size={16} />
        </ActionIcon>
        <TextInput className={classes.pageInput} aria-label={`Page, of ${total === undefined || total === null ? "unknown" : NUMBER.format(pages)}`} inputMode="numeric" value={typed} onChange={(event) => edit(event.currentTarget.value)} onBlur={() => isTyping.current && go()} onKeyDown={(event) => event.key === "Enter" && go()} />
        <span className={classes.wideOnly}>{total === undefined || total === null ? "" : `of ${NUMBER.format(pages)}`}</span>
        <ActionIcon aria-label="Next page" disabled={!hasPageBehind(visible, page, size, count)} onClick={() => onPage(Math.min(pageShown(visibleNow(), size, count) + 1, pages))}>
          <IconChevronRight size={16} />
        </ActionIcon>
      </span>
      {onSize !== undefined && <NativeSelect className={classes.wideOnly} w={120} aria-label="Page size" data={[...new Set([...SIZES, size])].sort((one, other) => one - other).map((each) => ({ value: String(each), label: `${each} a page` }))} value={String(size)} onChange={(event) => onSize(Number(event.currentTarget.value))} />}
    </nav>
  );
}
