"""Temporary folders that go with their process, also when nobody could tidy up.

A process that is killed leaves its folders. Each folder is therefore locked while it is in use;
whoever makes the next one removes those that nobody holds any longer.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

KINDS = ("local-aws-", "local-lambda-code-", "local-task-")
_UNBORN_SECONDS = 60.0
"""A folder is locked before it gets its name; one still without it after so long has no process."""


class HeldFolder:
    """A temporary folder; gone after `remove`, and at the process's end."""

    def __init__(self, kind: str) -> None:
        remove_abandoned()
        # The lock goes with the folder, whatever its name: nobody ever sees it unlocked.
        unborn = Path(tempfile.mkdtemp(prefix=f".{kind}"))
        self._lock = _locked(unborn)
        self.path = unborn.rename(unborn.with_name(unborn.name.removeprefix(".")))
        self._removal = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def remove(self) -> None:
        """Remove it; removing it twice is no error."""
        self._removal()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def remove_abandoned() -> None:
    """Remove this user's folders, of all kinds, that no living process holds."""
    if fcntl is None:
        return
    temporary = Path(tempfile.gettempdir())
    for folder in [
        temporary / name
        for name in os.listdir(temporary)
        if name.removeprefix(".").startswith(KINDS)
    ]:
        with contextlib.suppress(OSError):  # somebody else's, or gone meanwhile
            about = folder.lstat()
            young = time.time() - about.st_mtime < _UNBORN_SECONDS
            unborn = young and folder.name.startswith(".")
            if about.st_uid != os.getuid() or unborn or not folder.is_dir():
                continue
            lock = _locked(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """The lock's file descriptor; None when somebody else has it, or locks are not to be had."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
