"""Write values into a settings file and leave everything else as it is: comments, order, quotes.

The text is changed in place, at the characters of the one value; nothing is written out anew. Each
edit is read back: it must yield the old settings with exactly the wanted values, or it is refused.

Examples
--------
>>> edit = edited_yaml('''\\
... endpoints:
...   sentiment:
...     instance_type: ml.m5.large   # what callers pay for
... ''', {("endpoints", "sentiment", "instance_type"): "ml.c6i.large",
...       ("endpoints", "sentiment", "instances"): {"min": 2}})
>>> print(edit.after, end="")
endpoints:
  sentiment:
    instance_type: ml.c6i.large  # what callers pay for
    instances:
      min: 2
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import yaml

from ..errors import SettingsError
from .breach import Place, path_of
from .entry_replacement import Entry
from .loading import check_text
from .rules import CHANGED_MEANWHILE, CHANGED_VALUE_TOO_ODD, UNREADABLE, UNWRITABLE
from .yaml_source import parse_yaml, scalar

if TYPE_CHECKING:
    from .stack import Settings


Value = str | int | float | bool
Values = Mapping[Place, Value | Entry | Mapping[str, Any]]

_BOM = "\ufeff"
_PLAIN = re.compile(r"[\w./][\w./:+@=-]*(?: [\w./+@=(-][\w./:+@=)-]*)*")


@dataclass(frozen=True, slots=True)
class YamlEdit:
    """A changed settings text that is not written yet.

    Attributes
    ----------
    path : str
        The file, as the difference names it.
    before, after : str
        The whole text.
    """

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
    """Set values at places in YAML text; comments and everything else stay.

    Parameters
    ----------
    text : str
        The YAML.
    values : mapping
        Place to value: a place is a tuple of keys (and of positions in lists), a value is text, a
        number or a boolean, or a mapping of them, whose keys are set one by one. Keys that are not
        there are added at the end of their mapping, in its own style. An :class:`Entry` replaces
        the key at that place too.
    path : str
        What the difference and errors call the text. By default ``endpoint.yaml``.

    Raises
    ------
    ConfigurationError
        LLE937 where the value cannot be set without changing something else: a value shared by an
        anchor, a list or a mapping in the value's place.
    SettingsError
        When the text is no YAML that settings may use.
    """
    after = text
    for place, value in _flattened(values):
        after = _set(after, place, value, path)
    return YamlEdit(path, text, after)


def edit_settings_file(path: str | Path, values: Values) -> YamlEdit:
    """Set values in a settings file, without writing it: see :func:`write_edit`.

    Raises
    ------
    ConfigurationError
        LLE901 when the file cannot be read, LLE937 when a value cannot be set.
    SettingsError
        When the changed settings would not be valid.

    Examples
    --------
    ::

        edit = edit_settings_file("endpoint.yaml", {
            ("endpoints", "sentiment", "throughput", "tps_per_instance"): 212})
        print(edit.diff())
        write_edit(edit)
    """
    return checked_edit(path, values)[0]


def checked_edit(path: str | Path, values: Values) -> tuple[YamlEdit, Settings]:
    """As :func:`edit_settings_file`, and what the changed text says."""
    edit = edited_yaml(_read(path), values, path=str(path))
    return edit, check_text(edit.after, path)


def write_edit(edit: YamlEdit) -> None:
    """Write the changed text into its file, whole or not at all.

    Raises
    ------
    ConfigurationError
        LLE938 when the file is no longer what was read, LLE936 when it cannot be written.
    """
    if not edit.changed:
        return
    if _read(edit.path) != edit.before:
        raise CHANGED_MEANWHILE.error(
            got="another text than was read", allowed="the same text", where=edit.path
        )
    try:
        _replace(Path(edit.path).resolve(), edit.before.encode(), edit.after.encode())
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


def _read(path: str | Path) -> str:
    """The text with its line ends; unlike open(), which makes them all ``\\n``."""
    try:
        return Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UNREADABLE.error(
            got=f"byte {error.start} is not UTF-8", allowed="text in UTF-8", where=str(path)
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UNREADABLE.error(
            got=reason or "an error", allowed="a readable file", where=str(path)
        ) from error


def _flattened(
    values: Mapping[Any, Any], prefix: Place = ()
) -> Iterator[tuple[Place, Value | Entry]]:
    for key, value in values.items():
        place = (*prefix, *(key if isinstance(key, tuple) else (key,)))
        if isinstance(value, Mapping):
            yield from _flattened(value, place)
        else:
            yield place, value


def _set(text: str, place: Place, value: Value | Entry, path: str) -> str:
    """The text with one value set; read back before it is returned."""
    source = parse_yaml(text.removeprefix(_BOM))
    if source.problems:
        raise SettingsError(path, source.problems)
    if _holds(source.values, place, value):
        return text
    if isinstance(value, Entry):
        bare = text.removeprefix(_BOM)
        changed = text[: len(text) - len(bare)] + value.written_over(bare, place)
    else:
        changed = _Editor(text, place).set(value)
    back = parse_yaml(changed.removeprefix(_BOM))
    if back.problems or back.values != _with(source.values, place, value):
        raise CHANGED_VALUE_TOO_ODD.error(
            got="a value whose change would change other values too",
            allowed="a value that stands alone",
            where=path_of(place),
        )
    return changed


def _holds(values: Any, place: Place, value: Value | Entry) -> bool:
    for key in place:
        try:
            values = values[key]
        except (KeyError, IndexError, TypeError):
            return False
    return values == value and isinstance(values, bool) == isinstance(value, bool)


def _with(values: Any, place: Place, value: Value | Entry) -> Any:
    """The values with one set, which is what the changed text must yield."""
    if not place:
        return value
    key, rest = place[0], place[1:]
    if isinstance(value, Entry) and not rest:
        kept = {name: each for name, each in values.items() if name not in (key, value.key)}
        return {**kept, value.key: value.value}
    if isinstance(values, list) and isinstance(key, int):
        return [*values[:key], _with(values[key], rest, value), *values[key + 1 :]]
    made = dict(values or {})
    made[key] = _with(made.get(key), rest, value)
    return made


class _Editor:
    """One change to one text, at the characters that PyYAML's marks give."""

    def __init__(self, text: str, place: Place) -> None:
        self._text = text
        self._place = place
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def set(self, value: Value) -> str:
        root = yaml.compose(self._text, Loader=yaml.BaseLoader)
        if root is None:
            return self._below(len(self._text), self._place, value, 0)
        node: yaml.Node = root
        for depth, key in enumerate(self._place):
            following = self._child(node, key, depth)
            if following is None:
                return self._added(node, self._place[depth:], value)
            if _is_null(following) and depth + 1 < len(self._place):
                return self._filled(node, following, self._place[depth + 1 :], value)
            node = following
        if not isinstance(node, yaml.ScalarNode):
            raise self._odd("a list or a mapping in its place")
        if node.style in ("|", ">"):
            raise self._odd("text in several lines")
        return self._replaced(node, _written(value))

    def _child(self, node: yaml.Node, key: str | int, depth: int) -> yaml.Node | None:
        if isinstance(node, yaml.MappingNode):
            return next((child for name, child in node.value if name.value == key), None)
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            if 0 <= key < len(node.value):
                found: yaml.Node = node.value[key]
                return found
            raise self._odd(f"{len(node.value)} entries at {path_of(self._place[:depth])}")
        raise self._odd(f"no mapping at {path_of(self._place[:depth])}")

    def _odd(self, got: str) -> Exception:
        return CHANGED_VALUE_TOO_ODD.error(
            got=got, allowed="a plain value, or none yet", where=path_of(self._place)
        )

    def _replaced(self, node: yaml.Node, written: str) -> str:
        start, end = node.start_mark.index, node.end_mark.index
        if start == end:  # `key:` without a value
            written = " " + written
        rest = self._text[end:]
        padding = re.match(r"( +)#", rest)
        if padding:  # the comment keeps its column as long as two spaces are left
            width = max(len(padding[1]) + (end - start) - len(written), 2)
            rest = " " * width + rest[len(padding[1]) :]
        return self._text[:start] + written + rest

    def _added(self, mapping: yaml.Node, place: Place, value: Value) -> str:
        """A new key at the end of its mapping."""
        if getattr(mapping, "flow_style", None):
            entry = _flow(place, value)
            if not mapping.value:
                inside = mapping.start_mark.index + 1
                return self._text[:inside] + entry + self._text[inside:]
            end = mapping.value[-1][1].end_mark.index
            if _is_alias(*mapping.value[-1]):
                end = len(self._text[: mapping.end_mark.index - 1].rstrip())
            return f"{self._text[:end]}, {entry}{self._text[end:]}"
        return self._below(
            _content_end(self._text, mapping), place, value, mapping.value[0][0].start_mark.column
        )

    def _filled(self, around: yaml.Node, null: yaml.Node, place: Place, value: Value) -> str:
        """A first key below a key that has no value yet."""
        start, end = null.start_mark.index, null.end_mark.index
        if getattr(around, "flow_style", None):
            space = " " if start == end else ""
            return f"{self._text[:start]}{space}{{{_flow(place, value)}}}{self._text[end:]}"
        if not isinstance(around, yaml.MappingNode):
            raise self._odd("an empty list entry")
        before = self._text[:start].rstrip(" ") if end > start else self._text[:start]
        shorter = before + self._text[end:]
        self._text = shorter
        return self._below(len(before), place, value, around.value[0][0].start_mark.column + 2)

    def _below(self, end: int, place: Place, value: Value, column: int) -> str:
        """New lines after the line of a character."""
        line_end = re.compile(r"[^\r\n]*").match(self._text, end)
        at = line_end.end() if line_end else end
        lines = []
        for depth, key in enumerate(place):
            last = f" {_written(value)}" if depth == len(place) - 1 else ""
            lines.append(" " * (column + 2 * depth) + f"{_written(key)}:{last}")
        block = self._newline.join(lines)
        if not self._text.strip(_BOM + " \r\n"):
            return self._text + block + self._newline
        if at == len(self._text):
            fresh = "" if self._text.endswith(self._newline) else self._newline
            return self._text + fresh + block + self._newline
        return self._text[:at] + self._newline + block + self._text[at:]


