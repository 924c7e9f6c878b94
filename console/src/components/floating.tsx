/**
 * Mantine's `Menu` and `Popover` with the same props and parts. Their code is loaded when the pointer or the focus first comes to a target.
 * The target is the same plain element before and after, so it keeps its focus. It has to accept a `ref`, an `id`, `onClick` and
 * `onKeyDown`.
 */
import type { Menu as RealMenu, Popover as RealPopover } from "@mantine/core";
import { useMergedRef } from "@mantine/hooks";
import { Children, type ComponentType, type KeyboardEvent, type MouseEvent, type PropsWithChildren, type ReactElement, type Ref, type RefObject, cloneElement, isValidElement, useEffect, useId, useImperativeHandle, useRef, useState } from "react";

type Parts = typeof import("./floating-parts");

let parts: Parts | undefined;
let coming: Promise<Parts> | undefined;

/** Loads Mantine's parts before they are needed. */
export function loadFloating(): Promise<Parts> {
  coming ??= import("./floating-parts").then(
    (loaded) => (parts = loaded),
    (error: unknown) => {
      coming = undefined;
      throw error;
    },
  );
  return coming;
}

function Target({ children }: PropsWithChildren) {
  return children;
}

/** Takes the place where Mantine expects the target, and gives Mantine the existing element. */
function Standin({ element, ref }: { element: RefObject<HTMLElement | null>; ref?: Ref<HTMLElement> }) {
  useImperativeHandle(ref, () => element.current!, [element]);
  return null;
}

interface TargetProps {
  ref?: Ref<HTMLElement>;
  onClick?: (event: MouseEvent) => void;
  onKeyDown?: (event: KeyboardEvent) => void;
}

interface RootProps extends PropsWithChildren {
  opened?: boolean;
  onChange?: (opened: boolean) => void;
  withRoles?: boolean;
  /** Loads the content of the dropdown in advance. */
  preload?: () => Promise<unknown>;
}

function root(name: "Menu" | "Popover", popup: "menu" | "dialog") {
  return function Root({ children, opened: given, onChange, preload, ...rest }: RootProps) {
    const id = useId();
    const [own, setOwn] = useState(false);
    const [isLoaded, setLoaded] = useState(false);
    const [isReady, setReady] = useState(false);
    const [failure, setFailure] = useState<{ error: unknown }>();
    const opened = given ?? own;
    useEffect(() => {
      if (!opened || isLoaded) return;
      let isWanted = true;
      Promise.all([loadFloating(), preload?.()]).then(
        () => isWanted && setLoaded(true),
        (error: unknown) => isWanted && setFailure({ error }),
      );
      return () => {
        isWanted = false;
      };
    }, [opened, isLoaded, preload]);
    // The dropdown mounts closed and opens afterwards. So Mantine notices the change and remembers which element had the focus.
    useEffect(() => setReady(isLoaded), [isLoaded]);
    if (failure !== undefined) throw failure.error;

    const element = useRef<HTMLElement>(null);
    const all = Children.toArray(children);
    const target = (all.find((child) => isValidElement(child) && child.type === Target) as ReactElement<{ children: ReactElement<TargetProps> }>).props.children;
    const shown = opened && isReady;
    const set = (next: boolean) => {
      setOwn(next);
      onChange?.(next);
    };
    const reach = () => {
      void loadFloating().catch(() => {});
      void preload?.().catch(() => {});
    };
    const Real = parts?.[name] as ComponentType<Record<string, unknown>> | undefined;
    const RealTarget = parts?.[name].Target as ComponentType<PropsWithChildren> | undefined;
    return (
      <>
        {cloneElement(target as ReactElement<Record<string, unknown>>, {
          ref: useMergedRef(element, target.props.ref),
          ...(rest.withRoles === false ? {} : { id, "aria-haspopup": popup, "aria-expanded": shown, "aria-controls": shown ? `${id}-dropdown` : undefined }),
          ...(popup === "menu" && shown ? { "data-expanded": true } : {}),
          // Dialogs of Mantine do not take Escape from an element with this attribute.
          ...(opened ? { "data-mantine-stop-propagation": true } : {}),
          onPointerEnter: reach,
          onFocus: reach,
          onClick: (event: MouseEvent) => {
            if (given === undefined) set(!opened);
            target.props.onClick?.(event);
          },
          // A dropdown closes on Escape if it has the focus. It takes the focus only after it has appeared, and until then the target has it.
          // Escape closes the dropdown alone, and nothing around it.
          onKeyDown: (event: KeyboardEvent) => {
            if (opened && event.key === "Escape") {
              event.stopPropagation();
              set(false);
            } else target.props.onKeyDown?.(event);
          },
        })}
        {isLoaded && Real !== undefined && RealTarget !== undefined && (
          <Real {...rest} id={id} opened={shown} onChange={set}>
            <RealTarget>
              <Standin element={element} />
            </RealTarget>
            {all.filter((child) => !(isValidElement(child) && child.type === Target))}
          </Real>
        )}
      </>
    );
  };
}

/** A part that is only rendered after all of the code is loaded. */
function part(take: (loaded: Parts) => unknown) {
  return function Part(props: object) {
    const Real = take(parts!) as ComponentType<object>;
    return <Real {...props} />;
  };
}

type Preloading = { preload?: () => Promise<unknown> };

export const Menu = Object.assign(root("Menu", "menu"), {
  Target,
  Dropdown: part(({ Menu }) => Menu.Dropdown),
  Item: part(({ Menu }) => Menu.Item),
  Label: part(({ Menu }) => Menu.Label),
  Divider: part(({ Menu }) => Menu.Divider),
  RadioGroup: part(({ Menu }) => Menu.RadioGroup),
  RadioItem: part(({ Menu }) => Menu.RadioItem),
}) as unknown as Pick<typeof RealMenu, "Target" | "Dropdown" | "Item" | "Label" | "Divider" | "RadioGroup" | "RadioItem"> & ((props: Parameters<typeof RealMenu>[0] & Preloading) => ReactElement);

export const Popover = Object.assign(root("Popover", "dialog"), {
  Target,
  Dropdown: part(({ Popover }) => Popover.Dropdown),
}) as unknown as Pick<typeof RealPopover, "Target" | "Dropdown"> & ((props: Parameters<typeof RealPopover>[0] & Preloading) => ReactElement);
