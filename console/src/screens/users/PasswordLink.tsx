import { useEffect, useRef } from "react";
import type { PasswordLink as Link } from "../../api/types";
import { OneTimeSecret } from "../../components/OneTimeSecret";
import { Time } from "../../components/Time";

/** A link that sets a password, shown once. The server does not mail it. The person who made it has to pass it on. */
export function PasswordLink({ link: { link, expiresAt }, email }: { link: Link; email: string }) {
  const shown = useRef<HTMLDivElement>(null);
  // The pane may be scrolled when the link appears.
  useEffect(() => {
    shown.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <div ref={shown} role="status">
      <OneTimeSecret
        label={
          <>
            Link for <bdi>{email}</bdi>
          </>
        }
        secret={link}
        copyLabel="Copy link"
      >
        Copy it now. It is shown only this once. It works once, until <Time at={expiresAt} exact />. Anybody who has it can choose the password.
      </OneTimeSecret>
    </div>
  );
}
