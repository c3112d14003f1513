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
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import ConfigurationError, SettingsError
from ..errors.findings import Place, path_of
from ..options.rules import (
    CHANGED_MEANWHILE,
    CHANGED_VALUE_TOO_ODD,
    LAYOUT_NOT_KEPT,
    UNREADABLE,
    UNWRITABLE,
)
from .loading import check_text
from .yaml_source import parse_yaml

if TYPE_CHECKING:
    from .stack import Settings


Value = str | int | float | bool

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Entry:
    """Key and value in place of another entry, whose inner comments go with it."""

    key: str
    value: Any

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"


Values = Mapping[Place, Value | Entry | Mapping[str, Any]]


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
    bare = text.removeprefix(_BOM)
    source = parse_yaml(bare)
    if source.problems:
        raise SettingsError(path, source.problems)
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
    return YamlEdit(path, text, text[: len(text) - len(bare)] + after)


def edit_settings_file(path: str | Path, values: Values) -> YamlEdit:
    """Set values in a settings file, without writing it; the changed settings are valid."""
    return checked_edit(path, values)[0]


def checked_edit(path: str | Path, values: Values) -> tuple[YamlEdit, Settings]:
    """As :func:`edit_settings_file`, and what the changed text says."""
    edit = edited_yaml(_read(path), values, path=str(path))
    return edit, check_text(edit.after, path)


def write_edit(edit: YamlEdit) -> None:
    """Write the changed text into its file, whole or not at all."""
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


def _changed(text: str, changes: Mapping[Place, Value | Entry], path: str) -> str:
    from .yaml_document import LayoutNotKeptError, NotSettableError, YamlDocument

    newline, where = "\r\n" if "\r\n" in text else "\n", path
    bare = text.replace("\r\n", "\n")
    if bare.replace("\n", newline) != text:
        raise _odd(path, "line ends of two kinds")
    try:
        document = YamlDocument(bare)
        for place, value in changes.items():
            where = path_of(place)
            if isinstance(value, Entry):
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
            fix=f"Write the line as allowed, or set by hand {by_hand}.",
        ) from None
    return document.text().replace("\n", newline)


def _odd(where: str, got: str) -> ConfigurationError:
    return CHANGED_VALUE_TOO_ODD.error(
        got=got, allowed="a plain value that stands alone, or none yet", where=where
    )


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


def _lines(text: str) -> list[str]:
    """Lines as editors count them; ``splitlines`` also splits at form feeds and U+2028."""
    return re.findall(r"[^\n]*\n|[^\n]+", text.removeprefix(_BOM).replace("\r\n", "\n"))


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
