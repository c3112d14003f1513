"""``make bench``: times as ratios measured in one run, each beside its goal.

Absolute times depend on the machine; the ratios much less, because the two sides of each take
turns. Takes six minutes on two cores; ``make bench-smoke`` runs every part once at its
smallest size, in under one, and says nothing about speed. Nothing here fails on a slow machine:
only a program that breaks, or two that no longer do the same work, ends it with an error.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import yaml

from .clients import clients
from .load_generator import load_generator
from .measure import (
    ROOT,
    SMALLEST,
    WARMING,
    BenchmarkFailed,
    Run,
    alternate,
    heading,
    line,
    run,
    sized,
)
from .simulating import simulating

# What a stack by hand would use, typed L1 constructs, takes 1.16 times the processor time of the
# generic ones here, and 65 MB more (medians of 9 alternating runs of each, 2026-11-28). The goals
# stay what they were against a stack by hand: 1.05 times its processor time, and its memory.
_RATIO_GOAL = 1.22
_MEMORY_GOAL_MB = 65
#: Endpoints in one settings file.
SIZES = sized((1, 3, 6), (1, 2))


def synthesis(rounds: int) -> None:
    """The pattern against the same resources as finished L1 constructs, read from its template."""
    heading("Synthesis of one endpoint: whole process, from the start of Python to its end")
    with tempfile.TemporaryDirectory() as folder:
        context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
        environment = {"CDK_CONTEXT_JSON": json.dumps(context)}
        template = Path(folder, "pattern", "Benchmark.template.json")
        programs = {
            "pattern": ["-m", "tools.benchmarks.pattern_app"],
            "l1": ["-m", "tools.benchmarks.l1_app", str(template)],
        }
        first = {}
        for name, arguments in programs.items():
            outdir = {"CDK_OUTDIR": str(Path(folder, name))}
            first[name] = [run(*arguments, environment={**environment, **outdir})]
        resources = same_resources(template, Path(folder, "l1", template.name))
        runs = first
        if not SMALLEST:
            outdir = {"CDK_OUTDIR": str(Path(folder, "out"))}
            runs = alternate(programs, rounds, {**environment, **outdir})
    pattern = runs["pattern"]
    l1 = runs["l1"]
    line("resources on each side, equal in every property", f"{resources}")
    line("processor seconds: medians", f"{cpu_seconds(pattern):.2f}, {cpu_seconds(l1):.2f} s")
    line(
        f"ratio of these, of {rounds} alternating runs each",
        f"{cpu_seconds(pattern) / cpu_seconds(l1):.2f}",
        f"{_RATIO_GOAL} or less",
    )
    peaks = [answer_median(runs_of_one, "peak") for runs_of_one in (pattern, l1)]
    line(
        "peak memory, Python and Node.js: LowLatencyEndpoint, L1",
        f"{peaks[0]:.0f}, {peaks[1]:.0f} MB",
        f"at most {_MEMORY_GOAL_MB} MB more",
    )
    for one, runs_of_one in (("LowLatencyEndpoint", pattern), ("L1", l1)):
        parts = [answer_median(runs_of_one, part) for part in ("build", "synth")]
        line(f"  of it {one}: building, then app.synth()", "{:.2f}, {:.2f} s".format(*parts))


def cpu_seconds(runs: list[Run]) -> float:
    """The median of processor seconds, which other work on the machine hardly touches."""
    return statistics.median(one.cpu_seconds for one in runs)


def answer_median(runs: list[Run], part: str) -> float:
    """The median of what the apps themselves report."""
    return statistics.median(float(one.answer()[part]) for one in runs)


def same_resources(template: Path, other: Path) -> int:
    """Count the resources of two templates; refuse to compare apps that create different things."""
    one, two = (
        json.loads(path.read_text(encoding="utf-8"))["Resources"] for path in (template, other)
    )
    if one != two:
        different = [name for name in {**one, **two} if one.get(name) != two.get(name)]
        raise BenchmarkFailed(f"l1_app.py makes these otherwise than the pattern: {different}")
    return len(one)


# Imports every public name, then says which modules of AWS's are loaded.
_AWS_MODULES = """
import json, sys
import low_latency_endpoint
for name in low_latency_endpoint.__all__:
    getattr(low_latency_endpoint, name)
print(json.dumps([n for n in sys.modules if n.split(".")[0] in ("aws_cdk", "constructs", "jsii")]))
"""

# Processor seconds, which another program's work hardly changes. First the baseline, then the
# package on top of it, in one process: as the difference of two processes, 50 ms would drown in
# the noise of the time that aws_cdk takes.
_ON_TOP = """
import importlib, json, sys, time
started = time.process_time()
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
baseline = time.process_time()
import low_latency_endpoint
for name in low_latency_endpoint.__all__:
    getattr(low_latency_endpoint, name)
