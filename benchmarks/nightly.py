"""``make nightly``: what is too long for each change, one after the other, and a page of what came of it.

Runs all even when one fails. The page is ``docs/reference/nightly.md``; what each printed is in
``build/nightly/``. ``make nightly ARGS=fuzz`` runs one part again, and renews its row of the page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "nightly.md"
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


@dataclass(frozen=True)
class Result:
    """How a part went, and of which commit."""

    commit: str
    day: str
    passed: bool
    seconds: float
    figures: str


def head() -> str:
    """The commit of this checkout."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def page(results: Mapping[str, Result]) -> str:
    """The page, and the benchmarks' figures below the table."""
    table = "\n".join(
        f"| {part.name} | {'passed' if result.passed else '**failed**'} | {result.seconds / 60:.0f} min "
        f"| {result.commit}, {result.day} | {result.figures} |"
        if (result := results.get(part.name))
        else f"| {part.name} | not run | | | |"
        for part in parts()
    )
    bench = LOGS / "benchmarks.log"
    measured = bench.read_text(encoding="utf-8").strip() if bench.exists() else "not run"
    return f"""# The last nightly run

`make nightly` runs what takes too long for each change, and writes this page. Python
{platform.python_version()}, {os.cpu_count()} processors.

| Part | Result | Took | Commit | Figures |
|---|---|---|---|---|
{table}

## Benchmarks

Ratios are measured in one run; absolute times depend on the machine.

```text
{measured}
```
"""


def main() -> None:
    """Run every part, or those whose name has the word given."""
    parser = argparse.ArgumentParser(prog="make nightly", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="a word of the names of parts")
    only = parser.parse_args().only.lower()
    LOGS.mkdir(parents=True, exist_ok=True)
    kept = LOGS / "results.json"
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    results = {name: Result(**result) for name, result in known.items()}
    chosen = [part for part in parts() if only in part.name.lower()]
    for part in chosen:
        commit, day = head(), f"{datetime.now(UTC):%Y-%m-%d}"
        result = results[part.name] = Result(commit, day, *run(part))
        said = "passed" if result.passed else "FAILED"
        print(f"{part.name:40} {said:7} {result.seconds:6.0f} s  {result.figures}", flush=True)
        kept.write_text(json.dumps({name: asdict(of) for name, of in results.items()}, indent=1))
    PAGE.write_text(page(results), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}; what each part printed is in build/nightly/")
    sys.exit(not all(results[part.name].passed for part in chosen))


if __name__ == "__main__":
    main()
