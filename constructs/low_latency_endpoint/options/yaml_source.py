"""Read YAML so that every value keeps its line and nothing is guessed.

Plain scalars follow YAML 1.2's core schema without its octal and hexadecimal numbers: only ``true``
and ``false`` are booleans, so that ``no``, ``on``, ``1:30`` and dates stay text. Numbers remember how
they were written, for settings that take text: a tag ``1.10`` stays ``1.10``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, PlainScalarString

from ..errors import ConfigurationError, ErrorRule, did_you_mean
from ..errors.findings import Place, path_of
from ..errors.opened_files import opened
from .rules import (
    KEY_TWICE,
    NOT_YAML,
    TEXT_NOT_CARRIED,
    TEXT_WITH_TOKEN,
    TOO_LARGE,
    UNREADABLE,
    UNUSUAL_YAML,
)
from .written_numbers import WrittenFloat, WrittenInt

MOST_BYTES = 1_000_000
"""Of a file: reading YAML takes seconds for each megabyte, of comments too."""
_MOST_VALUES = 20_000  # aliases of aliases grow without bound; no settings file comes near
_DEEPEST = 50  # levels
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq")}
# What the CDK takes for its own placeholders; nothing is behind one that a file spells out.
_TOKEN = re.compile(r"[$#]\{Token\[")
# What XML 1.0 cannot carry, in which CloudFormation's API answers: control characters, and halves
# of characters that not even UTF-8 can carry. YAML lets them in as escapes.
_NOT_CARRIED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BOOLEANS = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_NULLS = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


@dataclass
class YamlSource:
    """Values, their lines and the YAML's mistakes; ``broken``: places about which all is said."""

    text: str = ""
    values: Any = None
    broken: set[Place] = field(default_factory=set)
    lines: dict[Place, int] = field(default_factory=dict)
    problems: list[tuple[int, ConfigurationError]] = field(default_factory=list)

    def line(self, place: Place) -> int:
        """The line of a value, or of the nearest setting around it when it is missing."""
        for end in range(len(place), 0, -1):
            if place[:end] in self.lines:
                return self.lines[place[:end]]
        return 1


def read_yaml(path: str | Path) -> YamlSource:
    """Read a file; problems of the file and of its YAML are in ``problems``."""
    try:
        return parse_yaml(_text(path))
    except _RefusedError as refused:
        return YamlSource(problems=[refused.problem])


def parse_yaml(text: str) -> YamlSource:
    """Read YAML text; what is wrong with it is in ``problems``."""
    source = YamlSource(text)
    try:
        if len(text) > MOST_BYTES:
            raise _too_large()
        root = _composed(text)
        if root is not None:
            source.values = _Reader(source).value(root, (), ())
    except _RefusedError as refused:
        return YamlSource(problems=[refused.problem])
    return source


def yaml_text(values: Mapping[str, Any]) -> str:
    """Values in lines, as text that is read back as the same values."""
    yaml = round_trip_yaml()
    written = StringIO()
    yaml.dump(written_value(values), written)
    return written.getvalue()


def written_value(value: Any) -> Any:
    """A value for ruamel.yaml to write: text stays text when it is read back."""
    if isinstance(value, Mapping):
        return CommentedMap({key: written_value(below) for key, below in value.items()})
    if isinstance(value, list):
        return CommentedSeq(map(written_value, value))
    if value is None:
        return PlainScalarString("null")
    if isinstance(value, bool):
        return PlainScalarString("true" if value else "false")
    if isinstance(value, int):
        return PlainScalarString(str(int(value)))
    if isinstance(value, float):
        return PlainScalarString(repr(float(value)))
    # ruamel.yaml leaves a colon before a mark plain within braces, which YAML 1.1 does not read.
    is_plain = isinstance(scalar(value), str) and value.isprintable() and value[:1] != ":"
    return value if is_plain else DoubleQuotedScalarString(value)


def scalar(text: str) -> Any:
    """A plain scalar's value by YAML 1.2's core schema."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        whole = WrittenInt(text)
        whole.written = text
        return whole
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        number = WrittenFloat(text)
        number.written = text
        return number
    return text


def round_trip_yaml() -> YAML:
    """ruamel.yaml, which keeps comments and quotes, and neither interprets nor wraps text."""
    yaml = YAML(typ="rt", pure=True)
    yaml.Resolver = _AsWritten
    yaml.preserve_quotes = True
    yaml.width = 10**9
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    return yaml


class _AsWritten(VersionedResolver):
    versioned_resolver = {"": [(_TAG + "null", re.compile("$"))]}  # noqa: RUF012


class _LimitedComposer(Composer):
    """Gives up early on a file with more values, or deeper ones, than are read afterwards."""

    _composed = 0
    _depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node:
        self.warn_double_anchors = False
        self._composed += 1
        if self._composed > 3 * _MOST_VALUES:  # keys are nodes too
            raise _too_many(parent)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _too_deep(parent)
        node: Node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _RefusedError(Exception):
    """The one problem of a text of which nothing is read."""

    def __init__(self, line: int, error: ConfigurationError) -> None:
        super().__init__()
        self.problem = (line, error)


def _too_large() -> _RefusedError:
    got = f"more than {MOST_BYTES:,} bytes"
    return _RefusedError(1, TOO_LARGE.error(got=got, allowed=f"at most {MOST_BYTES:,} bytes"))


def _too_many(node: Node | None) -> _RefusedError:
    allowed = f"at most {_MOST_VALUES} values, counting each use of an alias"
    error = UNUSUAL_YAML.error(got="more values than any settings need", allowed=allowed)
    return _RefusedError(_line(node) if node else 1, error)


def _too_deep(node: Node | None) -> _RefusedError:
    error = UNUSUAL_YAML.error(got="very deep nesting", allowed=f"at most {_DEEPEST} levels")
    return _RefusedError(_line(node) if node else 1, error)


def _text(path: str | Path) -> str:
    try:
        with opened(path) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise _too_large()
        return content.decode()
    except UnicodeDecodeError as error:
        got = f"byte {error.start} is not UTF-8"
        problem = UNREADABLE.error(got=got, allowed="text in UTF-8")
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        fix = "Run it beside the settings file, or give --settings FILE. `low-latency init` starts anew."
        if isinstance(error, FileNotFoundError) and str(path) != "endpoint.yaml":
            beside = [file.name for file in Path(path).parent.glob("*.y*ml")]
            fix = did_you_mean(Path(path).name, beside)
        problem = UNREADABLE.error(got=reason or "an error", allowed="a readable file", fix=fix)
    raise _RefusedError(1, problem)


def _composed(text: str) -> Node | None:
    """The text's nodes; none where it holds nothing."""
    yaml = YAML(typ="base", pure=True)  # "rt" does not read each comment before text in lines
    yaml.Resolver = _AsWritten
    yaml.Composer = _LimitedComposer
    try:
        root: Node | None = yaml.compose(text)
    except ReaderError as error:
        line = text.count("\n", 0, max(error.position, 0)) + 1
        got = f"the character {chr(error.character)!r}"
        problem = NOT_YAML.error(got=got, allowed="printable characters")
        raise _RefusedError(line, problem) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        got = ", ".join(part for part in (error.context, error.problem) if part)
        problem = NOT_YAML.error(got=got, allowed="YAML")
        raise _RefusedError(mark.line + 1 if mark else 1, problem) from None
    return root


