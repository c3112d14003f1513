"""A settings file as ruamel.yaml keeps it, comments and order too; every scalar is text."""

from __future__ import annotations

import re
from io import StringIO
from itertools import zip_longest
from operator import itemgetter
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, PlainScalarString, ScalarString
from ruamel.yaml.tokens import CommentToken

from ..errors.findings import Place, path_of
from .yaml_source import scalar

_COLLECTIONS = (CommentedMap, CommentedSeq)
#: Of a mapping, and of a list's dashes.
_INDENTS = [(mapping, dash) for mapping in (2, 4, 3, 6, 8) for dash in (mapping, 0, 2)]


class NotSettableError(Exception):
    """Why a place takes no value."""


class LayoutNotKeptError(Exception):
    """A line, by its number, that would change without being asked to."""

    def __init__(self, number: int, line: str, written: str) -> None:
        super().__init__()
        self.number, self.line, self.written = number, line, written


class _AsWritten(VersionedResolver):
    versioned_resolver = {"": [("tag:yaml.org,2002:null", re.compile("$"))]}  # noqa: RUF012


class YamlDocument:
    """The text of a file, of which values are changed."""

    def __init__(self, text: str) -> None:
        self._yaml = YAML(typ="rt", pure=True)
        self._yaml.Resolver = _AsWritten
        self._yaml.preserve_quotes = True
        self._yaml.width = 10**9
        self._yaml.brace_single_entry_mapping_in_flow_sequence = True
        self._yaml.explicit_start = text.startswith("---")
        self._ends_with_line = text.endswith("\n")
        try:
            self._root = self._yaml.load(text)
        except YAMLError as error:  # two merges of one mapping, say
            raise NotSettableError(f"what ruamel.yaml does not read: {error}") from error
        if not isinstance(self._root, CommentedMap):
            raise NotSettableError("no mapping at the top")
        differences = []
        for mapping, offset in _INDENTS:
            self._yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
            if (difference := _difference(text, self.text())) is None:
                return
            differences.append(difference)
        raise LayoutNotKeptError(*max(differences, key=itemgetter(0)))

    def text(self) -> str:
        """The whole text."""
        written = StringIO()
        self._yaml.dump(self._root, written)
        text = written.getvalue()
        return text if self._ends_with_line else text.removesuffix("\n")

    def set(self, place: Place, value: Any, new_key: str = "") -> None:
        """Set a scalar, or replace an entry, key and value; what is missing comes at the end."""
        node = self._root
        for depth in range(len(place) - 1):
            if _is_nothing(below := _entry(node, place[: depth + 1])):
                for missing in reversed(place[depth + 1 :]):
                    value = {missing: value}
                place = place[: depth + 1]
                break
            node = below
        key, old = place[-1], _entry(node, place)
        is_new = isinstance(node, CommentedMap) and key not in node
        if _anchor(old) or (
            is_new if new_key else isinstance(old, _COLLECTIONS) or _is_in_lines(old)
        ):
            raise NotSettableError("no value that stands alone")
        after = _cut(node, next(reversed(node), None) if is_new else key)
        if new_key:
            position, comments = list(node).index(key), node.ca.items.pop(key, None)
            del node[key]
            node.insert(position, new_key, None)
            node.ca.items.update({new_key: comments} if comments else {})
        node[new_key or key] = _made(value)
        _append(node, new_key or key, after)


def _difference(text: str, other: str) -> tuple[int, str, str] | None:
    """The first line that differs: its number, what it is, and what it would be."""
    lines, others = text.split("\n"), other.split("\n")
    for number, (line, written) in enumerate(zip_longest(lines, others), 1):
        if line != written:
            is_gone = written in (None, *lines[number : number + 1])
            return number, line or "", "no such line" if is_gone else repr(written)
    return None


def _entry(node: Any, place: Place) -> Any:
    """What a mapping or a list has at the last step of a place; None where a key is missing."""
    key = place[-1]
    if isinstance(node, CommentedMap):
        return node.get(key)
    if isinstance(node, CommentedSeq) and isinstance(key, int) and 0 <= key < len(node):
        return node[key]
    raise NotSettableError(f"nothing at {path_of(place)}")


def _is_nothing(value: Any) -> bool:
    return value is None or (type(value) is str and scalar(value) is None)


def _is_in_lines(value: Any) -> bool:
    return getattr(value, "style", "") in ("|", ">")


def _anchor(value: Any) -> Any:
    return isinstance(value, (*_COLLECTIONS, ScalarString)) and value.anchor.value


def _made(value: Any) -> Any:
    """A value as it is written: text stays text when it is read back."""
    if isinstance(value, dict):
        return CommentedMap({key: _made(each) for key, each in value.items()})
    if isinstance(value, list):
        return CommentedSeq(_made(each) for each in value)
    if isinstance(value, bool):
        return PlainScalarString("true" if value else "false")
    if isinstance(value, (int, float)):
        whole = float(value).is_integer()
        return PlainScalarString(str(int(value)) if whole else repr(float(value)))
    # ruamel.yaml leaves a colon before a mark plain within braces, which YAML 1.1 does not read.
    is_plain = isinstance(scalar(value), str) and value.isprintable() and value[:1] != ":"
    return value if is_plain else DoubleQuotedScalarString(value)


def _comment(node: Any, key: Any) -> tuple[Any, list[Any], int]:
    """The last entry below an entry, and where ruamel.yaml keeps what stands after both."""
    while (
        isinstance(below := node[key], _COLLECTIONS)
        and below
        and not below.fa.flow_style()
        and not _anchor(below)
    ):
        node = below
        key = next(reversed(below)) if isinstance(below, CommentedMap) else len(below) - 1
    slots = node.ca.items.setdefault(key, [None] * 4)
    return below, slots, 2 if isinstance(node, CommentedMap) else 0


def _cut(node: Any, key: Any) -> str:
    """Comments and empty lines after an entry, which are taken from it."""
    if key is None or node.fa.flow_style():
        return ""
    value, slots, slot = _comment(node, key)
    if (token := slots[slot]) is None:
        return ""
    # Text in several lines ends its line itself.
    own, _, after = ("", "", token.value) if _is_in_lines(value) else token.value.partition("\n")
    token.value = f"{own}\n"
    if not own:
        slots[slot] = None
        if isinstance(value, _COLLECTIONS):
            value.ca.comment = None
    return str(after)


def _append(node: Any, key: Any, after: str) -> None:
    if after:
        _, slots, slot = _comment(node, key)
        own = slots[slot].value if slots[slot] else "\n"
        slots[slot] = CommentToken(own + after, slots[slot] or CommentMark(0), None)
