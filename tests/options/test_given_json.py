"""JSON of others: what is read can be used, and what is not is told in words."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.errors.given_files import MOST_MARKS, NUMBER, json_value

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(JSON)
def test_json_that_machines_can_use_is_read_as_it_is(value: Any) -> None:
    text = json.dumps(value)
    if any(word in text for word in ("NaN", "Infinity", "\\ud")):
        return  # no number, and perhaps half of a character
    assert json_value(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no whole JSON: Expecting value"),
        ("[" * 100_000, "more than 100 levels"),
        ("[" * 200 + "]" * 200, "more than 100 levels"),
        ("NaN", "NaN is no number in JSON"),
        ("-Infinity", "-Infinity is no number"),
        ("1e999", "a number beyond"),
        ("9" * 400, "a number beyond"),
        ("9" * 5000, "digits"),
        ('"\\ud800"', "half of a character"),
        ('{"\\ud800": 1}', "half of a character"),
        ('{"a": 1, "a": 2}', 'the name "a" stands twice'),
        (b"\xff\xfa", "no whole JSON: .*decode"),
        pytest.param("[" + "{}," * 2_000_001 + "{}]", "more than 4,000,000 brackets", id="objects"),
        pytest.param(
            b"[" + b"1," * 4_000_001 + b"1]", "more than 4,000,000 brackets", id="numbers"
        ),
    ],
)
def test_what_no_program_can_use_is_told(text: str | bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        json_value(text)


@pytest.mark.parametrize(
    "value", ["1", "1.5", '""', '"é"', "{}", "[]", '{"a":1}', '{"a":{}}', "[[[]]]", '[1,"a"]']
)
def test_memory_follows_what_is_counted(value: str) -> None:
    """So that no file of few bytes takes a laptop's memory."""
    text = "[" + ",".join([value] * 20_000) + "]"
    marks = sum(map(text.count, "{[,"))
    tracemalloc.start()
    json_value(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most / marks * MOST_MARKS < 1e9


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        (
            {"a": {"b": [1, "x"]}},
            {"a": {"b?": [NUMBER]}},
            'a.b[1] is "x", where a number is needed',
        ),
        ({"a": True}, {"a": NUMBER}, "a is true, where a number is needed"),
        ({}, {"a": str}, "the object has no a"),
        ({"a": []}, {"a": ({}, None)}, "a is a list, where an object or null is needed"),
        ([], {}, "the whole is a list, where an object is needed"),
        ({"a": {"k": None}}, {"a": {str: int}}, "a.k is null, where a whole number is needed"),
        ({"a": {"b": 1}}, {"a?": ({"b?": str}, object)}, "a.b is 1, where text is needed"),
    ],
)
def test_another_kind_is_told_with_its_place(value: Any, kind: Any, says: str) -> None:
    with pytest.raises(ValueError, match=r"needed|no a") as caught:
        json_value(json.dumps(value), kind)
    assert str(caught.value) == says


def test_what_is_not_declared_may_be_anything() -> None:
    assert json_value('{"a": 1, "more": [null]}', {"a": int, "b?": str})["more"] == [None]
    assert math.isclose(json_value("1e308", NUMBER), 1e308)
