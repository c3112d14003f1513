"""Git in a test's folder, with an author of its own and without the machine's settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in {
        "NAME": "name@example.com",
        "EMAIL": "email@example.com",
        "DATE": "2026-11-20T09:00:00Z",
    }.items()
}


def git(folder: Path, *arguments: str) -> str:
    """What Git answers; raises when it fails."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **_AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
