"""The model of the Hugging Face Hub that a run serves, in two commits that it pins itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from low_latency_endpoint.hugging_face.lock_file import pinned_model


class NotPinned(Exception):
    """The two commits are not there, or are one."""


@dataclass(frozen=True)
class HubModel:
    """A public model for CPUs that answers ``{"inputs": "..."}``, under a permissive licence."""

    name: str
    revisions: Sequence[str]
    """Two: the one that is deployed first, and the one that an update brings."""
    endpoint: str
    """The Hub, or a mirror of it."""
    folder: str
    """Where the lock files are: one for each run and revision."""

    def lock(self, suffix: str, number: int) -> Path:
        """The lock file of a run's first or second commit."""
        return Path(self.folder) / f"{suffix}-{number}.lock.yaml"

    def pin(self, suffix: str) -> list[str]:
        """Pin both revisions with ``low-latency pin``; gives their commits, which must differ."""
        commits = [
            self._pinned(self.lock(suffix, number), revision)
            for number, revision in enumerate(self.revisions, 1)
        ]
        if len(set(commits)) == 1:
            raise NotPinned(f"{' and '.join(self.revisions)} of {self.name} are one commit")
        return commits

    def _pinned(self, lock: Path, revision: str) -> str:
        lock.parent.mkdir(parents=True, exist_ok=True)
        command = Path(sys.executable).with_name("low-latency")
        done = subprocess.run(
            [command, "pin", self.name, "--revision", revision, "--lock", lock],
            env={**os.environ, "HF_ENDPOINT": self.endpoint},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotPinned(f"{self.name} at {revision}: {done.stderr.strip()}")
        return pinned_model(lock, self.name).commit