ended = time.process_time()
print(json.dumps({"baseline": baseline - started, "package": ended - baseline}))
"""


def imports(rounds: int) -> None:
    """The package over what it uses of the CDK."""
    heading("Import: every public name of low_latency_endpoint")
    modules = run("-c", _AWS_MODULES).answer()
    # Medians, after a round that compiles the modules and warms the disk's cache.
    arguments = "-c", _ON_TOP, json.dumps(modules)
    runs = [run(*arguments) for _ in range(rounds + WARMING)][WARMING:]
    baseline, package = (answer_median(runs, part) for part in ("baseline", "package"))
    services = sorted(name for name in modules if name.startswith("aws_cdk.aws_"))
    services = [name.removeprefix("aws_cdk.") for name in services if name.count(".") == 1]
    text = (
        f"baseline: constructs, aws_cdk and {', '.join(services)}, imported first in the same "
        "process: what any app with these services pays anyway; processor time"
    )
    print(textwrap.fill(text, 98, initial_indent="  ", subsequent_indent="  "))
    line("baseline", f"{baseline * 1000:.0f} ms")
    line("the package on top", f"{package * 1000:.0f} ms", "30 ms or less")
    line("ratio", f"{(baseline + package) / baseline:.3f}")


def growth(rounds: int) -> None:
    """Synthesis of settings files with more and more endpoints."""
    heading("Growth: app.py with endpoint.yaml, whose endpoint stands there several times")
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    runs: dict[int, list[Run]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory() as folder:
        settings = {size: str(settings_with(size, Path(folder))) for size in SIZES}
        for number in range(rounds + WARMING):
            for size in SIZES:
                chosen = json.dumps({**context, "settings": settings[size]})
                environment = {"CDK_CONTEXT_JSON": chosen, "CDK_OUTDIR": str(Path(folder, "out"))}
                one = run("app.py", environment=environment)
                if number >= WARMING:
                    runs[size].append(one)
    seconds = {size: cpu_seconds(runs[size]) for size in SIZES}
    first, *others = SIZES
    line(f"{first} endpoint, processor time", f"{seconds[first]:.2f} s")
    for size in others:
        line(f"{size} endpoints against {first}", f"{seconds[size] / seconds[first]:.2f}")


def settings_with(endpoints: int, folder: Path) -> Path:
    """Write endpoint.yaml with its endpoint so many times; returns the file."""
    settings = yaml.safe_load((ROOT / "endpoint.yaml").read_text(encoding="utf-8"))
    ((key, endpoint),) = settings["endpoints"].items()
    settings["endpoints"] = {
        f"{key}{number}": {**endpoint, "endpoint_name": f"{key}-{number}"}
        for number in range(endpoints)
    }
    path = folder / f"{endpoints}.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


# Runs a command, then says which modules it loaded that are neither Python's nor ours.
_LIBRARIES = """
import json, sys, sysconfig
from low_latency_endpoint.cli import app
try:
    app()
except SystemExit:
    pass
installed = sysconfig.get_path("purelib")
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
print(json.dumps([name for name, file in files.items() if file.startswith(installed)]))
"""
_IMPORT_ALL = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
"""


def command_line(rounds: int) -> None:
    """What a user waits for at the prompt, against a Python that only imports the same libraries."""
    heading("Command line: whole process, processor time")
    program = str(Path(sys.executable).parent / "low-latency")
    for command in ("--help", "plan"):
        libraries = run("-c", _LIBRARIES, command).answer()
        programs = {
            "command": [program, command],
            "libraries": ["-c", _IMPORT_ALL, json.dumps(libraries)],
        }
        runs = alternate(programs, rounds)
        ours = cpu_seconds(runs["command"])
        bare = cpu_seconds(runs["libraries"])
        text = f"{ours * 1000:.0f}, {bare * 1000:.0f} ms"
        line(f"low-latency {command}, and Python with its libraries", text)
        line("ratio", f"{ours / bare:.2f}")
    line("low-latency plan --against, over plan", f"{_against(program, rounds):.1f}")


def _against(program: str, rounds: int) -> float:
    """The processor time of a comparison, with Node.js, as a multiple of that of ``plan``."""
    settings = (ROOT / "endpoint.yaml").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        former = Path(folder, "former.yaml")
        former.write_text(settings.replace("p99: 200ms", "p99: 220ms"), encoding="utf-8")
        programs = {
            "plan": [program, "plan"],
            "against": [program, "plan", "--against", str(former)],
        }
        runs = alternate(programs, rounds)
    return cpu_seconds(runs["against"]) / cpu_seconds(runs["plan"])


def main() -> int:
    """Run all benchmarks, or the ones named."""
    parts = {
        "imports": (imports, 7),
        "synthesis": (synthesis, 11),
        "growth": (growth, 3),
        "command_line": (command_line, 7),
        "clients": (clients, 5),
        "simulating": (simulating, 5),
        "load_generator": (load_generator, 3),
    }
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(parts)}")
    parser.add_argument("--rounds", type=int, help="measured rounds per part")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(parts):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    started = time.monotonic()
    try:
        for name in arguments.parts or parts:
            measure, rounds = parts[name]
            begun = time.monotonic()
            measure(arguments.rounds or sized(rounds, 1))
            print(f"  ({name}: {time.monotonic() - begun:.0f} s)", flush=True)
    except BenchmarkFailed as failure:
        print(f"\nFailed: {failure}", file=sys.stderr)
        return 1
    if SMALLEST:
        print("\nEvery part at its smallest size: the figures above mean nothing.")
    print(f"\n{time.monotonic() - started:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
