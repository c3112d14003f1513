"""Read YAML so that every value keeps its line and nothing is guessed.

Plain scalars follow YAML 1.2's core schema: only ``true`` and ``false`` are booleans, so that
``no``, ``on`` and ``off`` stay text (YAML 1.1, which PyYAML follows otherwise, makes them
booleans, reads ``1:30`` as 90 and ``010`` as 8). Numbers remember how they were written, for
settings that take text: a tag ``1.10`` stays ``1.10``.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..errors import ConfigurationError, ErrorRule, did_you_mean
from ..errors.findings import Place, path_of
from ..options.rules import (
    KEY_TWICE,
    NOT_YAML,
    TEXT_NOT_CARRIED,
    TEXT_WITH_TOKEN,
    TOO_LARGE,
    UNREADABLE,
    UNUSUAL_YAML,
)

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_MOST_NODES = 20_000  # aliases of aliases grow without bound; no settings file comes near
_MOST_BYTES = 1_000_000  # reading YAML takes seconds for each megabyte, of comments too
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


class WrittenInt(int):
    """A whole number that remembers how it was written."""

    written: str


class WrittenFloat(float):
    """A number that remembers how it was written."""

    written: str


@dataclass
class YamlSource:
    """Values, their lines and the YAML's mistakes; ``broken``: places about which all is said."""

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
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            return _too_large()
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        fix = "Run it beside the settings file, or give --settings FILE. `low-latency init` starts anew."
        if isinstance(error, FileNotFoundError) and str(path) != "endpoint.yaml":
            beside = [each.name for each in Path(path).parent.glob("*.y*ml")]
            fix = did_you_mean(Path(path).name, beside)
        return _failed(1, unreadable(error, fix=fix))
    return parse_yaml(text)


def unreadable(
    problem: OSError | ValueError, *, where: str = "", fix: str = ""
) -> ConfigurationError:
    """Why a file has no text: by the file system, its bytes, or a NUL character in its path."""
    if isinstance(problem, UnicodeDecodeError):
        got, allowed = f"byte {problem.start} is not UTF-8", "text in UTF-8"
        return UNREADABLE.error(got=got, allowed=allowed, where=where)
    reason = problem.strerror if isinstance(problem, OSError) else str(problem)
    return UNREADABLE.error(
        got=reason or "an error", allowed="a readable file", where=where, fix=fix
    )


def parse_yaml(text: str) -> YamlSource:
    """Parse YAML text; what is wrong with it is in ``problems``."""
    if len(text) > _MOST_BYTES:
        return _too_large()
    try:
        node = yaml.compose(text, Loader=_LimitedLoader)
    except _TooLargeError as error:
        return _too_many(error)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, max(error.position, 0)) + 1
        return _failed(
            line,
            NOT_YAML.error(
                got=f"the character {error.character!r}", allowed="printable characters"
            ),
        )
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = [error.context, error.problem]
        return _failed(
            _LineNumbers(text).of(mark) if mark else 1,
            NOT_YAML.error(got=", ".join(part for part in parts if part), allowed="YAML"),
        )
    except RecursionError:
        return _failed(1, UNUSUAL_YAML.error(got="very deep nesting", allowed="a few levels"))
    source = YamlSource()
    if node is not None:
        try:
            source.values = _Reader(source, _LineNumbers(text)).value(node, (), ())
        except _TooLargeError as error:
            return _too_many(error)
    return source


def _too_large() -> YamlSource:
    return _failed(
        1,
        TOO_LARGE.error(
            got=f"more than {_MOST_BYTES:,} bytes", allowed=f"at most {_MOST_BYTES:,} bytes"
        ),
    )


def _too_many(error: _TooLargeError) -> YamlSource:
    return _failed(
        error.line,
        UNUSUAL_YAML.error(
            got=str(error), allowed=f"at most {_MOST_NODES} values, counting each use of an alias"
        ),
    )


def _failed(line: int, error: ConfigurationError) -> YamlSource:
    return YamlSource(problems=[(line, error)])


class _TooLargeError(Exception):
    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


class _LimitedLoader(yaml.BaseLoader):  # which resolves no scalar
    """Gives up early on a file with more values than are read afterwards."""

    _composed = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._composed += 1
        if self._composed > 3 * _MOST_NODES:  # keys are nodes too
            raise _TooLargeError(
                "more values than any settings need", parent.start_mark.line + 1 if parent else 1
            )
        return super().compose_node(parent, index)


