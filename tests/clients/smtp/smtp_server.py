"""A mail server that keeps nothing: it prints each mail that it accepts, and misbehaves when it is told to.

Usage: python smtp_server.py [--tls none|starttls|implicit] [--name NAME] [--user USER --password PASSWORD]
                             [--fail N] [--refuse ADDRESS]... [--hang] [--away]

It listens on a free port of 127.0.0.1 and ends with its standard input. With `--away` it keeps the port, but refuses connections.
With `--hang` it never answers the content of a mail. Each line of output is a JSON object:

  {"event": "ready", "port": …, "authority": …}   `authority` is a file with the certificate that its own is signed with
  {"event": "mail", "from", "to", "subject", "text", "html", "headers", "raw", "tls", "user"}
  {"event": "failed" | "refused" | "hung" | "unauthenticated", …}

Each line of input is a JSON object that replaces what `--fail`, `--refuse` or `--hang` said, for instance
{"fail": 2, "hang": false}. {"away": false} makes a server listen that was away. A line {"event": "behaves", …} is printed when it
is in force.
"""

import argparse
import asyncio
import email
import email.policy
import json
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

ADDRESS = "127.0.0.1"
DATA_BYTES_MAX = 10_000_000
TEMPORARY = "451 4.3.0 Try again later"
REFUSED = "550 5.1.1 No such mailbox"


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--tls", choices=["none", "starttls", "implicit"], default="none")
    parser.add_argument("--name", help="the only name in the certificate, instead of localhost and 127.0.0.1")
    parser.add_argument("--user")
    parser.add_argument("--password")
    parser.add_argument("--fail", type=int, default=0)
    parser.add_argument("--refuse", action="append", default=[])
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--away", action="store_true")
    given = parser.parse_args()
    if (given.user is None) != (given.password is None):
        parser.error("--user and --password belong together")
    return given


# ---- certificates --------------------------------------------------------


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def certified(folder, name):
    """A context for TLS with a new certificate, and the file of the authority that signed it."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    authority, authority_key = folder / "authority.pem", folder / "authority.key"
    server, server_key, request = folder / "server.pem", folder / "server.key", folder / "server.csr"
    extensions = folder / "extensions"
    names = f"DNS:{name}" if name else f"DNS:localhost,IP:{ADDRESS}"
    usage = "extendedKeyUsage=serverAuth\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
    extensions.write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n{usage}")
    own = ["-subj", "/CN=authority of a test", "-addext", "keyUsage=critical,keyCertSign", "-days", "2"]
    openssl("req", "-x509", *key, "-keyout", authority_key, "-out", authority, *own)
    openssl("req", "-new", *key, "-keyout", server_key, "-out", request, "-subj", "/CN=mail server of a test")
    signing = ["-CA", authority, "-CAkey", authority_key, "-CAcreateserial", "-extfile", extensions, "-days", "2"]
    openssl("x509", "-req", "-in", request, "-out", server, *signing)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server, server_key)
    return context, authority


# ---- the server ----------------------------------------------------------


class Handler:
    """Accepts mails, or does with them what `behavior` says."""

    def __init__(self, behavior):
        self.behavior = behavior

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.lower() in (refused.lower() for refused in self.behavior.refuse):
            tell("refused", to=address)
            return REFUSED
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if self.behavior.hang:
            tell("hung", to=envelope.rcpt_tos)
            await asyncio.Event().wait()
        if self.behavior.fail > 0:
            self.behavior.fail -= 1
            tell("failed", to=envelope.rcpt_tos)
            return TEMPORARY
        encrypted = server.transport.get_extra_info("ssl_object") is not None
        tell("mail", **seen(envelope), tls=encrypted, user=session.auth_data)
        return "250 OK"


def seen(envelope):
    message = email.message_from_bytes(envelope.content, policy=email.policy.default)

    def part(kind):
        found = message.get_body(preferencelist=(kind,))
        return None if found is None else found.get_content().replace("\r\n", "\n")

    return {
        "from": envelope.mail_from,
        "to": envelope.rcpt_tos,
        "subject": message["subject"],
        "text": part("plain"),
        "html": part("html"),
        "headers": [[name, str(value)] for name, value in message.items()],
        "raw": envelope.content.decode("utf-8", "replace"),
    }


def authenticator(user, password):
    def authenticate(server, session, envelope, mechanism, data):
        is_known = isinstance(data, LoginPassword) and (data.login, data.password) == (user.encode(), password.encode())
        if not is_known:
            tell("unauthenticated", mechanism=mechanism)
            return AuthResult(success=False, handled=False)
        return AuthResult(success=True, auth_data=user)

    return authenticate


def factory(given, context):
    options = {"hostname": "localhost", "data_size_limit": DATA_BYTES_MAX, "enable_SMTPUTF8": True}
    if given.tls == "starttls":
        options.update(tls_context=context, require_starttls=True)
    if given.user is not None:
        # The library counts only STARTTLS as TLS.
        options.update(auth_required=True, auth_require_tls=given.tls == "starttls")
        options.update(authenticator=authenticator(given.user, given.password))
    handler = Handler(given)
    return lambda: SMTP(handler, **options)


async def obey(line, behavior, listen):
    wanted = json.loads(line)
    unknown = wanted.keys() - {"fail", "refuse", "hang", "away"}
    if unknown:
        raise ValueError(f"unknown: {unknown}")
    was_away = behavior.away
    if wanted.get("away") and not was_away:
        raise ValueError("a server that listens does not go away")
    for name, value in wanted.items():
        setattr(behavior, name, value)
    if was_away and not behavior.away:
        await listen()
    tell("behaves", fail=behavior.fail, refuse=behavior.refuse, hang=behavior.hang, away=behavior.away)


def follow_input(loop, behavior, listen, ended):
    for line in sys.stdin:
        asyncio.run_coroutine_threadsafe(obey(line, behavior, listen), loop).result()
    loop.call_soon_threadsafe(ended.set)


async def serve(given, folder):
    context, authority = (None, None) if given.tls == "none" else certified(folder, given.name)
    loop = asyncio.get_running_loop()
    implicit = context if given.tls == "implicit" else None
    # A socket that is bound and does not listen refuses connections, and no other program can get its port.
    bound = socket.socket()
    bound.bind((ADDRESS, 0))

    async def listen():
        # It listens until the program ends.
        await loop.create_server(factory(given, context), sock=bound, ssl=implicit)

    if not given.away:
        await listen()
    ended = asyncio.Event()
    threading.Thread(target=follow_input, args=(loop, given, listen, ended), daemon=True).start()
    tell("ready", port=bound.getsockname()[1], authority=authority and str(authority))
    await ended.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(arguments(), Path(folder)))
