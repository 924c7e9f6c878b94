export { TransferMenu, type TransferMenuProps } from "./TransferMenu";