class _LineNumbers:
    """Line numbers as editors count them; PyYAML also counts U+0085 and U+2028 as line ends."""

    def __init__(self, text: str) -> None:
        self._ends = [match.end() for match in re.finditer(r"\r\n|\r|\n", text)]

    def of(self, mark: yaml.Mark) -> int:
        return bisect_right(self._ends, mark.index) + 1


class _Reader:
    def __init__(self, source: YamlSource, lines: _LineNumbers) -> None:
        self._source = source
        self._lines = lines
        self._nodes = 0

    def value(
        self,
        node: yaml.Node,
        place: Place,
        around: tuple[int, ...],
        taken: frozenset[str] = frozenset(),
    ) -> Any:
        """The node's value, its lines noted; ``taken`` keys are left out: others win over them."""
        self._count(node)
        line = self._lines.of(node.start_mark)
        if len(around) > 50:
            raise _TooLargeError("very deep nesting", line)
        if id(node) in around:
            self._unusual(node, place, "an alias of a value inside that value")
            return None
        if node.tag not in _PLAIN_TAGS:
            self._unusual(node, place, f"the tag {node.tag.replace(_TAG, '!!')}")
            return None
        self._source.lines.setdefault(place, line)
        around = (*around, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place, around, taken)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.value(item, (*place, index), around) for index, item in enumerate(node.value)
            ]
        if self._is_unusable(node.value, node, place):
            self._source.broken.add(place)
            return escaped(node.value)  # not nothing, which other checks would miss
        return scalar(node.value) if _is_plain(node) else node.value

    def _count(self, node: yaml.Node) -> None:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise _TooLargeError(
                "more values than any settings need", self._lines.of(node.start_mark)
            )

    def _mapping(
        self, node: yaml.MappingNode, place: Place, around: tuple[int, ...], taken: frozenset[str]
    ) -> dict[str, Any]:
        given: dict[str, Any] = {}
        first_line: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = self._lines.of(key_node.start_mark)
            if _is_merge(key_node):
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._unusual(key_node, place, "a key that is a list or a mapping")
                continue
            key = key_node.value
            if key in first_line:
                self._problem(
                    KEY_TWICE,
                    key_node,
                    (*place, key),
                    got=f"{key} again (first at line {first_line[key]})",
                    allowed="each setting once",
                )
                continue
            first_line[key] = line
            if key in taken:
                self._count(value_node)
            elif not self._is_unusable(key, key_node, (*place, escaped(key))):
                self._source.lines[(*place, key)] = line
                given[key] = self.value(value_node, (*place, key), around)
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if _is_merge(key_node):  # the mapping's own keys win, then those of earlier mappings
                taken_here = taken.union(first_line, merged)
                merged |= self._merged(value_node, place, around, taken_here)
        return {**merged, **given}

    def _merged(
        self, node: yaml.Node, place: Place, around: tuple[int, ...], taken: frozenset[str]
    ) -> dict[str, Any]:
        """The keys of the mappings that ``<<`` names; earlier mappings win."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in nodes:
            if not isinstance(part, yaml.MappingNode):
                self._unusual(part, place, "<< with something that is not a mapping")
                continue
            merged |= self.value(part, place, around, taken.union(merged)) or {}
        return merged

    def _is_unusable(self, text: str, node: yaml.Node, place: Place) -> bool:
        """Whether the text would change on its way from the file to a template."""
        broken = (
            TEXT_WITH_TOKEN
            if _TOKEN.search(text)
            else TEXT_NOT_CARRIED
            if _NOT_CARRIED.search(text)
            else None
        )
        if broken is None:
            return False
        self._problem(
            broken,
            node,
            place,
            got=escaped(text[:120]),
            allowed="text without CDK tokens"
            if broken is TEXT_WITH_TOKEN
            else "text without control characters other than tab and line ends",
        )
        return True

    def _unusual(self, node: yaml.Node, place: Place, got: str) -> None:
        self._problem(UNUSUAL_YAML, node, place, got=got, allowed="plain keys and values")

    def _problem(
        self, rule: ErrorRule, node: yaml.Node, place: Place, *, got: str, allowed: str
    ) -> None:
        error = rule.error(got=got, allowed=allowed, where=path_of(place))
        self._source.problems.append((self._lines.of(node.start_mark), error))


def escaped(text: str) -> str:
    """The text with escapes for what is not printable ASCII."""
    return text.encode("unicode_escape").decode()


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == "<<" and _is_plain(key)


def _is_plain(node: yaml.Node) -> bool:
    """Whether a scalar is written without quotes; PyYAML leaves its style empty then."""
    return not getattr(node, "style", None)


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
