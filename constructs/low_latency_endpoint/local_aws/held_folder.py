"""Temporary folders that go with their process, also when nobody could tidy up.

A process that is killed leaves its folders. Each folder is therefore locked while it is in use;
whoever makes the next one removes those of the same kind that nobody holds any longer.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

_YOUNG_SECONDS = 60.0
"""A folder that was made just now may not be locked yet."""


class HeldFolder:
    """A temporary folder; gone after `remove`, and at the process's end.

    Parameters
    ----------
    kind
        How the folder's name begins.
    """

    def __init__(self, kind: str) -> None:
        remove_abandoned(kind)
        self._folder = tempfile.TemporaryDirectory(prefix=kind, ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        self._lock = _locked(self.path)

    def remove(self) -> None:
        """Remove it; removing it twice is no error."""
        self._folder.cleanup()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def remove_abandoned(kind: str) -> None:
    """Remove this user's folders of a kind that no process holds."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{kind}*"):
        with contextlib.suppress(OSError):  # somebody else's, or gone meanwhile
            about = folder.lstat()
            old = time.time() - about.st_mtime > _YOUNG_SECONDS
            if about.st_uid != os.getuid() or not old or not folder.is_dir():
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
