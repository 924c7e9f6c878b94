export { Menu, Popover } from "@mantine/core";
