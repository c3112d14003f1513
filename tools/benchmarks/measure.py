"""Times of whole processes, alternating so that a busy moment of the machine meets both sides."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Size = TypeVar("Size")
ROOT = Path(__file__).resolve().parents[2]
# This environment's Node.js, under `make bench` or not.
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# `make bench-smoke`: every part once, so small that its figures mean nothing. The programs that are
# measured read the same variable.
SMALLEST = "BENCH_SMALLEST" in os.environ
# An installed package is compiled once, aws_cdk's too. Where this variable is set, ours would be
# compiled again in each run, and each figure would be one of Python's compiler.
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def sized(full: Size, smallest: Size) -> Size:
    """The size of a part: what gives a figure, or what only shows that it runs."""
    return smallest if SMALLEST else full


def heading(text: str) -> None:
    """A title over the lines that follow."""
    print(f"\n{text}", flush=True)


def line(what: str, result: str, goal: str = "") -> None:
    """One result, with its goal when it has one."""
    print(f"  {what:<58} {result:>12}   {goal and 'goal ' + goal}".rstrip(), flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


#: Rounds that count for nothing, before those that do.
WARMING = sized(1, 0)


class BenchmarkFailed(Exception):
    """A measured program ended with an error, or did not do what is measured."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a program: seconds of processors, and what it printed.

    ``cpu_seconds`` counts the program's own processes too (Node.js), and hardly depends on what
    else the machine does.
    """

    cpu_seconds: float
    output: str

    def answer(self) -> Any:
        """The JSON on the last line of the output."""
        return json.loads(self.output.strip().splitlines()[-1])


def run(*arguments: str, environment: Mapping[str, str] | None = None) -> Run:
    """Run this Python with the arguments, from the top of the checkout."""
    used = _cpu_seconds_of_children()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={
            **_ENVIRONMENT,
            "PATH": PATH,
            "JSII_RUNTIME_PACKAGE_CACHE": "enabled",
            **(environment or {}),
        },
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BenchmarkFailed(f"python {' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return Run(_cpu_seconds_of_children() - used, done.stdout)


def peak_megabytes() -> float:
    """The most memory that this process and those it started have had, each at its own peak.

    Called by the measured programs before they end; Linux tells it of processes that run.
    """
    below = {os.getpid()}
    peak = 0.0
    for status in sorted(Path("/proc").glob("[0-9]*/status"), key=lambda path: int(path.parts[2])):
        try:
            found = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it has ended
            continue
        number = int(found["Pid"])
        if number in below or int(found["PPid"]) in below:
            below.add(number)
            peak += int(found.get("VmHWM", "0 kB").split()[0]) / 1024
    return peak


def _cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def alternate(
    programs: Mapping[str, Sequence[str]], rounds: int, environment: Mapping[str, str] | None = None
) -> dict[str, list[Run]]:
    """Run all programs once per round, after a first round that only warms the disk's cache."""
    runs: dict[str, list[Run]] = {name: [] for name in programs}
    for number in range(rounds + WARMING):
        for name, arguments in programs.items():
            one = run(*arguments, environment=environment)
            if number >= WARMING:
                runs[name].append(one)
    return runs
