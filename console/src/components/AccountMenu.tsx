import { type MantineColorScheme, UnstyledButton, useMantineColorScheme } from "@mantine/core";
import { IconDeviceDesktop, IconLogout, IconMoon, IconSelector, IconSun, IconUser } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { auth } from "../api/auth";
import { feed } from "../api/live";
import { forgetAll, meQuery, useMe } from "../api/session";
import { sessionEstablished } from "../api/session-lost";
import { Menu } from "./floating";
import { Initials } from "./Initials";
import { failed } from "./toast";
import classes from "./AccountMenu.module.css";

const THEMES = [
  ["auto", "As the system", IconDeviceDesktop],
  ["light", "Light", IconSun],
  ["dark", "Dark", IconMoon],
] as const;

/** Ends the session and removes this person's data from the page. */
export function useSignOut() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: () => auth.signOut(),
    onSuccess: () => {
      sessionEstablished(false);
      feed.reset();
      cache.setQueryData(meQuery.queryKey, { authenticated: false });
      // Runs when no page shows this data any more.
      setTimeout(() => forgetAll(cache), 0);
    },
    onError: (error) => failed("You are still signed in", error),
  });
}

export function AccountMenu({ folded }: { folded: boolean }) {
  const me = useMe();
  const navigate = useNavigate();
  const signOut = useSignOut();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const name = me?.user?.name || me?.user?.email || "Guest";
  return (
    <Menu position="top-start" width={228}>
      <Menu.Target>
        <UnstyledButton className={classes.account} aria-label={folded ? `Account of ${name}` : undefined}>
          <Initials name={name} />
          {!folded && <span dir="auto">{name}</span>}
          {!folded && <IconSelector size={14} aria-hidden="true" />}
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <bdi>{me?.user?.email}</bdi>
        </Menu.Label>
        <Menu.Item leftSection={<IconUser size={15} />} onClick={() => void navigate({ to: "/account" })}>
          Your account
        </Menu.Item>
        <Menu.Divider />
        <Menu.Label>Theme</Menu.Label>
        <Menu.RadioGroup value={colorScheme} onChange={(value) => setColorScheme(value as MantineColorScheme)}>
          {THEMES.map(([value, label, Icon]) => (
            <Menu.RadioItem key={value} value={value} rightSection={<Icon size={15} />}>
              {label}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={15} />} onClick={() => signOut.mutate()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
