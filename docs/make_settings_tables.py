"""``docs/reference/settings.md``: tables of all settings, written from the options.

``python docs/make_settings_tables.py docs/reference/settings.md`` rewrites what stands between
the two marks and leaves the hand-written text around them alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from low_latency_endpoint.facts.limit_kinds import digits
from low_latency_endpoint.options.annotations import parts_of
from low_latency_endpoint.options.compound_kinds import GroupKind, ListKind, MappingKind
from low_latency_endpoint.options.kind import Kind
from low_latency_endpoint.options.option import Declared, Options, options_of
from low_latency_endpoint.settings.schema import settings_json_schema
from low_latency_endpoint.settings.stack import Settings

BEGIN = "<!-- Generated: make docs -->"
END = "<!-- End of what is generated -->"
_UNREACHED = 1e15  # a bound of AWS's that no reader's number comes near: it helps nobody


def settings_tables() -> str:
    """All settings as Markdown: one section and one table for each group."""
    groups = list(_groups())
    if missing := {line: None for _, kind in groups for line in missing_in(kind.group)}:
        raise ValueError("\n".join(missing))
    schema = settings_json_schema()
    definitions = schema["$defs"]
    parts = []
    told: dict[type, str] = {}
    for path, kind in groups:
        group = kind.group
        of_group = schema if group is Settings else definitions[group.__name__]
        # What two groups have in common is told with the first of them, if it is more than one.
        base = group.__mro__[1]
        first = told.setdefault(base, path) if _has_several(base) else path
        parts.append(f"## {_title(path)}\n\n{of_group['description']}\n")
        left_out = () if first == path else tuple(each.name for each in options_of(base))
        parts.append(_table(kind, of_group, definitions, path, left_out))
        if left_out:
            parts.append(
                f"Further settings: those of [`{_title(first)[1:-1]}`](#{_anchor(first)}).\n"
            )
    return "\n".join(parts)


def missing_in(group: type[Options]) -> Iterator[str]:
    """What the options of a group do not say of themselves, a sentence each."""
    for each in options_of(group):
        if each.option is not None:
            yield from _missing_of(each)


def _missing_of(each: Declared) -> Iterator[str]:
    name = f"{each.group.__name__}.{each.name}"
    if not each.text_in_file:
        yield f"{name}: write a text below the field {each.name}"
    elif not each.text_in_file.endswith("."):
        yield f"{name}: end the first paragraph of the text below the field with a period"
    if {int, float}.intersection(_plain(each.kind)) and not (each.option and each.option.limit):
        yield (
            f"{name}: give its Option a limit of facts/limits.py; where AWS names no largest, make "
            "one there: number_range(code, what, least, None)"
        )


def _plain(kind: Any) -> list[type]:
    return [part for part in parts_of(kind) if isinstance(part, type)]


def _has_several(base: type) -> bool:
    stated = options_of(base) if base not in (Options, object) else ()
    return sum(each.option is not None for each in stated) > 1


def rewrite(path: Path, generated: str) -> None:
    """Put what is generated between the marks of a file."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{generated}\n{END}{after}", encoding="utf-8")


def _groups() -> Iterator[tuple[str, GroupKind]]:
    """Every group with its path, in the order of the file, shared settings first."""
    waiting: list[tuple[str, GroupKind]] = [("", GroupKind(Settings))]
    while waiting:
        path, group = waiting.pop(0)
        if _told_at(path) != path:
            continue
        yield path, group
        waiting[:0] = [
            (f"{path}.{name}{mark}".lstrip("."), below)
            for name, kind in group.kinds.items()
            for mark, below in _groups_in(kind)
        ]


def _groups_in(kind: Kind, mark: str = "") -> list[tuple[str, GroupKind]]:
    """The groups of a kind, each once, with the mark of a list or a mapping around it."""
    if isinstance(kind, GroupKind):
        return [(mark, kind)]
    if isinstance(kind, ListKind):
        mark = "[]"
    elif isinstance(kind, MappingKind):
        mark = ".*"
    inner = [below for part in kind.parts for below in _groups_in(part, mark)]
    marks = {group.group: mark for mark, group in reversed(inner)}
    return [(mark, GroupKind(group)) for group, mark in marks.items()]


