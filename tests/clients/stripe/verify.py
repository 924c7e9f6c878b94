"""Hands one received webhook to the unmodified `stripe` library: what it has to accept and to refuse.

Usage: python verify.py <file of the raw body> <value of x-svc-signature> <secret that signed>...
"""

import json
import re
import sys
from pathlib import Path
from unittest import mock

import stripe

TOLERANCE = 300
MISMATCH = "No signatures found matching"

file, header, *secrets = sys.argv[1:]
assert secrets, __doc__
body = Path(file).read_bytes()
signed_at = int(re.match(r"t=(\d+),", header)[1])


def construct(payload, signature, secret, seconds):
    with mock.patch("time.time", return_value=signed_at + seconds):
        return stripe.Webhook.construct_event(payload, signature, secret, TOLERANCE)


def accepts(what, secret, payload=body, seconds=0):
    event = construct(payload, header, secret, seconds)
    assert event.to_dict() == json.loads(body), event
    print("accepts", what)


def refuses(what, why, secret, payload=body, signature=header, seconds=0):
    try:
        construct(payload, signature, secret, seconds)
    except stripe.SignatureVerificationError as error:
        assert why in str(error), error
        print("refuses", what)
    else:
        raise AssertionError(f"accepts {what}")


for secret in secrets:
    # As an endpoint calls it, with the clock of this moment.
    assert stripe.Webhook.construct_event(body, header, secret)["id"] == json.loads(body)["id"]
    accepts("its secret", secret)
    accepts("the body as text", secret, payload=body.decode())
    accepts("a timestamp at the tolerance's end", secret, seconds=TOLERANCE)
    refuses("a stale timestamp", "outside the tolerance", secret, seconds=TOLERANCE + 1)
    later = header.replace(f"t={signed_at}", f"t={signed_at + 1}")
    refuses("a timestamp that was not signed", MISMATCH, secret, signature=later)
    changed = bytearray(body)
    changed[-3] ^= 1
    refuses("a changed body", MISMATCH, secret, payload=bytes(changed))
    refuses("a body with one byte more", MISMATCH, secret, payload=body + b"\n")
    refuses("the secret without its prefix", MISMATCH, secret.removeprefix("whsec_"))
refuses("another secret", MISMATCH, "whsec_of_somebody_else")
