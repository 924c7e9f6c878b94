/** Code of receivers that verify a signature, in five languages, each with its standard tools. */
export const SAMPLES = {
  JavaScript: `import { createHmac, timingSafeEqual } from "node:crypto";

/** \`body\` is the raw body, before it is parsed. */
export function isGenuine(body, header, secret, maxAgeSeconds = 300) {
  const parts = header.split(",").map((part) => part.split("=", 2));
  const stamp = parts.find(([name]) => name === "t")?.[1];
  if (!(Math.abs(Date.now() / 1000 - Number(stamp)) <= maxAgeSeconds)) return false;
  const expected = createHmac("sha256", secret).update(\`\${stamp}.\`).update(body).digest();
  // While a secret is rotated there is one signature for each.
  return parts.some(([name, value]) => {
    const given = name === "v1" ? Buffer.from(value ?? "", "hex") : Buffer.alloc(0);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}`,
  Python: `import hashlib, hmac, time

def is_genuine(body: bytes, header: str, secret: str, max_age_seconds: int = 300) -> bool:
    """\`body\` is the raw body, before it is parsed."""
    parts = [part.split("=", 1) for part in header.split(",") if "=" in part]
    stamp = next((value for name, value in parts if name == "t"), "")
    if not stamp.isdigit() or abs(time.time() - int(stamp)) > max_age_seconds:
        return False
    expected = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    # While a secret is rotated there is one signature for each.
    return any(hmac.compare_digest(expected.encode(), value.encode()) for name, value in parts if name == "v1")`,
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
	parts := map[string][]string{}
	for _, part := range strings.Split(header, ",") {
		if name, value, ok := strings.Cut(part, "="); ok {
			parts[name] = append(parts[name], value)
		}
	}
	if len(parts["t"]) != 1 {
		return false
	}
	stamp := parts["t"][0]
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > maxAge {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	expected := mac.Sum(nil)
	// While a secret is rotated there is one signature for each.
	for _, value := range parts["v1"] {
		if given, err := hex.DecodeString(value); err == nil && hmac.Equal(expected, given) {
			return true
		}
	}
	return false
}`,
  Rust: `// hmac 0.13, sha2 0.11, hex 0.4
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// \`body\` is the raw body, before it is parsed; \`now\` is in unix seconds.
pub fn is_genuine(body: &[u8], header: &str, secret: &str, now: i64, max_age_seconds: i64) -> bool {
    let Some(stamp) = header.split(',').find_map(|part| part.strip_prefix("t=")) else { return false };
    let Ok(seconds) = stamp.parse::<i64>() else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return false };
    mac.update(stamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    // While a secret is rotated there is one signature for each.
    let mut signatures = header.split(',').filter_map(|part| hex::decode(part.strip_prefix("v1=")?).ok());
    now.saturating_sub(seconds).saturating_abs() <= max_age_seconds
        && signatures.any(|given| mac.clone().verify_slice(&given).is_ok())
}`,
  PHP: `<?php
/** $body is the raw body: file_get_contents("php://input"). */
function is_genuine(string $body, string $header, string $secret, int $maxAgeSeconds = 300): bool
{
    $parts = ["t" => [], "v1" => []];
    foreach (explode(",", $header) as $part) {
        [$name, $value] = array_pad(explode("=", $part, 2), 2, "");
        $parts[$name][] = $value;
    }
    $stamp = $parts["t"][0] ?? "";
    if (!ctype_digit($stamp) || abs(time() - (int) $stamp) > $maxAgeSeconds) {
        return false;
    }
    $expected = hash_hmac("sha256", "$stamp.$body", $secret);
    // While a secret is rotated there is one signature for each.
    foreach ($parts["v1"] as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}`,
} as const;
