"""Files that users give, and JSON of others: read within limits, and held to the kinds that are needed.

Whatever a file holds, a reader gets text, values of its kinds, or ``ValueError`` with words for its
own rule. Kinds are declared where they are read::

    {"rate": NUMBER, "source?": str, "samples?": [NUMBER], "limit?": (None, {"problem?": str})}

A name with ``?`` may be missing, further names may be there, a tuple has alternatives, a list's one
kind is that of each entry, and ``object`` is anything.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import ErrorRule, shortened
from .opened_files import opened

MOST_BYTES = 256 * 1024 * 1024
"""Of a file: a day of single requests is smaller, and what is larger fills a laptop's memory."""
MOST_MARKS = 4_000_000
"""Of JSON, what begins a value or parts two. Each is up to 200 bytes of memory, whatever it is in a
file. A day's load test with a line each second has 1.3 million, a million requests' tokens two."""
MOST_LINES = 4_000_000
"""Of CSV and of JSON by lines: a day at 46 requests a second. Each is 150 bytes of memory and 5 us."""
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
DEEPEST = 100
NUMBER = (int, float)
_LONGEST_SHOWN = 60
_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    None: "null",
    list: "a list",
    dict: "an object",
}


def bytes_of(
    path: str | Path,
    unreadable: ErrorRule,
    most: int = MOST_BYTES,
    too_large: ErrorRule | None = None,
) -> bytes:
    """A file's content; the reader's own rule for one that is none, or larger than it may be.

    No more than that is read of it, whatever it is.
    """
    try:
        with opened(path) as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
        got = getattr(problem, "strerror", None) or str(problem)
        raise unreadable.error(got=got, allowed="a readable file", where=str(path)) from None
    if len(content) > most:
        allowed = f"at most {most:,} bytes"
        has_size = Path(path).is_file()  # a device without an end has none
        rule = too_large if too_large and has_size else unreadable
        raise rule.error(got="a larger file", allowed=allowed, where=str(path))
    return content


def text_of(path: str | Path, unreadable: ErrorRule) -> str:
    """The same as text in UTF-8, without a byte order mark."""
    try:
        return bytes_of(path, unreadable).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        got = f"byte {problem.start} is not UTF-8"
        raise unreadable.error(got=got, allowed="text in UTF-8", where=str(path)) from None


def check_lines(text: str | bytes) -> None:
    """Refuse in words, as ``ValueError``, a file of more lines than memory is to hold."""
    lines = _line_count(text)
    if lines > MOST_LINES:
        raise ValueError(f"{lines:,} lines, where {MOST_LINES:,} are the most")


def _line_count(text: str | bytes) -> int:
    if isinstance(text, bytes):
        return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
    return sum(map(text.count, _LINE_ENDS)) - text.count("\r\n")


def check_csv(text: str) -> None:
    """The same of CSV, and of its cells, which may all be in one line.

    A reader makes a cell for each column of the first row in every row.
    """
    check_lines(text)
    if text.count(",") > 2 * MOST_LINES:
        raise ValueError(f"{text.count(','):,} commas, where {2 * MOST_LINES:,} are the most")
    rows = csv.reader(line for line in io.StringIO(text) if not line.startswith("#"))
    columns = next(filter(None, rows), [])
    cells = len(columns) * (_line_count(text) + 1)
    if cells > 4 * MOST_LINES:
        raise ValueError(f"{cells:,} cells, where {4 * MOST_LINES:,} are the most")


def json_value(text: str | bytes, kind: Any = object) -> Any:
    """What JSON says, all of which can be used: each number is one, each text can be written.

    Raises
    ------
    ValueError
        In words: no JSON, a number that no machine has, a name twice, a surrogate without its other
        half, more than a hundred levels, too many values, or another kind than is needed.
    """
    marks = ("{", "[", ",") if isinstance(text, str) else (b"{", b"[", b",")
    if sum(map(text.count, marks)) > MOST_MARKS:  # type: ignore[arg-type]
        raise ValueError(f"more than {MOST_MARKS:,} brackets and commas")
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(f"more than {DEEPEST} levels") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise ValueError(f"no whole JSON: {problem}") from None
    _check_values(value)
    for wrong in _other_kinds(value, kind, ""):
        raise ValueError(wrong)
    return value


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = Counter(name for name, _ in pairs)
        [(twice, _)] = names.most_common(1)
        raise ValueError(f"the name {_shown(twice)} stands twice in one object")
    return value


def _check_values(value: Any) -> None:
    """Level by level, as a value that is deep has no depth for a function that calls itself."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += [*each, *each.values()]
            elif isinstance(each, list):
                inner += each
            else:
                _check_single(each)
        if not inner:
            return
        level = inner
    raise ValueError(f"more than {DEEPEST} levels")


def _check_single(value: Any) -> None:
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("a text with half of a character (a lone surrogate)") from None
    if not is_finite(value):
        raise ValueError("a number beyond 1.8e308")


def is_finite(value: Any) -> bool:
    """Whether arithmetic can be done with a number; true of all that is none."""
    try:
        return not isinstance(value, (int, float)) or math.isfinite(value)
    except OverflowError:  # a whole number beyond all others
        return False


def _other_kinds(value: Any, kind: Any, place: str) -> Iterator[str]:
    """What is of another kind than is needed, each with its place."""
    if isinstance(kind, tuple):
        if not any(_is_like(value, each) for each in kind):
            yield _problem(place, value, kind)
        for each in kind:
            if _is_like(value, each):
                yield from _other_kinds(value, each, place)
                return
    elif not _is_like(value, kind):
        yield _problem(place, value, (kind,))
    elif isinstance(kind, list):
        for number, each in enumerate(value):
            yield from _other_kinds(each, kind[0], f"{place}[{number}]")
    elif isinstance(kind, dict):
        yield from _other_members(value, kind, place)


def _other_members(value: dict[str, Any], kind: dict[Any, Any], place: str) -> Iterator[str]:
    for name, of in kind.items():
        if name is str:
            for key, each in value.items():
                yield from _other_kinds(each, of, f"{place}.{key}".removeprefix("."))
        elif name.removesuffix("?") in value:
            key = name.removesuffix("?")
            yield from _other_kinds(value[key], of, f"{place}.{key}".removeprefix("."))
        elif not name.endswith("?"):
            yield f"{place or 'the object'} has no {name}"


def _is_like(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind, without what is in it."""
    if kind is object:
        return True
    if kind is None:
        return value is None
    if isinstance(value, bool):
        return kind is bool
    if isinstance(kind, (list, dict)):
        return isinstance(value, type(kind))
    return isinstance(value, kind)


def _problem(place: str, value: Any, kinds: tuple[Any, ...]) -> str:
    kinds = tuple(kind for kind in kinds if not (kind is int and float in kinds))
    words = [_WORDS[type(kind) if isinstance(kind, (list, dict)) else kind] for kind in kinds]
    needed = " or ".join(words)
    got = _WORDS.get(type(value), "null") if isinstance(value, (list, dict)) else _shown(value)
    return f"{place or 'the whole'} is {got}, where {needed} is needed"


def _shown(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), _LONGEST_SHOWN)
