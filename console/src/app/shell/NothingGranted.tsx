import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useMe } from "../../api/session";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

/** The page of a person without any grant. It says what is missing and who can give it. */
export function NothingGranted() {
  const me = useMe();
  const cache = useQueryClient();
  return (
    <Page title="Home">
      <EmptyState
        title="You may not see anything yet"
        action={
          <Button variant="default" onClick={() => void cache.invalidateQueries()}>
            Look again
          </Button>
        }
        curl={`curl -X POST '${location.origin}/api/v1/users/${me?.userId ?? "<user id>"}/roles' \\\n  -H "authorization: Bearer $SVC_API_KEY" \\\n  -H 'content-type: application/json' \\\n  -d '{"roleId":"<role>"}'`}
      >
        Your account (<bdi>{me?.user?.email}</bdi>) has no role that allows reading. Somebody who may update users can give you one on their page Users.
      </EmptyState>
    </Page>
  );
}
