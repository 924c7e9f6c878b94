"""JSON Schema from annotations, and JSON into values of them. Run with `python3 -m unittest`."""

import datetime
import decimal
import enum
import typing
import unittest
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

from blockbase import _types
from blockbase._types import Mismatch, Unsupported, convert, schema


@dataclass
class Greet:
    name: str
    times: int = 1


@dataclass
class Line:
    """A line of an order.

    More of it.
    """

    product: uuid.UUID
    amount: Annotated[int, {"minimum": 1}, "How many."] = 1


@dataclass
class Order:
    lines: list[Line]
    note: Optional[str] = None
    kind: Literal["new", "used"] = "new"
    labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        if self.note == "":
            raise ValueError("a note says something")


@dataclass
class Tree:
    name: str
    children: typing.List["Tree"] = field(default_factory=list)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Filter(TypedDict, total=False):
    colour: Colour
    prices: tuple[float, float]


class Schemas(unittest.TestCase):
    def test_plain_types(self):
        for annotation, derived in [
            (str, {"type": "string"}),
            (int, {"type": "integer"}),
            (float, {"type": "number"}),
            (bool, {"type": "boolean"}),
            (None, {"type": "null"}),
            (Any, {}),
            (Optional[str], {"type": ["string", "null"]}),
            (int | None, {"type": ["integer", "null"]}),
            (Union[str, list[int]], {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}),
            (list, {"type": "array"}),
            (typing.List[str], {"type": "array", "items": {"type": "string"}}),
            (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
            (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
            (dict, {"type": "object"}),
            (dict[str, Any], {"type": "object"}),
            (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Colour, {"type": "string", "enum": ["red", "blue"]}),
            (datetime.datetime, {"type": "string", "format": "date-time"}),
            (typing.NewType("Name", str), {"type": "string"}),
        ]:
            with self.subTest(annotation=annotation):
                self.assertEqual(schema(annotation), derived)

    def test_a_dataclass_is_a_closed_object_with_its_defaults(self):
        self.assertEqual(
            schema(Greet),
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}},
                "additionalProperties": False,
                "required": ["name"],
            },
        )

    def test_what_is_nested_is_part_of_the_schema(self):
        derived = schema(Order)
        self.assertEqual(derived["required"], ["lines"])
        self.assertEqual(derived["properties"]["note"], {"type": ["string", "null"], "default": None})
        self.assertEqual(derived["properties"]["labels"]["default"], {})
        line = derived["properties"]["lines"]["items"]
        self.assertEqual(line["description"], "A line of an order.")
        self.assertEqual(
            line["properties"]["amount"], {"type": "integer", "minimum": 1, "description": "How many.", "default": 1}
        )

    def test_a_typed_dict_is_an_object(self):
        derived = schema(Filter)
        self.assertNotIn("required", derived)
        self.assertEqual(derived["properties"]["prices"]["maxItems"], 2)

    def test_a_type_that_contains_itself_is_a_definition(self):
        derived = schema(Tree)
        self.assertEqual(derived["type"], "object")
        self.assertEqual(derived["properties"]["children"]["items"], {"$ref": "#/$defs/Tree"})
        self.assertEqual(derived["$defs"]["Tree"]["properties"]["children"]["items"], {"$ref": "#/$defs/Tree"})

    def test_what_has_no_schema_is_named(self):
        @dataclass
        class Odd:
            lock: complex

        with self.assertRaisesRegex(Unsupported, "Odd.lock"):
            schema(Odd)
        with self.assertRaisesRegex(Unsupported, "keys"):
            schema(dict[int, str])


class Values(unittest.TestCase):
    def test_objects_become_dataclasses_all_the_way_down(self):
        product = "01a1fd35-a2b2-7324-8e3c-28e87a2e40f9"
        order = convert(Order, {"lines": [{"product": product, "amount": 2.0}], "kind": "used"})
        self.assertEqual(order, Order([Line(uuid.UUID(product), 2)], None, "used", {}))
        self.assertIsInstance(order.lines[0].amount, int)
        self.assertEqual(convert(Tree, {"name": "a", "children": [{"name": "b"}]}), Tree("a", [Tree("b")]))

    def test_texts_become_what_they_stand_for(self):
        noon = convert(datetime.datetime, "2024-05-01T12:00:00.5Z".replace(".5", ".500"))
        self.assertEqual(noon.tzinfo, datetime.timezone.utc)
        self.assertEqual(convert(datetime.date, "2024-05-01"), datetime.date(2024, 5, 1))
        self.assertEqual(convert(decimal.Decimal, "1.10"), decimal.Decimal("1.10"))
        self.assertEqual(convert(Filter, {"colour": "red", "prices": [1, 2]}), {"colour": Colour.RED, "prices": (1.0, 2.0)})
        self.assertEqual(convert(set[int], [1, 2]), {1, 2})

    def test_a_mismatch_says_where(self):
        for annotation, value, message in [
            (Greet, {"name": 1}, "/name: text"),
            (Greet, {}, "/: `name` is required"),
            (Greet, {"name": "a", "colour": 1}, "/: `colour`"),
            (Greet, {"name": "a", "times": True}, "/times: an integer"),
            (Greet, [], "/: an object"),
            (Order, {"lines": [{"product": "x"}]}, "/lines/0/product: 'x' is not a valid UUID"),
            (Order, {"lines": [], "note": ""}, "/: a note says something"),
            (Order, {"lines": [], "note": 1}, "/note: text"),
            (Literal[1], True, "one of 1"),
            (Colour, "green", "'red', 'blue'"),
            (tuple[int, int], [1], "2 items"),
        ]:
            with self.subTest(value=value), self.assertRaisesRegex(Mismatch, message):
                convert(annotation, value)

    def test_either_of_several(self):
        self.assertIsNone(convert(Optional[int], None))
        self.assertEqual(convert(Union[int, str], "a"), "a")
        with self.assertRaises(Mismatch):
            convert(Union[int, str], [])


if __name__ == "__main__":
    unittest.main()
