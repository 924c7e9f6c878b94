import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api/client";
import { isApiError } from "../../api/errors";
import { isJsonObject, type JsonValue } from "../../api/json";
import type { Block } from "../../api/types";
import { ErrorNotice } from "../../components/ErrorState";
import { SchemaForm } from "../../components/SchemaForm";
import { told } from "../../components/toast";

/** Edits the block's configuration, with a form from the schema that the block declares. */
export function ConfigurationTab({ block, canUpdate }: { block: Block; canUpdate: boolean }) {
  const cache = useQueryClient();
  const [value, setValue] = useState<JsonValue | undefined>(block.config);
  const save = useMutation({
    mutationFn: (config: JsonValue | undefined) => api.PATCH("/api/v1/blocks/{block}", { params: { path: { block: block.name } }, body: { config: isJsonObject(config) ? config : {} } }),
    onSuccess: async () => {
      await cache.invalidateQueries({ queryKey: ["blocks"] });
      told("The configuration is saved. The next call sees it.");
    },
  });
  return (
    <>
      {save.error !== null && <ErrorNotice error={save.error} title="The configuration is as it was" />}
      <SchemaForm
        schema={block.configSchema ?? {}}
        value={value}
        onChange={setValue}
        onSubmit={(config) => save.mutate(config)}
        issues={isApiError(save.error) ? save.error.issues : []}
        submit="Save configuration"
        busy={save.isPending}
        disabled={!canUpdate}
      />
    </>
  );
}
