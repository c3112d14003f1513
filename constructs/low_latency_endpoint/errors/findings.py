"""What is wrong with one of several values, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import ConfigurationError, ErrorRule, shortened

LONGEST_VALUE = 200  # characters of one value of a file

Place = tuple[str | int, ...]
Finding = tuple[Place, ConfigurationError]


def finding(
    rule: ErrorRule, *place: str | int, got: object, allowed: object, what: str = "", fix: str = ""
) -> Finding:
    """One breach of a rule at a place."""
    return place, rule.error(got=shown(got), allowed=allowed, what=what, fix=fix)


def breaches(place: Place, check: Callable[..., object], *values: Any) -> Iterator[Finding]:
    """What a check raises over values, at a place."""
    try:
        check(*values)
    except ConfigurationError as error:
        yield place, error


def shown(value: object) -> str:
    """The value as a reader of YAML knows it, shortened."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "nothing"
    elif isinstance(value, dict):
        text = "a mapping with " + ", ".join(map(str, value)) if value else "an empty mapping"
    elif isinstance(value, (list, tuple)):
        text = f"a list of {len(value)}"
    else:
        text = repr(value)
    return shortened(text, LONGEST_VALUE)


def path_of(place: Place) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def located(error: ConfigurationError, where: str) -> ConfigurationError:
    """The same error, about what is elsewhere."""
    return type(error)(**{**vars(error), "where": where})
