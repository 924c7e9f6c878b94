"""A receiver of webhooks that checks their signature. Needs Python 3.9 and nothing else.

    python3 receiver.py 4100 secret.txt

The secret is in a file. You may write the file after the start, because the service shows the secret only when the webhook is made.
"""

import hashlib
import hmac
import json
import pathlib
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 300


def is_genuine(header: str, body: bytes, secret: str) -> bool:
    """Whether the holder of the secret made `x-svc-signature` from this body a short time ago."""
    parts = [part.split("=", 1) for part in header.split(",")]
    instants = [value for name, value in parts if name == "t"]
    if len(instants) != 1 or not instants[0].isdigit() or abs(time.time() - int(instants[0])) > TOLERANCE_SECONDS:
        return False
    expected = hmac.new(secret.encode(), instants[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    # While a secret is rotated, there is a signature for each secret. They are compared in constant time.
    return any(hmac.compare_digest(expected, value) for name, value in parts if name == "v1")


class Receiver(BaseHTTPRequestHandler):
    seen: set = set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        secret = pathlib.Path(sys.argv[2]).read_text().strip()
        if not is_genuine(self.headers.get("x-svc-signature", ""), body, secret):
            self.send_error(400, "The signature does not hold")
            return
        event = json.loads(body)
        # An event may come twice. A receiver that must not act twice has to remember the ids.
        if event["id"] not in self.seen:
            self.seen.add(event["id"])
            # One write for the whole line, because requests run in parallel and their lines must not mix.
            print(f"received {event['topic']}\n", end="", flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