class _Reader:
    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self._values = 0

    def value(
        self, node: Node, place: Place, around: tuple[int, ...], taken: frozenset[str] = frozenset()
    ) -> Any:
        """The node's value, its lines noted; ``taken`` keys are left out: others win over them."""
        self._count(node)
        if len(around) >= _DEEPEST:  # by aliases
            raise _too_deep(node)
        if id(node) in around:
            self._unusual(node, place, "an alias of a value inside that value")
            return None
        tag = str(node.tag)
        if tag not in _PLAIN_TAGS:
            self._unusual(node, place, f"the tag {tag.replace(_TAG, '!!')}")
            return None
        self._source.lines.setdefault(place, _line(node))
        around = (*around, id(node))
        if isinstance(node, MappingNode):
            return self._mapping(node, place, around, taken)
        if isinstance(node, SequenceNode):
            return [
                self.value(item, (*place, index), around) for index, item in enumerate(node.value)
            ]
        if self._is_unusable(node.value, node, place):
            self._source.broken.add(place)
            return escaped(node.value)  # not nothing, which other checks would miss
        return scalar(node.value) if _is_plain(node) else node.value

    def _count(self, node: Node) -> None:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise _too_many(node)

    def _mapping(
        self, node: MappingNode, place: Place, around: tuple[int, ...], taken: frozenset[str]
    ) -> dict[str, Any]:
        given: dict[str, Any] = {}
        first_line: dict[str, int] = {}
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                continue
            if not isinstance(key_node, ScalarNode):
                self._unusual(key_node, place, "a key that is a list or a mapping")
                continue
            key = key_node.value
            if key in first_line:
                got = f"{key} again (first at line {first_line[key]})"
                self._problem(KEY_TWICE, key_node, (*place, key), got, "each setting once")
                continue
            first_line[key] = _line(key_node)
            if key in taken:
                self._count(value_node)
            elif not self._is_unusable(key, key_node, (*place, escaped(key))):
                self._source.lines[(*place, key)] = first_line[key]
                given[key] = self.value(value_node, (*place, key), around)
        merged: dict[str, Any] = {}
        for part in self._merged_nodes(node, place):
            # the mapping's own keys win, then those of earlier mappings
            merged |= self.value(part, place, around, taken.union(first_line, merged)) or {}
        return {**merged, **given}

    def _merged_nodes(self, node: MappingNode, place: Place) -> Iterator[MappingNode]:
        """The mappings that ``<<`` names."""
        for key_node, value_node in node.value:
            if not _is_merge(key_node):
                continue
            parts = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
            for part in parts:
                if isinstance(part, MappingNode):
                    yield part
                else:
                    self._unusual(part, place, "<< with something that is not a mapping")

    def _is_unusable(self, text: str, node: Node, place: Place) -> bool:
        """Whether the text would change on its way from the file to a template."""
        if _TOKEN.search(text):
            rule = TEXT_WITH_TOKEN
            allowed = "text without CDK tokens"
        elif _NOT_CARRIED.search(text):
            rule = TEXT_NOT_CARRIED
            allowed = "text without control characters other than tab and line ends"
        else:
            return False
        self._problem(rule, node, place, escaped(text[:120]), allowed)
        return True

    def _unusual(self, node: Node, place: Place, got: str) -> None:
        self._problem(UNUSUAL_YAML, node, place, got, "plain keys and values")

    def _problem(self, rule: ErrorRule, node: Node, place: Place, got: str, allowed: str) -> None:
        error = rule.error_as_written(got=got, allowed=allowed, where=path_of(place))
        self._source.problems.append((_line(node), error))


def escaped(text: str) -> str:
    """The text with escapes for what is not printable ASCII."""
    return text.encode("unicode_escape").decode()


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _is_merge(key: Node) -> bool:
    return _is_plain(key) and key.value == "<<"


def _is_plain(node: Node) -> bool:
    """Whether a scalar is written without quotes: its style is empty then."""
    return isinstance(node, ScalarNode) and not node.style
