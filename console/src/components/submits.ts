/** Makes the handler of a form that this page sends itself. */
export const submits = (send: () => void) => (event: { preventDefault: () => void }) => {
  event.preventDefault();
  send();
};
