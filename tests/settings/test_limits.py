"""Each setting that has a limit keeps it, and what lies outside is told with the setting's line.

The settings, their limits and the values are taken from the declarations.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.errors import LowLatencyEndpointError, SettingsError
from low_latency_endpoint.facts.limit_kinds import Limit, Range
from low_latency_endpoint.options.compound_kinds import GroupKind, ListKind, MappingKind
from low_latency_endpoint.options.kind import DurationKind, Kind
from low_latency_endpoint.report.visible import visible
from low_latency_endpoint.settings import Settings, explain_variants, parse_settings
from tests.limit_edges import inside, outside

SHIPPED = (Path(__file__).resolve().parents[2] / "endpoint.yaml").read_text("utf-8")
KEY = "<key>"  # in a path: the key itself has the limit
Limits = Iterator[tuple[tuple[str | int, ...], Limit, bool]]


def limits_of(kind: Kind, path: tuple[str | int, ...] = ()) -> Limits:
    """Path, limit and whether the setting is a duration, of all settings below."""
    limit = getattr(kind, "limit", None)
    if limit is not None:
        yield path, limit, isinstance(kind, DurationKind)
    if isinstance(kind, GroupKind):
        for key, below in kind.kinds.items():
            yield from limits_of(below, (*path, key))
    elif isinstance(kind, ListKind):
        yield from limits_of(kind.item, (*path, 0))
    elif isinstance(kind, MappingKind):
        yield from limits_of(kind.key, (*path, KEY))
        yield from limits_of(kind.value, (*path, "a"))
    else:
        for part in kind.parts:
            yield from limits_of(part, path)


FOUND = {path: (limit, duration) for path, limit, duration in limits_of(GroupKind(Settings))}


def written(limit: Limit, value: Any, *, duration: bool) -> Any:
    """As a settings file has it."""
    if not duration:
        return value
    milliseconds = isinstance(limit, Range) and limit.unit == "milliseconds"
    return f"{value:.6f}{'ms' if milliseconds else 's'}"


def told(path: tuple[str | int, ...], value: Any) -> dict[str, str]:
    """What is said of the value: what is allowed, by the code."""
    data: Any = value
    for part in reversed(path[1:]):
        data = (
            [data] if part == 0 else {data if part == KEY else part: "a" if part == KEY else data}
        )
    text = f"# the only setting\n{path[0]}: {json.dumps(data)}"
    where = visible(".".join(map(str, path)).replace(".0", "[0]").replace(KEY, str(value)))
    try:
        parse_settings(text)
    except SettingsError as error:
        found = [(line, each) for line, each in error.problems if each.where == where]
        assert {line for line, _ in found} <= {2}
        return {each.code: each.allowed for _, each in found}
    return {}


@pytest.mark.parametrize("path", FOUND, ids=lambda path: ".".join(map(str, path)))
def test_what_lies_outside_is_told_and_what_lies_inside_is_not(path: tuple[str | int, ...]) -> None:
    limit, duration = FOUND[path]
    of_another_kind = ["7", True] if isinstance(limit, Range) and not duration else []
    for value in (*outside(limit), *of_another_kind):
        if duration and (isinstance(value, str) or value < 0):
            continue  # no duration at all: test_mistakes.py
        if path[-1] == KEY and len(value) > 1000:
            continue  # no key of YAML's
        found = told(path, written(limit, value, duration=duration))
        allowed = found[limit.rule.code]
        if duration:  # a choice is told with units
            allowed = allowed.replace("s,", ",")
        assert limit.allowed.partition(" or ")[0] in allowed, value
    for value in inside(limit):
        assert limit.rule.code not in told(path, written(limit, value, duration=duration)), value


NUMBERS = {
    path: (limit, duration)
    for path, (limit, duration) in FOUND.items()
    if isinstance(limit, Range) and path[0] == "endpoints"
}


def ends(limit: Range) -> list[float]:
    """The least and the greatest number that the limit takes; floats end at 1.8e308."""
    greatest = sys.float_info.max
    least = -greatest if limit.minimum is None else limit.minimum
    most = greatest if limit.maximum is None else limit.maximum
    return [int(end) if limit.whole else end for end in (least, most)]


@pytest.mark.parametrize("path", NUMBERS, ids=lambda path: ".".join(map(str, path)))
def test_a_plan_calculates_with_the_ends_of_each_limit(path: tuple[str | int, ...]) -> None:
    limit, duration = NUMBERS[path]
    *outer, name = path[2:]
    for end in ends(limit):
        content = yaml.safe_load(SHIPPED)
        group: Any = content["endpoints"]["sentiment"]
        for part, after in pairwise([*outer, name]):
            if isinstance(group, dict) and not isinstance(group.get(part), (dict, list)):
                group[part] = [{}] if after == 0 else {}
            group = group[part]
        group[name] = written(limit, end, duration=duration)
        with contextlib.suppress(LowLatencyEndpointError):  # of what else the option needs
            explained = explain_variants(parse_settings(yaml.safe_dump(content)))
            told = "\n".join(each.to_markdown() for each in explained.values())
            assert not re.search(r"\b(inf|nan)\b", told)