def _told_at(path: str) -> str:
    """Where a group is told: those of further variants are the endpoint's."""
    return re.sub(r"^(endpoints\.\*)\.(?:variants\.\*|shadow)\.", r"\1.", path)


def _title(path: str) -> str:
    return f"`{path.replace('.*', '.<key>')}`" if path else "The stack"


def _anchor(path: str) -> str:
    """The anchor that GitHub and MkDocs give to a heading."""
    return "".join(c for c in _title(path).lower() if c.isalnum() or c in "_-")


def _table(
    group: GroupKind,
    schema: dict[str, Any],
    definitions: dict[str, Any],
    path: str,
    left_out: tuple[str, ...],
) -> str:
    rows = ["| Setting | Takes | Meaning | Example |", "|---|---|---|---|"]
    for key, option in group.options.items():
        if option.name in left_out:
            continue
        of_option = schema["properties"][key]
        kind = group.kinds[key]
        below = [_told_at(f"{path}.{key}{mark}".lstrip(".")) for mark, _ in _groups_in(kind)]
        needed = " (required)" if key in schema.get("required", ()) else ""
        takes = _takes(merged(of_option, definitions), definitions, below)
        codes = _codes(kind)
        if option.option is not None and option.option.keys is not None:
            codes.add(option.option.keys.rule.code)
        if codes:
            links = [f"[{code}](errors.md#{code.lower()})" for code in sorted(codes)]
            takes += " · " + ", ".join(links)
        example = of_option.get("examples", [None])[0]
        shown = "" if example is None else f"`{_flow({key: example})}`"
        rows.append(f"| `{key}`{needed} | {takes} | {of_option['description']} | {shown} |")
    return "\n".join(rows) + "\n"


def merged(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema with what its ``$ref`` names."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**definitions[name], **schema} if name else schema


def _takes(schema: dict[str, Any], definitions: dict[str, Any], below: list[str]) -> str:
    """The kind of value in words."""
    if ("oneOf" in schema and "properties" not in schema) or "anyOf" in schema:
        kinds = [
            _takes(merged(choice, definitions), definitions, below)
            for choice in schema.get("oneOf", schema.get("anyOf", ()))
        ]
        return ", or ".join(kinds)
    if "enum" in schema:
        return ", ".join(
            f"`{str(value).lower() if isinstance(value, bool) else value}`"
            for value in schema["enum"]
        )
    kind = schema.get("type")
    if kind is None:
        return "any value"
    if kind == "array":
        item = merged(schema["items"], definitions)
        return f"list of {_takes(item, definitions, below)}"
    if kind == "object":
        if below:
            return f"[settings](#{_anchor(below[0])})"
        return "mapping"
    if kind == "boolean":
        return "`true`, `false`"
    if kind in ("integer", "number"):
        low, high = schema["minimum"], schema.get("maximum")
        noun = "whole number" if kind == "integer" else "number"
        above_zero = 0 < low < 0.001  # stands for an open bound
        if high is not None and high < _UNREACHED:
            return f"{noun} {'above 0 and at most' if above_zero else f'from {digits(low)} to'} {digits(high)}"
        return f"{noun} above 0" if above_zero else f"{noun} from {digits(low)}"
    return "duration" if schema.get("pattern", "").endswith("(?:ms|s|m|h)$") else "text"


def _codes(kind: Kind) -> set[str]:
    """The codes of a kind's limits, without those of the groups in it."""
    codes: set[str] = set()
    limit = getattr(kind, "limit", None)
    if limit is not None:
        codes.add(limit.rule.code)
    if isinstance(kind, MappingKind):
        codes |= _codes(kind.key)
    for part in () if isinstance(kind, GroupKind) else kind.parts:
        codes |= _codes(part)
    return codes


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return text.strip()[1:-1].replace("|", "\\|")


if __name__ == "__main__":
    try:
        rewrite(Path(sys.argv[1]), settings_tables())
    except ValueError as missing:
        sys.exit(str(missing))
