/** Receivers that verify a signature, in five languages, with what each brings along. */
export const SAMPLES = {
  JavaScript: `import { createHmac, timingSafeEqual } from "node:crypto";

/** \`body\` is the raw body, before it is parsed. */
export function isGenuine(body, header, secret, maxAgeSeconds = 300) {
  const parts = Object.fromEntries(header.split(",").map((part) => part.split("=", 2)));
  if (!(Math.abs(Date.now() / 1000 - Number(parts.t)) <= maxAgeSeconds)) return false;
  const expected = createHmac("sha256", secret).update(\`\${parts.t}.\`).update(body).digest();
  const given = Buffer.from(parts.v1 ?? "", "hex");
  return given.length === expected.length && timingSafeEqual(given, expected);
}`,
  Python: `import hashlib, hmac, time

def is_genuine(body: bytes, header: str, secret: str, max_age_seconds: int = 300) -> bool:
    """\`body\` is the raw body, before it is parsed."""
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    stamp = parts.get("t", "")
    if not stamp.isdigit() or abs(time.time() - int(stamp)) > max_age_seconds:
        return False
    expected = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts.get("v1", ""))`,
  Go: `package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// IsGenuine checks a request; body is the raw body, before it is parsed.
func IsGenuine(body []byte, header, secret string, maxAge time.Duration) bool {
	parts := map[string]string{}
	for _, part := range strings.Split(header, ",") {
		if name, value, ok := strings.Cut(part, "="); ok {
			parts[name] = value
		}
	}
	seconds, err := strconv.ParseInt(parts["t"], 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > maxAge {
		return false
	}
	given, err := hex.DecodeString(parts["v1"])
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(parts["t"] + "."))
	mac.Write(body)
	return hmac.Equal(mac.Sum(nil), given)
}`,
  Rust: `use hmac::{Hmac, Mac};
use sha2::Sha256;

/// \`body\` is the raw body, before it is parsed; \`now\` is in unix seconds.
pub fn is_genuine(body: &[u8], header: &str, secret: &str, now: i64, max_age_seconds: i64) -> bool {
    let part = |name: &str| header.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    let (Some(stamp), Some(signature)) = (part("t"), part("v1")) else { return false };
    let Ok(seconds) = stamp.parse::<i64>() else { return false };
    let Ok(given) = hex::decode(signature) else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return false };
    mac.update(stamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    now.saturating_sub(seconds).saturating_abs() <= max_age_seconds && mac.verify_slice(&given).is_ok()
}`,
  PHP: `<?php
/** $body is the raw body: file_get_contents("php://input"). */
function is_genuine(string $body, string $header, string $secret, int $maxAgeSeconds = 300): bool
{
    parse_str(strtr($header, ",", "&"), $parts);
    $stamp = $parts["t"] ?? "";
    if (!ctype_digit($stamp) || abs(time() - (int) $stamp) > $maxAgeSeconds) {
        return false;
    }
    $expected = hash_hmac("sha256", "$stamp.$body", $secret);
    return hash_equals($expected, $parts["v1"] ?? "");
}`,
} as const;
