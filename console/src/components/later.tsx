import { type ComponentType, Suspense, lazy, useState } from "react";

/** Makes a component that is loaded when it is first shown, or earlier by `preload`. Once it is loaded, it renders at once. */
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
    // Keeps the same type of component while it is shown. With another type, React would mount it again.
    const [Shown] = useState(() => there ?? Waits);
    return (
      <Suspense fallback={null}>
        <Shown {...props} />
      </Suspense>
    );
  }
  return Object.assign(Later, { preload: async () => void (await get()) });
}

/** Returns whether `now` was ever true. A part that has been shown once stays loaded. */
export function useEver(now: boolean): boolean {
  const [ever, setEver] = useState(now);
  if (now && !ever) setEver(true);
  return ever || now;
}
