"""Commands as a reader types them: one shell, one folder, one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .console_blocks import ROOT

_END = "-- end of command"


@dataclass(frozen=True)
class Typed:
    """What a command printed, and its exit status."""

    command: str
    printed: str
    status: int


def typed(
    commands: Sequence[str], folder: Path, environment: Mapping[str, str], *, timeout: float
) -> list[Typed]:
    """Run commands in one shell, as after ``source .venv/bin/activate``.

    What they started in the background is gone afterwards.
    """
    script = folder / ".typed.sh"
    end = f"status=$?; echo; echo '{_END}' $status"
    script.write_text("\n".join(["set -m", *(f"{each}\n{end}" for each in commands), ""]))
    path = [str(Path(sys.executable).parent), str(ROOT / "node_modules" / ".bin")]
    with subprocess.Popen(
        ["bash", str(script)],
        cwd=folder,
        env={
            **environment,
            "PATH": os.pathsep.join([*path, environment["PATH"]]),
            "COLUMNS": "80",
            "PYTHONUNBUFFERED": "1",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # a terminal shows both
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            output, _ = shell.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as late:
            so_far = (late.output or b"").decode()
            raise AssertionError(f"not done after {timeout:.0f} s:\n{so_far[-3000:]}") from late
        finally:
            subprocess.run(["pkill", "-KILL", "-s", str(shell.pid)], check=False)
    first, *others = output.split(f"\n{_END} ")
    assert len(others) == len(commands), output[-3000:]
    printed = [first, *(each.partition("\n")[2] for each in others)]
    statuses = [int(each.partition("\n")[0]) for each in others]
    return [
        Typed(command, text.strip("\n") + "\n", status)
        for command, text, status in zip(commands, printed, statuses, strict=False)
    ]
