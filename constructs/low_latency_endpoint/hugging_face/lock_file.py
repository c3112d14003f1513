"""The lock file of models: read at synthesis without the network, written by ``low-latency pin``."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..plan.pinned_model import LOCK_FILE, PinnedModel, lock_document, models_of, pinned_in

LOCK_NAME = "models.lock.yaml"
_HEAD = """\
# Written by `low-latency pin`, for version control. Not for editing: each model has a digest.
"""


def read_lock(path: str | Path, *, without: Collection[str] = ()) -> dict[str, PinnedModel]:
    """The models of a lock file, by name, `without` those that are being pinned again."""
    return models_of(_document(path), str(path), without=without)


def _document(path: str | Path) -> Any:
    """What a lock file holds."""
    from ..options.yaml_source import read_yaml  # with the first lock file, not with the constructs

    source = read_yaml(path)
    if source.problems:
        _, problem = source.problems[0]
        allowed = "a file that low-latency pin wrote"
        raise LOCK_FILE.error(got=problem.got, allowed=allowed, where=str(path))
    return source.values


def pinned_model(path: str | Path, model: str) -> PinnedModel:
    try:
        facts = Path(path).stat()
    except (OSError, ValueError):
        models = read_lock(path)  # which says what is wrong
    else:
        models = _read(str(path), facts.st_mtime_ns, facts.st_size)
    return pinned_in(models, model, str(path))


@lru_cache(maxsize=32)
def _read(path: str, modified: int, size: int) -> dict[str, PinnedModel]:
    """Read once for each change of a file: settings ask several times."""
    return read_lock(path)


def lock_text(models: Iterable[PinnedModel]) -> str:
    """The lock file's text; the same models give the same bytes."""
    from ..options.yaml_source import yaml_text

    return _HEAD + yaml_text(lock_document(models))


def write_lock(path: str | Path, models: Iterable[PinnedModel]) -> bool:
    """Write a lock file whole or not at all, link and rights kept; gives whether it differs."""
    from ..options.yaml_source import parse_yaml

    target = Path(path).resolve()
    written_text = lock_text(models)
    for _, problem in parse_yaml(written_text).problems:  # such as more than is read again
        allowed = f"{problem.allowed}; pin some models into another file (--lock)"
        raise LOCK_FILE.error(got=problem.got, allowed=allowed, where=str(path))
    text = written_text.encode()
    mode = None
    if target.exists():
        if target.read_bytes() == text:
            return False
        mode = target.stat().st_mode & 0o7777
        if not mode & 0o222:  # which a superuser, and a renaming, would pass over
            raise PermissionError(13, "it is read-only", str(path))
    handle, written = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(written, _usual_mode() if mode is None else mode)
        os.replace(written, target)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(written)
    return True


def _usual_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
