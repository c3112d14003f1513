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
MOST_BYTES = 1_000_000
"""Of a lock file, as of a settings file: some 5,000 files of models."""
_DEEPEST = 50  # levels; a lock file has five
_MOST_EVENTS = 50_000  # six for each file of a model
_HEAD = """\
# Written by `low-latency pin`, for version control. Not for editing: each model has a digest.
"""


def read_lock(path: str | Path, *, without: Collection[str] = ()) -> dict[str, PinnedModel]:
    """The models of a lock file, by name, `without` those that are being pinned again."""
    return models_of(_document(path), str(path), without=without)


def _document(path: str | Path) -> Any:
    """What a lock file holds; aliases and tags, which ``pin`` never writes, are refused."""
    import yaml  # with the first lock file, and not with the constructs

    # libyaml's where it is there: ten times as fast, and lock files of large models are long.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES:,} bytes")
        text = content.decode()
        depth = 0
        for number, event in enumerate(yaml.parse(text, Loader=loader)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:  # composing 50,000 levels ends the process
                raise ValueError("very deep nesting")
            if number > _MOST_EVENTS:
                raise ValueError(f"more than {_MOST_EVENTS:,} keys and values")
            if getattr(event, "anchor", None) or getattr(event, "tag", None):
                raise ValueError("an anchor, an alias or a tag")
        return yaml.load(text, Loader=loader)
    except (OSError, ValueError, OverflowError, yaml.YAMLError) as problem:
        got = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise LOCK_FILE.error(
            got=got or "an error", allowed="a file that low-latency pin wrote", where=str(path)
        ) from None


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
    import yaml

    class Plain(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    document = lock_document(models)
    written = yaml.dump(document, Dumper=Plain, sort_keys=False, width=200, allow_unicode=True)
    return _HEAD + written


def write_lock(path: str | Path, models: Iterable[PinnedModel]) -> bool:
    """Write a lock file whole or not at all, link and rights kept; gives whether it differs."""
    target = Path(path).resolve()
    text = lock_text(models).encode()
    if len(text) > MOST_BYTES:
        raise LOCK_FILE.error(
            got=f"{len(text):,} bytes for all models",
            allowed=f"up to {MOST_BYTES:,}; pin some into another file (--lock)",
            where=str(path),
        )
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
