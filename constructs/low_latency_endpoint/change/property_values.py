"""Which values of a resource's properties change, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..plan.secrets import looks_secret
from .resource_changes import ResourceChange
from .stack_update import StackUpdate

HIDDEN = "(looks like a secret)"
_MOST_SHOWN = 4  # values of a resource
_LONGEST = 60  # characters of a value


def changed_values(update: StackUpdate, change: ResourceChange) -> str:
    """The values of a resource that change, such as ``Threshold 160 -> 200``; the first of many."""
    old = update.former(change).get("Properties", {})
    new = update.later(change).get("Properties", {})
    if not old or not new:
        return ""
    texts: list[str] = []
    for name in sorted(change.properties):
        # Descriptions say in words what other values say; tags are told once for all resources.
        if name.endswith("Description") or name == "Tags":
            continue
        texts += _changes(name, old.get(name), new.get(name))
    texts = list(dict.fromkeys(texts))
    more = len(texts) - _MOST_SHOWN
    return ", ".join(texts[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _changes(name: str, was: Any, now: Any) -> Iterator[str]:
    """The changed values below a property, with the nearest name above each."""
    if was == now:
        return
    if _is_group(was) and _is_group(now):
        for key in dict.fromkeys([*was, *now]):
            yield from _changes(key, was.get(key), now.get(key))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for old, new in zip(was, now, strict=True):
            yield from _changes(name, old, new)
    elif _is_plain(was) and _is_plain(now):
        yield f"{name} {_text(name, was)} -> {_text(name, now)}"
    else:
        yield name


def _is_group(value: Any) -> bool:
    """Whether a value has properties of its own: no function of CloudFormation stands there."""
    if not isinstance(value, Mapping):
        return False
    return not any(key == "Ref" or key.startswith("Fn::") for key in value)


def _is_plain(value: Any) -> bool:
    """Whether a value has a text: it is no list, and no group or function of CloudFormation."""
    return not isinstance(value, list | Mapping)


def _text(name: str, value: Any) -> str:
    """A value on one line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if looks_secret(name, text):
        return HIDDEN
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
