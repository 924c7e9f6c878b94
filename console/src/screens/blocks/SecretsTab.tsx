import { Button, PasswordInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import type { Block, BlockSecret } from "../../api/types";
import { ErrorNotice } from "../../components/ErrorState";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { told } from "../../components/toast";
import { PartNotLoaded } from "../../components/PartNotLoaded";
import { DeleteButton } from "../../components/DeleteButton";
import { submits } from "../../components/submits";
import classes from "./Blocks.module.css";

/** The secrets that the block asks for. The page can set a value, but never shows it. */
export function SecretsTab({ block }: { block: Block }) {
  const path = { block: block.name };
  const query = useQuery({
    queryKey: ["blocks", block.name, "secrets"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/blocks/{block}/secrets", { params: { path }, signal })),
  });
  const { data } = query;
  if (data === undefined) return <PartNotLoaded query={query} what="The secrets" lines={3} />;
  return (
    <>
      <p className="dim">Only the block can read a value back. It is stored encrypted.</p>
      {data.map((secret) => (
        <OneSecret key={secret.name} secret={secret} block={block.name} />
      ))}
    </>
  );
}

function OneSecret({ secret: { name, isSet, updatedAt }, block }: { secret: BlockSecret; block: string }) {
  const cache = useQueryClient();
  const [value, setValue] = useState("");
  const refresh = () => cache.invalidateQueries({ queryKey: ["blocks", block, "secrets"] });
  const set = useMutation({
    mutationFn: (secret: string) => api.POST("/api/v1/blocks/{block}/secrets", { params: { path: { block } }, body: { name, value: secret } }),
    onSuccess: async () => {
      setValue("");
      told(`${name} is set.`);
      await refresh();
    },
    // The cache must not keep a secret.
    gcTime: 0,
  });
  const remove = useMutation({ mutationFn: () => api.DELETE("/api/v1/blocks/{block}/secrets/{name}", { params: { path: { block, name } } }), onSuccess: refresh });
  const error = set.error ?? remove.error;
  return (
    <form onSubmit={submits(() => set.mutate(value))}>
      {error !== null && <ErrorNotice error={error} />}
      <div className={classes.secret}>
        <PasswordInput
          label={<code className="mono">{name}</code>}
          description={
            isSet ? (
              <>
                <StatusBadge tone="ok" plain>set</StatusBadge> <Time at={updatedAt} />
              </>
            ) : (
              <StatusBadge tone="warn" plain>not set</StatusBadge>
            )
          }
          placeholder={isSet ? "type a new value" : "type the value"}
          autoComplete="off"
          value={value}
          onChange={({ currentTarget }) => setValue(currentTarget.value)}
        />
        <Button type="submit" disabled={value === ""} loading={set.isPending}>
          Set
        </Button>
        {isSet && (
          <DeleteButton question={{ title: `Delete the secret ${name}?`, children: "The block fails where it needs it.", action: "Delete secret" }} isPending={remove.isPending} onDelete={() => remove.mutate()} />
        )}
      </div>
    </form>
  );
}
