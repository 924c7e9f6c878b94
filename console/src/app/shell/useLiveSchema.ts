import { useQueryClient } from "@tanstack/react-query";
import { useLive } from "../../api/live";

/** Loads the schema again when somebody changes it. Persons who may not read events get the new schema when they come back to the tab. */
export function useLiveSchema(): void {
  const cache = useQueryClient();
  const again = () => {
    void cache.invalidateQueries({ queryKey: ["schema"] });
    void cache.invalidateQueries({ queryKey: ["data-objects"] });
  };
  useLive(["schema.#"], again, { onGap: again, queries: [["schema"], ["data-objects"]] });
}
