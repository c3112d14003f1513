"""Unpacking what users give: functions' code and models' data, never more than fits.

No entry comes to lie outside of its folder, and an archive that unpacks to more than its limit is
refused before the disk is full.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

LARGEST_CODE = 262_144_000
"""Bytes of a function's code, unpacked. Source: Lambda developer guide, "Lambda quotas"."""
MOST_ENTRIES = 100_000  # ours: AWS names no number
SMALL_DATA = 2**28
LARGEST_RATIO = 100
"""Model data of more than `SMALL_DATA` bytes may be so many times its archive. Ours: weights do not
pack well."""

_BROKEN = (
    EOFError,
    OSError,
    RuntimeError,
    UnicodeError,
    ValueError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


class Unpackable(Exception):
    """An archive cannot or must not be unpacked; the message says why."""


def check_code(code: bytes) -> None:
    """Refuse a function's archive that Lambda refuses."""
    try:
        with zipfile.ZipFile(io.BytesIO(code)) as archive:
            entries = archive.infolist()
    except _BROKEN:
        raise Unpackable(
            "Could not unzip uploaded file. Please check your file, then try to upload again."
        ) from None
    # No entry is read beyond the size that it declares.
    size = sum(entry.file_size for entry in entries)
    if size >= LARGEST_CODE:
        raise Unpackable(f"Unzipped size must be smaller than {LARGEST_CODE} bytes: {size}")
    if len(entries) > MOST_ENTRIES:
        raise Unpackable(_too_many(len(entries)))


def unpack_code(code: bytes, target: Path) -> None:
    """Unpack a function's archive into a new folder."""
    check_code(code)
    partial = target.with_name(f"{target.name}.part")
    try:
        with zipfile.ZipFile(io.BytesIO(code)) as archive:
            archive.extractall(partial)
    except _BROKEN as error:
        raise Unpackable(f"Could not unzip uploaded file: {error}") from None
    partial.rename(target)


def unpack_model_data(
    archive: BinaryIO, packed: int, target: Path, is_stopped: Callable[[], bool]
) -> None:
    """Unpack a model's tar archive, compressed with gzip as SageMaker wants it, into a folder."""
    limit = max(SMALL_DATA, LARGEST_RATIO * packed)
    try:
        with (
            gzip.GzipFile(fileobj=archive) as plain,
            tarfile.open(fileobj=_Bounded(plain, limit, is_stopped), mode="r|") as tar,
        ):
            for number, entry in enumerate(tar, 1):
                check_stopped(is_stopped)
                if number > MOST_ENTRIES:
                    raise Unpackable(_too_many(number))
                if entry.size > limit:  # a sparse file has more bytes than its archive
                    raise Unpackable(_too_large(limit))
                _extract(tar, entry, target)
    except _BROKEN as error:
        raise Unpackable(
            f"it is no tar archive compressed with gzip that can be unpacked: {error}"
        ) from None


def _extract(tar: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    """Unpack an entry within the folder; Python before 3.11.4 has no filters, so links are refused."""
    if hasattr(tarfile, "data_filter"):
        tar.extract(entry, target, filter="data")
        return
    inside = (target / entry.name).resolve().is_relative_to(target.resolve())
    if not inside or not (entry.isfile() or entry.isdir()):
        raise Unpackable(f"{entry.name}: links and other folders need Python 3.11.4 or newer")
    entry.mode = 0o755 if entry.isdir() else 0o644 | entry.mode & 0o111
    tar.extract(entry, target)


class _Bounded(io.RawIOBase):
    """Gives what another file gives, up to a limit."""

    def __init__(self, file: gzip.GzipFile, limit: int, is_stopped: Callable[[], bool]) -> None:
        self._file, self._is_stopped = file, is_stopped
        self._limit = self._left = limit

    def read(self, size: int = -1) -> bytes:
        """Read; what lies beyond the limit is an error."""
        check_stopped(self._is_stopped)
        data = self._file.read(min(size, 2**20) if size >= 0 else 2**20)
        self._left -= len(data)
        if self._left < 0:
            raise Unpackable(_too_large(self._limit))
        return data


def check_stopped(is_stopped: Callable[[], bool]) -> None:
    """Unpack no further for a server that nobody waits for."""
    if is_stopped():
        raise Unpackable("its server was stopped meanwhile")


def _too_large(limit: int) -> str:
    return (
        f"it unpacks to more than {limit} bytes; the local AWS takes {SMALL_DATA}, or "
        f"{LARGEST_RATIO} times the archive"
    )


def _too_many(count: int) -> str:
    return f"it has more than {MOST_ENTRIES} entries ({count} or more)"
