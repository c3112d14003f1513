"""``make nightly``: what takes too long for each change, one after the other, and a table of it.

Runs all parts even when one fails. What each printed, and the table, are in ``build/nightly/``.
``make nightly ARGS=fuzz`` runs one part.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "nightly"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: The last line of an output that says how much there was.
_FIGURES = (r"(?:\d+ failed, )?\d+ passed.*", r"[\d,]+ files from seed.*")


@dataclass(frozen=True)
class Part:
    """A command of the night."""

    name: str
    command: Sequence[str]
    #: Of a clone of HEAD instead of this checkout: the Python, and the versions of aws-cdk-lib.
    python: str = ""
    cdk: str = ""
    #: The library's other dependencies as new as their ranges let them be; the tools as pinned.
    upgrade: bool = False


def parts() -> list[Part]:
    """What runs, in order; a Python that is not on this machine is left out."""
    oldest, newest = _range_of_cdk()
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    constructs = ("make", "test", "ARGS=tests/synth tests/cli")
    return [
        Part("All tests, with ten times the examples", ("make", "test", "NIGHTLY=1")),
        Part("Tests in real time", ("make", "test-realtime")),
        Part("Made-up settings files", ("make", "fuzz", f"SEED={int(time.time()) // 86400}")),
        Part("Benchmarks", ("make", "bench")),
        *(
            Part(f"Python {version}", ("make", "test-fast"), version)
            for version in PYTHONS
            if version != here and shutil.which(f"python{version}")
        ),
        Part(f"aws-cdk-lib {oldest}, the oldest", constructs, here, f"=={oldest}"),
        Part("The newest dependencies", constructs, here, newest, upgrade=True),
    ]


def _range_of_cdk() -> tuple[str, str]:
    """The oldest version, and the range whose newest is meant."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (found,) = re.findall(r'"aws-cdk-lib(>=([\d.]+),[^"]*)"', text)
    return found[1], found[0]


def run(part: Part) -> tuple[bool, float, str]:
    """Whether it passed, its seconds, and the line that has its figures."""
    began = time.monotonic()
    log = LOGS / f"{re.sub(r'[^a-z0-9]+', '-', part.name.lower())}.log"
    with tempfile.TemporaryDirectory() as folder, log.open("w", encoding="utf-8") as output:
        try:
            where = _clone(part, Path(folder), output) if part.python else ROOT
            _call(part.command, where, output)
            passed = True
        except subprocess.CalledProcessError:
            passed = False
    text = log.read_text(encoding="utf-8", errors="replace")
    figures = [found for pattern in _FIGURES for found in re.findall(pattern, text)]
    return passed, time.monotonic() - began, figures[-1] if figures else ""


def _clone(part: Part, folder: Path, output: IO[str]) -> Path:
    """A clone of HEAD with that Python and aws-cdk-lib."""
    clone = folder / "clone"
    commands = [
        ["git", "clone", "-q", str(ROOT), str(clone)],
        ["make", "-C", str(clone), "setup", f"PYTHON=python{part.python}"],
    ]
    if part.cdk:
        binaries, cdk = clone / ".venv" / "bin", f"aws-cdk-lib{part.cdk}"
        install = [str(binaries / "uv"), "pip", "install", "--python", str(binaries / "python")]
        all_ranges = ["--upgrade", "-r", str(clone / "pyproject.toml"), "--all-extras"]
        commands += [
            [*install, *(all_ranges if part.upgrade else [cdk])],
            # Last, as the Makefile has it: its own aws_cdk/cloud_assembly_schema has to stay.
            [*install, "--no-deps", "--reinstall", cdk],
        ]
    for command in commands:
        _call(command, ROOT, output)
    return clone


def _call(command: Sequence[str], folder: Path, output: IO[str]) -> None:
    """Run a command without the caller's virtual environment, and without `make nightly`'s ARGS."""
    hidden = (
        "VIRTUAL_ENV",
        "MAKEFLAGS",
        "MAKELEVEL",
        "MFLAGS",
        "MAKEOVERRIDES",
        "ARGS",
        "NIGHTLY",
        "SEED",
    )
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    subprocess.run(
        command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, check=True
    )


def main() -> None:
    """Run every part, or those whose name has the word given, and write the table."""
    parser = argparse.ArgumentParser(prog="make nightly", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="a word of the names of parts")
    only = parser.parse_args().only.lower()
    LOGS.mkdir(parents=True, exist_ok=True)
    table = ["| Part | Result | Took | Figures |", "|---|---|---|---|"]
    failed = False
    for part in parts():
        if only not in part.name.lower():
            continue
        passed, seconds, figures = run(part)
        failed = failed or not passed
        result = "passed" if passed else "**failed**"
        table.append(f"| {part.name} | {result} | {seconds / 60:.0f} min | {figures} |")
        print(table[-1], flush=True)
    (LOGS / "table.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    print("What each part printed, and this table, are in build/nightly/")
    sys.exit(failed)


if __name__ == "__main__":
    main()
