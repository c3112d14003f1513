"""Write values into a settings file and leave everything else as it is: comments, order, quotes.

ruamel.yaml changes the values; a file whose other lines it would lay out anew is refused. Each change
is read back: it must yield the old settings with exactly the wanted value, or it is refused.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.scalarstring import ScalarString
from ruamel.yaml.tokens import CommentToken

from ..errors import ConfigurationError, SettingsError
from ..errors.findings import Place, path_of
from ..options.rules import CHANGED_MEANWHILE, CHANGED_VALUE_TOO_ODD, LAYOUT_NOT_KEPT, UNWRITABLE
from ..options.yaml_source import (
    YamlSource,
    parse_yaml,
    read_yaml,
    round_trip_yaml,
    scalar,
    written_value,
)
from .loading import check_text

if TYPE_CHECKING:
    from .stack import Settings


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


class YamlDocument:
    """The text of a file, of which values are changed."""

    def __init__(self, text: str) -> None:
        self._yaml = round_trip_yaml()
        self._yaml.explicit_start = text.startswith("---")
        self._ends_with_line = text.endswith("\n")
        try:
            self._root = self._yaml.load(text)
        # Two merges of one mapping, say, or a comment before text in lines.
        except (YAMLError, NotImplementedError, AssertionError) as error:
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
        node[new_key or key] = written_value(value)
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
    """The entry at the last step of a place; ``None`` if a key is missing."""
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


Value = str | int | float | bool

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """Key and value in place of another entry, whose inner comments go with it."""

    key: str
    value: Any

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"


Values = Mapping[Place, Value | YamlEntry | Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class YamlEdit:
    """A changed settings text that is not written yet."""

    path: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return self.before != self.after

    def diff(self) -> str:
        """The change as a unified difference; empty when nothing changed."""
        return "".join(
            _ended(line)
            for line in difflib.unified_diff(
                _lines(self.before), _lines(self.after), self.path, f"{self.path} (changed)", n=2
            )
        )


def edited_yaml(text: str, values: Values, *, path: str = "endpoint.yaml") -> YamlEdit:
    """Set values at places in YAML text, numbers of lists among the keys; mappings key by key."""
    return _edited(parse_yaml(text), values, path)


def edit_settings_file(path: str | Path, values: Values) -> YamlEdit:
    """Set values in a settings file, without writing it; the changed settings are valid."""
    return checked_edit(path, values)[0]


def checked_edit(path: str | Path, values: Values) -> tuple[YamlEdit, Settings]:
    """As :func:`edit_settings_file`, and what the changed text says."""
    edit = _edited(read_yaml(path), values, str(path))
    return edit, check_text(edit.after, path)


def _edited(source: YamlSource, values: Values, path: str) -> YamlEdit:
    """A text with values set; refused where it would yield any other than just these."""
    if source.problems:
        raise SettingsError(path, source.problems)
    bare = source.text.removeprefix(_BOM)
    changes = {
        place: value
        for place, value in _flattened(values)
        if not _holds(source.values, place, value)
    }
    after = _changed(bare, changes, path) if changes else bare
    wanted = source.values
    for place, value in changes.items():
        wanted = _with(wanted, place, value)
    back = parse_yaml(after)
    if back.problems or back.values != wanted:
        raise _odd(path, "a value whose change would change other values too")
    return YamlEdit(path, source.text, source.text.removesuffix(bare) + after)


def write_edit(edit: YamlEdit) -> None:
    """Write the changed text into its file, whole or not at all."""
    if not edit.changed:
        return
    target = Path(edit.path).resolve()
    before = edit.before.encode()
    try:
        if target.read_bytes() != before:
            raise CHANGED_MEANWHILE.error(
                got="a file that changed after it was read",
                allowed="an unchanged file",
                where=edit.path,
            )
        _replace(target, before, edit.after.encode())
    except OSError as error:
        raise UNWRITABLE.error(
            got=error.strerror or str(error), allowed="a file to write", where=edit.path
        ) from error


def _replace(target: Path, before: bytes, after: bytes) -> None:
    """Write a file whole or not at all; a link stays a link, and its owner its owner."""
    found = target.stat()
    # A superuser may write anything; who took the right to write away meant it all the same.
    if not found.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, f"it is read-only (mode {found.st_mode & 0o7777:o})")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _written_through(file, after)
        shutil.copymode(target, name)
        if found.st_nlink == 1 and _owned_as(name, found):
            os.replace(name, target)
            _sync_folder(target.parent)
            return
        # A new file would break the hard link, or belong to somebody else.
        with target.open("r+b") as file:
            try:
                _written_through(file, after)
            except OSError:
                _written_through(file, before)
                raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _written_through(file: BinaryIO, content: bytes) -> None:
    """Down to the disk: a file that is only in memory is empty after a power cut."""
    file.seek(0)
    file.write(content)
    file.truncate()
    file.flush()
    os.fsync(file.fileno())


def _owned_as(name: str, wanted: os.stat_result) -> bool:
    made = os.stat(name)
    if (made.st_uid, made.st_gid) == (wanted.st_uid, wanted.st_gid):
        return True
    try:
        os.chown(name, wanted.st_uid, wanted.st_gid)
        os.chmod(name, wanted.st_mode & 0o7777)  # which a new owner may have taken away
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """So that the new name is on the disk, too, where folders can be synchronized."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _flattened(
    values: Mapping[Any, Any], prefix: Place = ()
) -> Iterator[tuple[Place, Value | YamlEntry]]:
    for key, value in values.items():
        place = (*prefix, *(key if isinstance(key, tuple) else (key,)))
        if isinstance(value, Mapping):
            yield from _flattened(value, place)
        elif isinstance(value, float) and value.is_integer():
            yield place, int(value)
        else:
            yield place, value


