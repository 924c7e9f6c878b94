const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether this is an id in the server's format, in upper or lower case. */
export const isUuid = (value: unknown): value is string => typeof value === "string" && UUID.test(value);
