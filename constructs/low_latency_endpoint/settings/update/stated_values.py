"""Where two settings files differ, and their values for people."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ...errors.findings import Place, path_of
from ...facts.prices import Price
from ...options.option import Options, changed, options_of
from ...plan.secrets import looks_secret
from ..fields import duration_text

HIDDEN = "(looks like a secret)"


class Stated(NamedTuple):
    """A setting that two files state differently; ``None`` where one of them does not."""

    place: Place
    before: Any
    after: Any

    @property
    def path(self) -> str:
        """The setting as the file has it."""
        return path_of(self.place)

    @property
    def texts(self) -> tuple[str, str]:
        """Both values for people; empty where there is none."""
        return value_text(self.before, self.place), value_text(self.after, self.place)


def differences(before: Any, after: Any, place: Place = ()) -> Iterator[Stated]:
    """Each setting that differs, as deep as both sides have the same groups."""
    if before == after or _same_files(before, after):
        return
    if type(before) is type(after) and (names := _names(before)):
        for name in names:
            yield from differences(getattr(before, name), getattr(after, name), (*place, name))
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from differences(before.get(name), after.get(name), (*place, name))
    elif _groups(before) and _groups(after):
        for index, (was, now) in enumerate(zip_longest(before, after)):
            yield from differences(was, now, (*place, index))
    else:
        yield Stated(place, before, after)


def _groups(value: Any) -> bool:
    return isinstance(value, tuple) and any(map(_names, value))


def _names(value: Any) -> list[str]:
    """The settings of a group; none of what is no group."""
    if isinstance(value, Options):
        return [each.name for each in options_of(type(value)) if each.option is not None]
    return []


def _same_files(before: Any, after: Any) -> bool:
    """Whether two assets, of files that stand in different folders, hold the same."""
    if not (isinstance(before, Path) and isinstance(after, Path)):
        return False
    if before.is_file() and after.is_file():
        return filecmp.cmp(before, after, shallow=False)
    if not (before.is_dir() and after.is_dir()):
        return False
    names = [
        sorted(each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
        for folder in (before, after)
    ]
    return names[0] == names[1] and not any(
        filecmp.cmpfiles(before, after, names[0], shallow=False)[1:]
    )


def with_value(model: Any, place: Place, value: Any) -> Any:
    """A copy in which the setting at a place has another value."""
    if not place:
        return value
    first, *rest = place
    if isinstance(model, Options):
        [of] = [each for each in options_of(type(model)) if each.name == first]
        below = with_value(getattr(model, of.name), tuple(rest), value)
        return changed(model, **{of.name: of.default if below is None else below})
    if isinstance(model, Mapping):
        if value is None and not rest:
            return {name: each for name, each in model.items() if name != first}
        return {**model, first: with_value(model.get(first), tuple(rest), value)}
    items = list(model)
    index = int(first)
    below = items[index] if index < len(items) else None
    item = with_value(below, tuple(rest), value)
    items[index : index + 1] = [] if item is None else [item]
    return tuple(items)


def assets_of(value: Any) -> Iterator[Path]:
    """The files and folders that settings name."""
    if isinstance(value, Path):
        yield value
    elif names := _names(value):
        for name in names:
            yield from assets_of(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from assets_of(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from assets_of(each)


def value_text(value: Any, place: Place = ()) -> str:
    """A value as a settings file writes it, on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Price):
        return f"{value.usd:.10g}"
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, float):
        return f"{value:.10g}"
    if hasattr(value, "in_file"):
        value = value.in_file
    if isinstance(value, Options):
        stated = {each.name: getattr(value, each.name) for each in options_of(type(value))}
        defaults = {each.name: each.default for each in options_of(type(value))}
        value = {name: each for name, each in stated.items() if each != defaults[name]}
    if isinstance(value, Mapping):
        inner = (f"{key}: {value_text(each, (*place, key))}" for key, each in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(each, place) for each in value) + "]"
    text = str(value)
    named = len(place) > 1 and place[-2] in ("environment", "build_args")
    return HIDDEN if named and looks_secret(str(place[-1]), text) else text


def both_texts(was: Any, now: Any) -> str:
    """A value before and after; of mappings only what differs."""
    if isinstance(was, Mapping) and isinstance(now, Mapping) and was and now:
        return ", ".join(
            f"{name} {both_texts(was.get(name), now.get(name))}"
            for name in dict.fromkeys([*was, *now])
            if was.get(name) != now.get(name)
        )
    before, after = (
        "none" if value in (None, {}, ()) else value_text(value) for value in (was, now)
    )
    return f"{before} -> {after}"
