"""Each argument that has a limit keeps it, on both sides, and what the plan needs is no token.

Which has which: an option's declaration says so, and for other arguments a table. The values are
made from the limit's declaration, the calls are those of test_argument_kinds.py.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

import low_latency_endpoint
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.limit_kinds import Choice, Limit, Pattern, Range
from low_latency_endpoint.options.option import Declared, Options, options_of
from tests.limit_edges import inside, outside

from .test_argument_kinds import CLASSES, TRIED, Things, refusal, things

__all__ = ["things"]  # the fixture

#: Arguments by the code of their limit: ``[]`` each of a list, ``{}`` a mapping's values, ``{k}``
#: its keys.
TABLE: dict[str, list[str]] = yaml.safe_load(
    Path(__file__).with_name("limits_of_arguments.yaml").read_text("utf-8")
)
DECLARED: dict[str, Limit] = {}
PLANNED: list[str] = []  # what the plan calculates with
#: Lists whose number of entries has a limit: the argument, the limit and an entry.
COUNTED: list[tuple[str, Declared]] = []
for _group in CLASSES.values():
    for _each in options_of(_group) if issubclass(_group, Options) else ():
        if _each.option is not None and _each.option.entries is not None:
            COUNTED.append((_group.__name__, _each))
        if _each.option is not None and _each.option.limit is not None:
            _kinds = str(_each.kind)
            _form = "{}" if "Mapping[" in _kinds else "[]" if "Sequence[" in _kinds else ""
            _argument = f"{_group.__name__} {_each.name}{_form}"
            TABLE.setdefault(_each.option.limit.rule.code, []).append(_argument)
            DECLARED[_argument] = _each.option.limit
            if _each.option.planned:
                PLANNED.append(_argument)
ARGUMENTS = {(name, parameter.name): parameter for name, _, parameter in TRIED}
MILLISECONDS = {"minutes": 60_000, "milliseconds": 1, "seconds": 1000, "days": 86_400_000}


def declared() -> dict[str, Limit]:
    """All limits of what a construct can reach, by their codes."""
    found: dict[str, Limit] = {}
    for module in pkgutil.walk_packages(low_latency_endpoint.__path__, "low_latency_endpoint."):
        # Locust, in some of load_test, would patch the standard library of this process.
        if module.name.split(".")[1] not in ("cli", "load_test"):
            for each in vars(importlib.import_module(module.name)).values():
                if isinstance(each, (Range, Pattern, Choice)):
                    found[each.rule.code] = each
    return found


LIMITS = declared()


def passed(argument: str, limit: Limit, value: Any) -> dict[str, Any]:
    """The argument with a value: of time a duration, of several a list or a mapping."""
    name, parameter, form = re.fullmatch(r"(\S+) (\w+)(\[\]|\{k?\})?", argument).groups()
    assert (name, parameter) in ARGUMENTS, (
        f"{name} takes no {parameter}: add it to the method's signature and Args:, and hand it on; "
        "or mend the row of limits_of_arguments.yaml"
    )
    unit = getattr(limit, "unit", "")
    if unit in MILLISECONDS or "AnyDuration" in ARGUMENTS[name, parameter].annotation:
        value = timedelta(milliseconds=value * MILLISECONDS.get(unit, 1000))
    if form == "[]" or ARGUMENTS[name, parameter].kind is inspect.Parameter.VAR_POSITIONAL:
        value = [value]
    elif form:
        value = {value: "v"} if form == "{k}" else {"p99": value}
    return {parameter: value}


@pytest.mark.parametrize(
    ("code", "argument"), [(code, argument) for code in TABLE for argument in TABLE[code]]
)
def test_what_lies_outside_is_refused_and_what_lies_inside_is_not(
    things: Things, code: str, argument: str
) -> None:
    limit, name = DECLARED.get(argument) or LIMITS[code], argument.partition(" ")[0]
    for value in outside(limit):
        error = refusal(things, name, passed(argument, limit, value))
        assert isinstance(error, ConfigurationError), (value, error)
        assert error.code == code, (value, error)
        assert error.where, (value, error)
        assert limit.allowed.split(" or ")[0] in error.allowed
        assert error.fix
    for value in inside(limit):
        error = refusal(things, name, passed(argument, limit, value))
        assert getattr(error, "code", "") != code, (value, error)


@pytest.mark.parametrize("argument", PLANNED)
def test_what_the_plan_calculates_with_is_known(things: Things, argument: str) -> None:
    name, parameter = argument.split(" ")
    token = cdk.Token.as_number({"Ref": "Count"})
    if "AnyDuration" in str(ARGUMENTS[name, parameter].annotation):
        token = cdk.Duration.minutes(token)
    error = refusal(things, name, {parameter: token})
    assert (error.code, error.got) == ("LLE825", "a token")
    assert "known at synth" in error.allowed
    assert error.where == f"{name}, {parameter}"


@pytest.mark.parametrize(("name", "each"), COUNTED)
def test_so_many_entries_are_refused(things: Things, name: str, each: Declared) -> None:
    limit = each.option.entries
    for count in filter(lambda count: count or each.default, outside(limit)[:-1]):
        error = refusal(things, name, {each.name: each.option.example * count})
        assert getattr(error, "code", "") == limit.rule.code
    for count in inside(limit):
        assert refusal(things, name, {each.name: each.option.example * count}) is None


def test_every_argument_that_has_a_limit_is_in_the_table(things: Things) -> None:
    """As far as the least number, no time and an empty text show it."""
    missing = {
        (error.code, f"{name} {parameter.name}")
        for name, _, parameter in TRIED
        for value in (-1.7e308, timedelta(microseconds=7), "")
        if isinstance(error := refusal(things, name, {parameter.name: value}), ConfigurationError)
        and error.code
        in LIMITS.keys() - {"LLE103", "LLE612"}  # how many there are; of several arguments
        and f"{name} {parameter.name}" not in TABLE.get(error.code, ())
    }
    assert not missing