def _changed(text: str, changes: Mapping[Place, Value | YamlEntry], path: str) -> str:
    newline, where = "\r\n" if "\r\n" in text else "\n", path
    bare = text.replace("\r\n", "\n")
    if bare.replace("\n", newline) != text:
        raise _odd(path, "line ends of two kinds")
    try:
        document = YamlDocument(bare)
        for place, value in changes.items():
            where = path_of(place)
            if isinstance(value, YamlEntry):
                document.set(place, value.value, value.key)
            else:
                document.set(place, value)
    except NotSettableError as error:
        raise _odd(where, str(error)) from None
    except LayoutNotKeptError as error:
        by_hand = "; ".join(f"{path_of(place)}: {value}" for place, value in changes.items())
        raise LAYOUT_NOT_KEPT.error(
            got=f"line {error.number}: {error.line!r}",
            allowed=error.written,
            where=path,
            fix=f"Write the line in an allowed form, or set by hand {by_hand}.",
        ) from None
    return document.text().replace("\n", newline)


def _odd(where: str, got: str) -> ConfigurationError:
    return CHANGED_VALUE_TOO_ODD.error(
        got=got, allowed="a plain value that stands alone, or none yet", where=where
    )


def _holds(values: Any, place: Place, value: Value | YamlEntry) -> bool:
    for key in place:
        try:
            values = values[key]
        except (KeyError, IndexError, TypeError):
            return False
    return values == value and isinstance(values, bool) == isinstance(value, bool)


def _with(values: Any, place: Place, value: Value | YamlEntry) -> Any:
    """The values with one set, which is what the changed text must yield."""
    if not place:
        return value
    key, rest = place[0], place[1:]
    if isinstance(value, YamlEntry) and not rest:
        kept = {name: each for name, each in values.items() if name not in (key, value.key)}
        return {**kept, value.key: value.value}
    if isinstance(values, list) and isinstance(key, int):
        return [*values[:key], _with(values[key], rest, value), *values[key + 1 :]]
    made = dict(values or {})
    made[key] = _with(made.get(key), rest, value)
    return made


def _lines(text: str) -> list[str]:
    """Lines as editors count them; ``splitlines`` also splits at form feeds and U+2028."""
    return re.findall(r"[^\n]*\n|[^\n]+", text.removeprefix(_BOM).replace("\r\n", "\n"))


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
