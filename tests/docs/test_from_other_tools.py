"""The page for users of other tools names options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.make_settings_tables import merged

import low_latency_endpoint
from low_latency_endpoint.settings import settings_json_schema

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


def options(schema: dict[str, Any], path: str = "", seen: tuple[str, ...] = ()) -> Iterator[str]:
    """The dotted paths of all settings of a schema."""
    for group in below(schema):
        for name, each in group.get("properties", {}).items():
            if name not in seen:
                yield f"{path}{name}"
                yield from options(each, f"{path}{name}.", (*seen, name))


ALL = sorted(set(options(SCHEMA)))
#: Options that share no more than a word with a field that has none here.
OF_ONE_WORD = {"accept", "accept_eula", "accept_license", "allow_cidrs", "content_type"}
ABSENT = [old for old, here in ROWS if here.startswith("None")]


def of_the_same_words(old: str, paths: list[str]) -> list[str]:
    """Options that begin with the word of a field which the page says has none, and are in no row."""
    words = {name.partition("_")[0] for name in re.findall(r"`([a-z_]+_[a-z_]+)`", old)}
    said = {path.rpartition(".")[2] for _, here in ROWS for path in re.findall(r"`([^`]+)`", here)}
    last = {path.rpartition(".")[2]: path for path in paths}
    found = {name: last[name] for name in last.keys() - said - OF_ONE_WORD}
    return sorted(found[name] for name in found if name.partition("_")[0] in words)


@pytest.mark.parametrize("old", ABSENT)
def test_what_is_said_to_have_no_option_has_none(old: str) -> None:
    assert of_the_same_words(old, ALL) == [], (
        f"docs/how-to/from-other-tools.md says None for {old}: name the option in that row if it "
        "states the same, else in the row of what it states"
    )


def test_an_option_that_came_since_would_be_seen() -> None:
    new = "endpoints.deployment.rolling.rollback_percent"
    assert of_the_same_words("`rollback_maximum_batch_size`", [*ALL, new]) == [new]
