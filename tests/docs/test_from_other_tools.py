"""The page for users of other tools names options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import low_latency_endpoint
from low_latency_endpoint.settings import settings_json_schema
from low_latency_endpoint.settings.schema import merged

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from-other-tools.md"
ROWS = re.findall(r"^\| (.+?) \| (.*) \|$", PAGE.read_text("utf-8"), re.M)
#: The options on the right; what begins with the program's name is a command, tried elsewhere.
NAMED = sorted(
    {
        name
        for _, here in ROWS
        for name in re.findall(r"`([^`]+)`", here)
        if not name.startswith("low-latency ")
    }
)
SCHEMA = settings_json_schema()


def below(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema, and what its references, choices, lists and mappings lead to."""
    schema = merged(schema, SCHEMA["$defs"])
    yield schema
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            parts.append(schema[key])
    for part in (*parts, *schema.get("patternProperties", {}).values()):
        yield from below(part)


def settings_named(schema: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The settings of a name in a group."""
    groups = [group.get("properties", {}) for group in below(schema)]
    return [group[name] for group in groups if name in group]


def exists(path: str, at: dict[str, Any]) -> bool:
    """Whether a dotted path leads to a setting from a place of the file."""
    found = [at]
    for name in path.split("."):
        found = [setting for group in found for setting in settings_named(group, name)]
    return bool(found)


def known(name: str) -> bool:
    """A class of the library, or a setting of an endpoint or of the whole file."""
    if name[0].isupper():
        return name in low_latency_endpoint.__all__ or name == "RuntimeClient"
    return any(exists(path, SCHEMA) for path in (name, f"endpoints.{name}"))


def test_there_are_rows_of_each_tool() -> None:
    assert len(ROWS) > 70
    assert len(NAMED) > 60
    assert all(here.strip() for old, here in ROWS if not old.startswith("**"))


@pytest.mark.parametrize("name", NAMED)
def test_each_option_exists(name: str) -> None:
    assert known(name.partition(", ")[0])


@pytest.mark.parametrize(
    "name", ["latency.p98", "containers.image.s3", "scaling.no_such_option", "Modell", "nothing"]
)
def test_an_option_that_does_not_exist_would_be_seen(name: str) -> None:
    assert not known(name)
