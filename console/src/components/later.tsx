import { type ComponentType, Suspense, lazy, useState } from "react";

/** A component that is loaded when it is first shown, or before by `preload`. Once it is there, it is drawn at once. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> & { preload: () => Promise<void> } {
  let there: ComponentType<Props> | undefined;
  let coming: Promise<ComponentType<Props>> | undefined;
  const get = () =>
    (coming ??= load().then(
      (component) => (there = component),
      (error: unknown) => {
        coming = undefined;
        throw error;
      },
    ));
  const Waits = lazy(async () => ({ default: await get() })) as unknown as ComponentType<Props>;
  function Later(props: Props) {
    // One of them for as long as it is shown: another type of component would begin anew.
    const [Shown] = useState(() => there ?? Waits);
    return (
      <Suspense fallback={null}>
        <Shown {...props} />
      </Suspense>
    );
  }
  return Object.assign(Later, { preload: async () => void (await get()) });
}

/** Whether this was ever true: what is loaded with its first use stays. */
export function useEver(now: boolean): boolean {
  const [ever, setEver] = useState(now);
  if (now && !ever) setEver(true);
  return ever || now;
}
