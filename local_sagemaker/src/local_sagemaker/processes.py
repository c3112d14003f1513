"""Processes of functions and tasks on this machine: their environment and folders; nothing stays behind.

A process that is killed leaves its folders. Each folder is therefore locked while it is in use;
whoever makes the next one removes those that nobody holds any longer.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from .admission import Credentials, Session, credentials_at

# Variables by which a process could be turned towards a real account.
_REDIRECTING = (
    "AWS_ACCESS_KEY",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_",
    "AWS_DEFAULT_PROFILE",
    "AWS_ENDPOINT_URL",
    "AWS_IGNORE_CONFIGURED",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_SECRET",
    "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS",
    "AWS_WEB_IDENTITY",
)


def process_environment(
    own: Mapping[str, str], scratch: str, *, region: str, url: str, session: Session | None = None
) -> dict[str, str]:
    """What the user has set, in a world that holds the local AWS and nothing else."""
    return {
        **{name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ},
        "HOME": scratch,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        **{name: value for name, value in own.items() if not name.startswith(_REDIRECTING)},
        **aws_variables(region, url, session or credentials_at(url)),
    }


def aws_variables(region: str, url: str, credentials: Credentials | Session) -> dict[str, str]:
    """The variables by which a process finds the local AWS at a URL, and no account."""
    keys = {
        "AWS_ACCESS_KEY_ID": credentials.access_key,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
        "AWS_SESSION_TOKEN": getattr(credentials, "session_token", ""),
    }
    return {
        **{name: value for name, value in keys.items() if value},
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL": url,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


_SUPERVISOR = Path(__file__).with_name("process_supervisor.py")


class SupervisedProcess:
    """A process beside its `process_supervisor`."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str | Path | None = None,
        *,
        grace: float = 2.0,
        output: int = subprocess.PIPE,
    ) -> None:
        self.grace = grace
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_SUPERVISOR), str(grace), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
        )

    @property
    def output(self) -> IO[bytes]:
        """What it writes, where that is a pipe."""
        return cast(IO[bytes], self._process.stdout)

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status; subprocess.TimeoutExpired when that takes longer."""
        return self._process.wait(timeout)

    def terminate(self) -> None:
        """Send it SIGTERM. Does not wait."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def hang_up(self) -> None:
        """Have it end within the grace, with all of its children. Does not wait."""
        with contextlib.suppress(OSError):
            cast(IO[bytes], self._process.stdin).close()

    def end(self, patience: float) -> None:
        """Wait for its end, which comes after the patience and the grace at the latest."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(patience)
        self.hang_up()
        try:
            self.wait(self.grace + 10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.wait()


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
    """The lock's file descriptor; None when somebody else has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
