import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMe } from "../../api/session";
import { CopyText } from "../../components/Copy";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

/** For a person without any grant: what is missing, and who can give it. */
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
        curl={`curl -X POST '${location.origin}/api/v1/users/${me?.userId ?? "<user id>"}/roles' \\\n  -H "authorization: Bearer $BLOCKBASE_KEY" \\\n  -H 'content-type: application/json' \\\n  -d '{"roleId":"<role>"}'`}
      >
        Your account has no role that allows reading. Ask somebody who may update users (an admin) to give you one, on the page Users. Tell them your email{" "}
        <bdi>{me?.user?.email}</bdi>
        {me?.userId !== undefined && (
          <>
            {" "}
            or your user id <CopyText text={me.userId} label="Copy your user id" />
          </>
        )}
        . Your own name and password are under <Link to="/account">Your account</Link>.
      </EmptyState>
    </Page>
  );
}
