"""The decorators, and values of calls. Run with `python3 -m unittest`."""

import datetime
import decimal
import unittest
from dataclasses import dataclass

from blockbase import HandlerError, Headers, MissingPlugin, Request, Response, action, data, hook, log, subscription
from blockbase import _declarations, _json


@dataclass
class Greet:
    name: str


class Declarations(unittest.TestCase):
    def setUp(self):
        for handlers in _declarations.HANDLERS.values():
            handlers.clear()

    def test_the_manifest_says_what_the_code_declares(self):
        @action(rbac={"resource": "hello:use", "action": "read"}, timeout_ms=500)
        def greet(input: Greet, context):
            """Greets
            somebody.

            And more.
            """

        @action(name="raw", description="Takes anything.", input={"type": "object"})
        def other(input):
            pass

        @hook
        def ping():
            pass

        @subscription("data.task.#", consumer="hello:tasks", config={"a": 1})
        def on_task(event, config):
            pass

        @subscription()
        def on_more(event):
            pass

        _declarations.resolve()
        derived = {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "additionalProperties": False,
            "required": ["name"],
        }
        self.assertEqual(
            _declarations.manifest(),
            {
                "actions": [
                    {
                        "name": "greet",
                        "description": "Greets somebody.",
                        "rbac": {"resource": "hello:use", "action": "read"},
                        "timeoutMs": 500,
                        "input": derived,
                    },
                    {"name": "raw", "description": "Takes anything.", "input": {"type": "object"}},
                ],
                "hooks": [{"name": "ping"}],
                "subscriptions": [
                    {"handler": "on_task", "event": "data.task.#", "consumer": "hello:tasks", "config": {"a": 1}},
                    {"handler": "on_more"},
                ],
            },
        )

    def test_arguments_may_be_left_off_the_end(self):
        @hook
        def nothing():
            return "nothing"

        @hook
        def both(request, context, more=1):
            return request, context, more

        handlers = _declarations.HANDLERS["hook"]
        self.assertEqual(handlers["nothing"].call(1, 2), "nothing")
        self.assertEqual(handlers["both"].call(1, 2), (1, 2, 1))

    def test_what_cannot_be_declared_is_refused_by_name(self):
        def too_much(a, b, c):
            pass

        async def later():
            pass

        def twice():
            pass

        hook(twice)
        for declare, message in [
            (lambda: hook(too_much), "too_much"),
            (lambda: hook(later), "async"),
            (lambda: hook(twice), "twice"),
            (lambda: hook(name="A-b")(lambda: None), "'A-b'"),
            (lambda: subscription("data.#"), "consumer"),
        ]:
            with self.assertRaisesRegex(TypeError, message):
                declare()

        @action
        def odd(input: list[int]):
            pass

        with self.assertRaisesRegex(TypeError, "`odd` has to be"):
            _declarations.resolve()

    def test_there_is_no_host_outside_a_component(self):
        for call in (lambda: data.get("task", "1"), lambda: log.info("a")):
            with self.assertRaisesRegex(MissingPlugin, "outside"):
                call()


class Calls(unittest.TestCase):
    def test_headers_know_no_case(self):
        headers = Headers([("X-Name", b"a"), ("x-name", "b"), ("X-Raw", b"\xff")])
        self.assertEqual((headers.get("x-NAME"), headers.get_all("x-name")), ("a", [b"a", b"b"]))
        self.assertEqual((headers.get("x-raw"), headers.get_bytes("x-raw")), ("\ufffd", b"\xff"))
        self.assertEqual((headers.get("none"), headers.get("none", "c"), "X-RAW" in headers), (None, "c", True))

    def test_a_request_reads_its_body(self):
        request = Request("POST", "/a", "a=1&a=2&b=", Headers(), '{"é": 1}'.encode(), "::1")
        self.assertEqual((request.json(), request.parameters()), ({"é": 1}, {"a": ["1", "2"], "b": [""]}))
        for body in (b"\xff", b"{"):
            with self.assertRaises(HandlerError):
                Request("POST", "/a", "", Headers(), body, "::1").json()

    def test_a_response_tells_what_its_body_is(self):
        self.assertEqual(Response().parts(), (200, [], b""))
        self.assertEqual(Response(201, {"X": "a"}, "é").parts()[1:], ([("X", b"a"), ("content-type", b"text/plain; charset=utf-8")], "é".encode()))
        self.assertEqual(Response(body={"a": 1}).parts()[1:], ([("content-type", b"application/json")], b'{"a": 1}'))
        self.assertEqual(Response(200, {"Content-Type": "text/html"}, "a").parts()[1], [("Content-Type", b"text/html")])

    def test_json_holds_what_programs_do(self):
        value = {"g": Greet("a"), "d": datetime.date(2024, 5, 1), "n": decimal.Decimal("1.10"), "s": {1}}
        self.assertEqual(_json.dumps(value), '{"g": {"name": "a"}, "d": "2024-05-01", "n": "1.10", "s": [1]}')
        for bad in (float("nan"), b"a", object()):
            with self.assertRaises((TypeError, ValueError)):
                _json.dumps(bad)


if __name__ == "__main__":
    unittest.main()
