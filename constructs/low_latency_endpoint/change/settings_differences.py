"""Where two settings files differ, each setting with both values in words.

Start with :func:`settings_differences`.
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ..errors.findings import Place, path_of
from ..errors.frozen import dataclass
from ..facts.durations import duration_text
from ..facts.prices import Price
from ..options.option import Options, options_of
from ..plan.secrets import looks_secret
from ..settings.stack import Settings

HIDDEN = "(looks like a secret)"
_MOST_PRICES = 5  # more of them differ by a file of prices


@dataclass(frozen=True)
class SettingDifference:
    """One setting that two files state differently."""

    endpoint: str  # the endpoint's key; empty for what all share
    path: str  # the setting, below the endpoint where it is one's; empty for the endpoint itself
    before: str  # the values as a file has them; empty where it states none
    after: str

    @property
    def name(self) -> str:
        """The last part of the setting."""
        return self.path.rpartition(".")[2]

    def told_from(self, folders: tuple[Path | None, Path | None]) -> SettingDifference:
        """The difference with files named from the folders of the revisions."""
        before, after = self.before, self.after
        for folder in folders:
            before = before.replace(f"{folder}/", "")
            after = after.replace(f"{folder}/", "")
        if before == after != self.after:
            after = f"{after} (other content)"
        return replace(self, before=before, after=after)

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON-safe data."""
        place = f"endpoints.{self.endpoint}.{self.path}".rstrip(".") if self.endpoint else self.path
        return {
            "endpoint": self.endpoint or None,
            "setting": place,
            "before": self.before or None,
            "after": self.after or None,
        }


def settings_differences(before: Settings, after: Settings) -> Iterator[SettingDifference]:
    """Every difference: what all endpoints share first, then endpoint by endpoint."""
    for name in (option.name for option in options_of(Settings) if option.name != "endpoints"):
        was, now = getattr(before, name), getattr(after, name)
        stated = list(_differences(was, now, (name,)))
        if name == "prices" and len(stated) > _MOST_PRICES:  # a whole list, read anew
            count = len(stated)
            stated = [_Stated((name,), f"{len(was)} prices", f"{len(now)}, {count} differ")]
        for one in stated:
            yield one.difference("")
    for key in dict.fromkeys([*before.endpoints, *after.endpoints]):
        old, new = before.endpoints.get(key), after.endpoints.get(key)
        if old is None or new is None:
            types = ["" if one is None else one.instance_type for one in (old, new)]
            yield SettingDifference(key, "", *types)
        else:
            for one in _differences(old, new):
                yield one.difference(key)


class _Stated(NamedTuple):
    """A setting that two files state differently; ``None`` where one of them does not."""

    place: Place
    before: Any
    after: Any

    def difference(self, key: str) -> SettingDifference:
        """The same with its values for people."""
        before, after = value_text(self.before, self.place), value_text(self.after, self.place)
        return SettingDifference(key, path_of(self.place), before, after)


def _differences(before: Any, after: Any, place: Place = ()) -> Iterator[_Stated]:
    """Each setting that differs, as deep as both sides have the same groups."""
    if before == after or _same_files(before, after):
        return
    if type(before) is type(after) and (names := _names(before)):
        for name in names:
            yield from _differences(getattr(before, name), getattr(after, name), (*place, name))
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from _differences(before.get(name), after.get(name), (*place, name))
    elif _groups(before) and _groups(after):
        for index, (was, now) in enumerate(zip_longest(before, after)):
            yield from _differences(was, now, (*place, index))
    else:
        yield _Stated(place, before, after)


def _groups(value: Any) -> bool:
    return isinstance(value, tuple) and any(map(_names, value))


def _names(value: Any) -> list[str]:
    """The settings of a group; none of what is no group."""
    if isinstance(value, Options):
        return [option.name for option in options_of(type(value)) if option.option is not None]
    return []


def _same_files(before: Any, after: Any) -> bool:
    """Whether two assets in different folders have the same content."""
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
        value = _stated_in(value)
    if isinstance(value, Mapping):
        inner = (f"{key}: {value_text(each, (*place, key))}" for key, each in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(each, place) for each in value) + "]"
    text = str(value)
    named = len(place) > 1 and place[-2] in ("environment", "build_args")
    return HIDDEN if named and looks_secret(str(place[-1]), text) else text


def _stated_in(group: Options) -> dict[str, Any]:
    """The settings of a group that are not as by default, by their names in a file."""
    stated: dict[str, Any] = {}
    for declared in options_of(type(group)):
        value = getattr(group, declared.name)
        if value != declared.default:
            key = declared.option.key if declared.option else ""
            stated[key or declared.name] = value
    return stated
