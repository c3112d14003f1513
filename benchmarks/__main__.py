"""``make bench``: times as ratios measured in one run, each beside its goal.

Absolute times depend on the machine; the ratios much less, because the two sides of each take
turns. Takes four to five minutes on two cores; ``make bench-smoke`` runs every part once at its
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
from collections import Counter
from pathlib import Path

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
from .token_load import token_load


def synthesis(rounds: int) -> None:
    """The pattern against the same resources written by hand as L1 constructs."""
    heading("Synthesis of one endpoint: whole process, from the start of Python to its end")
    with tempfile.TemporaryDirectory() as folder:
        environment = {"CDK_CONTEXT_JSON": json.dumps(context())}
        counts: dict[str, Counter[str]] = {}
        counted: dict[str, list[Run]] = {}
        for app in ("pattern_app", "handwritten_l1_app"):
            output = Path(folder, app)
            counted[app] = [
                run(
                    "-m",
                    f"benchmarks.{app}",
                    environment={**environment, "CDK_OUTDIR": str(output)},
                )
            ]
            counts[app] = resource_types(output)
        require_same(counts["pattern_app"], counts["handwritten_l1_app"])
        runs = (
            counted
            if SMALLEST
            else alternate(
                {app: ["-m", f"benchmarks.{app}"] for app in counts},
                rounds,
                {**environment, "CDK_OUTDIR": str(Path(folder, "out"))},
            )
        )
    pattern, handwritten = runs["pattern_app"], runs["handwritten_l1_app"]
    total = sum(counts["pattern_app"].values())
    line("resources on each side (same types, same counts)", f"{total}")
    line(
        "processor seconds: medians",
        f"{cpu_seconds(pattern):.2f}, {cpu_seconds(handwritten):.2f} s",
    )
    line(
        f"ratio of these, of {rounds} alternating runs each",
        f"{cpu_seconds(pattern) / cpu_seconds(handwritten):.2f}",
        "1.05 or less",
    )
    peaks = [answer_median(runs_of_one, "peak") for runs_of_one in (pattern, handwritten)]
    line(
        "peak memory, Python and Node.js: LowLatencyEndpoint, by hand",
        f"{peaks[0]:.0f}, {peaks[1]:.0f} MB",
        "no more than by hand",
    )
    for one, runs_of_one in (("LowLatencyEndpoint", pattern), ("by hand", handwritten)):
        parts = [answer_median(runs_of_one, part) for part in ("build", "synth")]
        line(f"  of it {one}: building, then app.synth()", "{:.2f}, {:.2f} s".format(*parts))


def cpu_seconds(runs: list[Run]) -> float:
    """The median of processor seconds, which other work on the machine hardly touches."""
    return statistics.median(one.cpu_seconds for one in runs)


def answer_median(runs: list[Run], part: str) -> float:
    """The median of what the apps themselves report."""
    return statistics.median(float(one.answer()[part]) for one in runs)


def context() -> dict[str, object]:
    """The feature flags of cdk.json: what `cdk deploy` gives the app."""
    configuration = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))
    return dict(configuration["context"])


def resource_types(assembly: Path) -> Counter[str]:
    """How many resources of each type the app's one template holds."""
    (template,) = assembly.glob("*.template.json")
    resources = json.loads(template.read_text(encoding="utf-8"))["Resources"]
    return Counter(resource["Type"] for resource in resources.values())


def require_same(pattern: Counter[str], handwritten: Counter[str]) -> None:
    """Refuse to compare apps that create different things."""
    if pattern != handwritten:
        raise BenchmarkFailed(
            "handwritten_l1_app.py no longer creates what LowLatencyEndpoint creates.\n"
            f"only in the pattern: {dict(pattern - handwritten)}\n"
            f"only by hand: {dict(handwritten - pattern)}"
        )


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


def main() -> int:
    """Run all benchmarks, or the ones named."""
    parts = {
        "imports": (imports, 7),
        "synthesis": (synthesis, 11),
        "clients": (clients, 5),
        "simulating": (simulating, 5),
        "load_generator": (load_generator, 3),
        "token_load": (token_load, 3),
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
