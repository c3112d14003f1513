"""A load test's file as the simulator reads it (docs/explanation/simulation.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import rule
from ..plan.load_test_validity import check_result_form, check_result_is_valid, read_result
from .fleet_changes import SIMULATED_INSTANCES
from .scenario import CONCURRENCY, SLOPE
from .service_laws import Empirical
from .traffic import RATE

LOAD_TEST_FILE = rule(
    "LLS123",
    "a load-test result cannot be read",
    fix="Give a JSON file with source, rate and service times (docs/explanation/simulation.md).",
)


@dataclass(frozen=True)
class LoadTestResult:
    """What a load test found of one fleet."""

    source: str
    rate: float | None  # of all instances; `None` where it looked for no limit
    service: Empirical  # of one request that has the instance to itself
    instances: int = 1
    concurrency: int | None = None
    slope: float = 0.0
    lower_bound: bool = False  # it did not reach its limit
    endpoint: str = ""
    instance_type: str = ""

    @property
    def rate_per_instance(self) -> float | None:
        """Requests per second of one instance."""
        return None if self.rate is None else self.rate / self.instances


def read_load_test_result(path: str | Path) -> LoadTestResult:
    """Read a load test's result; ``LLS123`` for another form, ``LLT114`` for an invalid one."""
    return load_test_result_of(read_result(path, LOAD_TEST_FILE), str(path))


def load_test_result_of(content: Any, where: str = "") -> LoadTestResult:
    """The result in the content of such a file."""
    check_result_form(content, LOAD_TEST_FILE, where)
    times = content.get("service_time_ms")
    if not isinstance(times, Mapping) or ("quantiles" in times) == ("samples" in times):
        raise LOAD_TEST_FILE.error(
            got=f"service_time_ms: {str(times)[:60]}",
            where=where,
            allowed='an object with either "quantiles" or "samples"',
        )
    if content.get("instances", 1) is None:
        raise LOAD_TEST_FILE.error(
            got="instances null: the load test could not read the number of instances",
            where=where,
            allowed="a number of instances",
            fix="Run the load test again with --instances.",
        )
    check_result_is_valid(content, where)
    concurrency, slope = content.get("concurrency"), content.get("slope") or 0.0
    if concurrency is not None:
        CONCURRENCY.check(concurrency, f"{where}: concurrency")
    instances = int(SIMULATED_INSTANCES.check(content.get("instances", 1), f"{where}: instances"))
    limit, fleet = content.get("limit"), content.get("fleet")
    return LoadTestResult(
        source=str(content.get("source") or where),
        rate=_rate(content, instances, where),
        service=_service(times, where),
        instances=instances,
        concurrency=None if concurrency is None else int(concurrency),
        slope=float(SLOPE.check(slope, f"{where}: slope")),
        lower_bound=isinstance(limit, Mapping) and bool(limit.get("lower_bound")),
        endpoint=str(content.get("endpoint") or ""),
        instance_type=str((fleet if isinstance(fleet, Mapping) else {}).get("instance_type") or ""),
    )


def _rate(content: Mapping[str, Any], instances: int, where: str) -> float | None:
    """The rate that the instances held: the limit that a plan uses, or the rate of a hand-written file."""
    if "limit" not in content:
        return float(RATE.check(content.get("rate"), f"{where}: rate"))
    limit = content["limit"]
    if not isinstance(limit, Mapping):
        return None
    check = RATE.check(limit.get("tps_per_instance"), f"{where}: limit.tps_per_instance")
    return float(check) * instances


def _service(times: Mapping[str, Any], where: str) -> Empirical:
    try:
        if "samples" in times:
            return Empirical.of_samples([_seconds(value) for value in times["samples"]])
        return Empirical.of_quantiles(
            {float(rank): _seconds(value) for rank, value in times["quantiles"].items()}
        )
    except (TypeError, ValueError, AttributeError) as problem:
        raise LOAD_TEST_FILE.error(
            got=f"service_time_ms: {problem}", allowed="numbers of milliseconds", where=where
        ) from None


def _seconds(milliseconds: Any) -> float:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        raise TypeError(f"{milliseconds!r} is no number")
    if not math.isfinite(milliseconds):
        raise ValueError(f"{milliseconds!r} is not finite")
    return milliseconds / 1000
