// Encodes and decodes UTF-8, because the engine has no encoder.

const CHUNK = 8192;

export function encodeUtf8(text) {
  text = String(text).toWellFormed();
  const bytes = new Uint8Array(text.length * 3);
  let length = 0;
  for (let index = 0; index < text.length; index++) {
    let code = text.charCodeAt(index);
    if (code < 0x80) {
      bytes[length++] = code;
    } else if (code < 0x800) {
      bytes[length++] = 0xc0 | (code >> 6);
      bytes[length++] = 0x80 | (code & 0x3f);
    } else if (code >= 0xd800 && code < 0xdc00) {
      code = 0x10000 + ((code - 0xd800) << 10) + (text.charCodeAt(++index) - 0xdc00);
      bytes[length++] = 0xf0 | (code >> 18);
      bytes[length++] = 0x80 | ((code >> 12) & 0x3f);
      bytes[length++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[length++] = 0x80 | (code & 0x3f);
    } else {
      bytes[length++] = 0xe0 | (code >> 12);
      bytes[length++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[length++] = 0x80 | (code & 0x3f);
    }
  }
  return bytes.slice(0, length);
}

/** Decodes bytes as text. Invalid bytes become U+FFFD, or throw if `fatal` is true. */
export function decodeUtf8(bytes, fatal = false) {
  const parts = [];
  let codes = [];
  let index = 0;
  const invalid = () => {
    if (fatal) throw new TypeError("The bytes are no UTF-8.");
    codes.push(0xfffd);
  };
  while (index < bytes.length) {
    const lead = bytes[index++];
    if (lead < 0x80) {
      codes.push(lead);
    } else {
      const more = lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xf0 && lead < 0xf5 ? 3 : 0;
      let code = more === 1 ? lead & 0x1f : more === 2 ? lead & 0x0f : lead & 0x07;
      // The limits of the second byte exclude surrogates, overlong forms, and values above U+10FFFF.
      let low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      let high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      let left = more;
      while (left > 0 && bytes[index] >= low && bytes[index] <= high) {
        code = (code << 6) | (bytes[index++] & 0x3f);
        low = 0x80;
        high = 0xbf;
        left -= 1;
      }
      if (more === 0 || left > 0) {
        invalid();
      } else if (code > 0xffff) {
        codes.push(0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
      } else {
        codes.push(code);
      }
    }
    if (codes.length >= CHUNK) {
      parts.push(String.fromCharCode.apply(null, codes));
      codes = [];
    }
  }
  parts.push(String.fromCharCode.apply(null, codes));
  return parts.join("");
}

/** A list of bytes from the host as a `Uint8Array`. It is not copied if it is one already, as it usually is. */
export function asBytes(list) {
  return list instanceof Uint8Array ? list : Uint8Array.from(list);
}

/** The bytes of a text. Values that are already bytes keep them. */
export function toBytes(data) {
  if (typeof data === "string") return encodeUtf8(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw new TypeError("A string, a Uint8Array or an ArrayBuffer was expected.");
}

export class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    return encodeUtf8(text);
  }
}

export class TextDecoder {
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`There is no decoder for ${label}.`);
    this.encoding = "utf-8";
    this.fatal = fatal;
    this.ignoreBOM = ignoreBOM;
  }

  decode(data) {
    const text = data === undefined ? "" : decodeUtf8(toBytes(data), this.fatal);
    return !this.ignoreBOM && text.startsWith("\ufeff") ? text.slice(1) : text;
  }
}
