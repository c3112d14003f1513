"""Kinds of values: what is read from a file has no mistake or is wrong, and nothing else happens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar, get_origin

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.limit_kinds import Choice
from low_latency_endpoint.facts.limits import limits
from low_latency_endpoint.options.annotations import alternatives
from low_latency_endpoint.options.compound_kinds import (
    ConvertedKind,
    GroupKind,
    MappingKind,
    all_kinds,
    in_file,
    kind_of,
    kind_of_argument,
)
from low_latency_endpoint.options.kind import WRONG, FileReading
from low_latency_endpoint.options.option import Declared, Options, options_of
from low_latency_endpoint.options.yaml_source import parse_yaml
from low_latency_endpoint.settings import Settings
from tests.option_groups import groups

Value = TypeVar("Value")


class Named(Generic[Value]):
    """A class with a parameter, as a decision of the plan has."""


OPTIONS = [
    option
    for group in sorted(groups(), key=lambda group: group.__name__)
    for option in options_of(group)
]
STATED = [option for option in OPTIONS if option.option is not None]


def name(option: Declared) -> str:
    return f"{option.group.__name__}.{option.name}"


NUMBERS = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.sampled_from(
    ("200ms", "5 m", f"{'9' * 16} h", "9" * 16 + "h", "planned", "random", "", "yes", "a/b", "\0")
)
PLAIN = st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=8)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(option=st.sampled_from(STATED), value=VALUES)
def test_any_value_of_a_file_is_read_or_refused(option: Declared, value: Any) -> None:
    """A value without a finding is one; what is wrong has a finding at its own place."""
    reading = FileReading()
    result = kind_of(option).read(value, ("here",), reading)
    assert result is not WRONG or reading.findings
    assert {place[0] for place, _ in reading.findings} <= {"here"}
    assert all(error.code and error.allowed for _, error in reading.findings)


@pytest.mark.parametrize("option", OPTIONS, ids=name)
def test_the_kind_of_every_option_can_be_looked_through(option: Declared) -> None:
    """Also of those that only Python can state, whose classes are not loaded."""
    for kind in all_kinds(kind_of(option)):
        assert not isinstance(kind, ConvertedKind) or hasattr(kind.of, "_of_file")


@pytest.mark.parametrize("option", STATED, ids=name)
def test_the_example_of_an_option_is_of_its_kind(option: Declared) -> None:
    if option.example is None or "..." in str(option.example):
        return
    source = parse_yaml(yaml.safe_dump({"example": option.example}))
    reading = FileReading()
    kind_of(option).read(source.values["example"], (), reading)
    assert reading.findings == []


DURATIONS = [option for option in STATED if option.lasting and option.option]
LENGTHS = st.floats(0, 10**9).map(lambda seconds: f"{seconds:.3f}s")


@given(option=st.sampled_from(DURATIONS), text=LENGTHS)
def test_a_duration_that_a_fix_writes_is_allowed(option: Declared, text: str) -> None:
    """A number alone is no duration in a file."""
    reading = FileReading()
    kind = kind_of(option)
    value = {"p99": text} if isinstance(in_file(kind), MappingKind) else text
    kind.read(value, (), reading)
    for _, error in reading.findings:
        assert not re.match(r"Give [\d.]", error.fix), error
        for duration in re.findall(r"[\d.]*\d(?:ms|s|m|h)\b", error.fix):
            again = FileReading()
            kind.read({"p99": duration} if value != text else duration, (), again)
            assert again.findings == [], error


CHOICES = [limit for limit in limits().values() if isinstance(limit, Choice)]


@pytest.mark.parametrize("limit", CHOICES, ids=lambda limit: limit.rule.code)
def test_true_and_false_are_no_numbers_of_a_choice(limit: Choice) -> None:
    switches = [value for value in limit.values if isinstance(value, bool)]
    for value in (True, False):
        assert limit.holds(value) == (value in switches)


def mappings() -> Iterator[tuple[type[Options], str]]:
    """The options that are mappings, of groups that are made of them alone."""
    for option in STATED:
        needed = [field.name for field in fields(option.group) if field.init]
        is_mapping = Mapping in map(get_origin, alternatives(option.kind))
        required = [own.name for own in options_of(option.group) if own.is_required]
        if is_mapping and option.example and not required and option.name in needed:
            yield option.group, option.name


@pytest.mark.parametrize(("group", "option"), list(mappings()))
def test_a_mapping_is_not_the_callers_any_more(group: type[Options], option: str) -> None:
    """What has been checked stays as it was checked."""
    [example] = [own.example for own in options_of(group) if own.name == option]
    given = dict(example)
    try:
        options = group(**{option: given})
    except ConfigurationError:  # a file's form, or a rule that wants more
        return
    before = dict(getattr(options, option))
    given["changed"] = "later"
    assert getattr(options, option) == before


def test_a_generic_class_is_a_class() -> None:
    kind = kind_of_argument("Named[int]", __name__)
    assert kind.accepts(Named())
    assert not kind.accepts(5)


def test_an_iterator_has_no_kind_because_a_check_would_use_it_up() -> None:
    with pytest.raises(TypeError, match="Iterator is no collection"):
        kind_of_argument("Iterator[int]", __name__)


def test_an_unsound_group_says_what_is_wrong_with_it() -> None:
    reading = FileReading()
    settings = GroupKind(Settings).read({"region": 5}, (), reading)
    assert repr(settings) == "<Settings, wrong: region, client_zones, endpoints>"
