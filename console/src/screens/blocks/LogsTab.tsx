import { Button, Group, Select } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { api, ok } from "../../api/client";
import { every } from "../../api/poll";
import type { LogLine } from "../../api/types";
import { ErrorNotice } from "../../components/ErrorState";
import { SettledInput } from "../../components/SettledInput";
import { SkeletonRows } from "../../components/Skeleton";
import { StatusBadge } from "../../components/StatusBadge";
import { Lines } from "./Lines";

const FOLLOW_MS = 1_500;
const KEPT_MAX = 1_000;

/** The live log, with the newest lines first. Each request asks for the lines after the last known one, so that none is missed. */
export function LogsTab({ name }: { name: string }) {
  const { level, q = "" } = useSearch({ from: "/blocks/$block" });
  const navigate = useNavigate({ from: "/blocks/$block" });
  const [isFollowing, setFollowing] = useState(true);
  const [lines, setLines] = useState<LogLine[]>();
  const [hasMissed, setMissed] = useState(false);
  const cursor = useRef<string>(undefined);
  const filter = `${level ?? ""} ${q}`;
  useEffect(() => {
    cursor.current = undefined;
    setLines(undefined);
    setMissed(false);
  }, [filter, name]);
  const { error, refetch } = useQuery({
    queryKey: ["blocks", name, "logs", filter],
    queryFn: async ({ signal }) => {
      const after = cursor.current;
      const page = await ok(api.GET("/api/v1/blocks/{block}/logs", { params: { path: { block: name }, query: { level, search: q, after, limit: 500 } }, signal }));
      cursor.current = page.cursor;
      // The first page has the newest lines first. Later pages have the oldest lines first.
      const fresh = after === undefined ? page.data : page.data.toReversed();
      setLines((before) => [...fresh, ...(after === undefined ? [] : (before ?? []))].slice(0, KEPT_MAX));
      if (page.missed) setMissed(true);
      return page.cursor;
    },
    refetchInterval: isFollowing ? every(FOLLOW_MS) : false,
    gcTime: 0,
    staleTime: 0,
  });
  const find = useCallback((next: string | undefined) => void navigate({ search: (before) => ({ ...before, q: next }), replace: true }), [navigate]);
  return (
    <>
      <Group gap="sm">
        <Select aria-label="Level" placeholder="Every level" clearable data={["error", "warn", "info", "debug", "trace"]} value={level ?? null} onChange={(value) => void navigate({ search: (before) => ({ ...before, level: (value ?? undefined) as typeof level }), replace: true })} w={150} />
        <SettledInput w={240} leftSection={<IconSearch size={14} />} aria-label="Find in the log" placeholder="Find in the log" value={q} onSettled={find} />
        <Button variant="default" leftSection={isFollowing ? <IconPlayerPause size={14} /> : <IconPlayerPlay size={14} />} aria-pressed={!isFollowing} onClick={() => setFollowing(!isFollowing)}>
          {isFollowing ? "Pause" : "Follow"}
        </Button>
        {hasMissed && <StatusBadge tone="warn">lines were dropped before they were read</StatusBadge>}
      </Group>
      {error !== null && <ErrorNotice error={error} title="The log could not be loaded" onRetry={() => void refetch()} />}
      {lines === undefined ? (
        error === null && <SkeletonRows rows={8} columns={3} />
      ) : lines.length === 0 ? (
        <p className="dim">{level === undefined && q === "" ? "It has written nothing yet." : "No line matches."}</p>
      ) : (
        <Lines lines={lines} label={`Log of ${name}`} />
      )}
    </>
  );
}