def _content_end(text: str, node: yaml.Node) -> int:
    """Where the node's last character stands; a block's own end mark lies behind its comments."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        if isinstance(last, tuple) and _is_alias(*last):
            return int(last[0].end_mark.index)
        node = last[1] if isinstance(last, tuple) else last
    end = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        end = len(text[:end].rstrip())
    return int(end)


def _is_alias(key: yaml.Node, value: yaml.Node) -> bool:
    """An alias is the very node it stands for, which is written before the key."""
    return bool(value.start_mark.index < key.start_mark.index)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.style and scalar(node.value) is None


def _flow(place: Place, value: Value) -> str:
    written = _written(value)
    for key in reversed(place[1:]):
        written = f"{{{_written(key)}: {written}}}"
    return f"{_written(place[0])}: {written}"


def _written(value: Value) -> str:
    """A scalar as YAML: text stays text when it is read back.

    >>> [_written(value) for value in (True, 200, 200.0, 0.65, "ml.m5.large", "1.10", "a: b", "")]
    ['true', '200', '200', '0.65', 'ml.m5.large', '"1.10"', '"a: b"', '""']
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    plain = _PLAIN.fullmatch(value) and not value.endswith(":") and ": " not in value
    return value if plain and isinstance(scalar(value), str) else json.dumps(value)


def _lines(text: str) -> list[str]:
    """Lines as editors count them; ``splitlines`` also splits at form feeds and U+2028."""
    return re.findall(r"[^\n]*\n|[^\n]+", text.removeprefix(_BOM).replace("\r\n", "\n"))


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
