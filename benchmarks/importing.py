"""What importing the package costs, and what it starts."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass

from .measure import WARMING, run

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

# Imports a package with everything below it, counting the processes that doing so starts.
_LIGHT = """
import importlib, json, pkgutil, sys, time
processes = []
events = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system")
sys.addaudithook(lambda event, _: processes.append(event) if event in events else None)
started = time.perf_counter()
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
seconds = time.perf_counter() - started
aws = sorted({n.split(".")[0] for n in sys.modules} & {"aws_cdk", "constructs", "jsii"})
print(json.dumps({"seconds": seconds, "processes": len(processes), "aws": aws}))
"""


@dataclass(frozen=True, slots=True)
class ImportCost:
    """Processor seconds for the AWS modules that the package uses, and for the package on top."""

    aws_modules: list[str]
    baseline: float
    package: float


@dataclass(frozen=True, slots=True)
class LightImport:
    """Seconds, processes started and CDK modules loaded by importing all of one sub-package."""

    seconds: float
    processes: int
    cdk_modules: list[str]


def import_cost(rounds: int) -> ImportCost:
    """Medians over the rounds, after one that compiles the modules and warms the disk's cache."""
    modules = run("-c", _AWS_MODULES).answer()
    answers = [run("-c", _ON_TOP, json.dumps(modules)).answer() for _ in range(rounds + WARMING)][
        WARMING:
    ]
    return ImportCost(
        modules,
        statistics.median(answer["baseline"] for answer in answers),
        statistics.median(answer["package"] for answer in answers),
    )


def light_import(package: str, rounds: int) -> LightImport:
    """Import a sub-package that is to work without Node.js."""
    answers = [run("-c", _LIGHT, package).answer() for _ in range(rounds + WARMING)][WARMING:]
    return LightImport(
        statistics.median(answer["seconds"] for answer in answers),
        max(answer["processes"] for answer in answers),
        answers[0]["aws"],
    )
