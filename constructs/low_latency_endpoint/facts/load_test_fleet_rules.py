"""Limits and rules of the load-test fleet: what a task can be, and what it needs around it."""

from __future__ import annotations

from ..errors import ConfigurationError, rule
from .limit_kinds import USE_AN_ALLOWED_VALUE, Choice, number_range

_TASK_SIZE = "/AmazonECS/latest/developerguide/task_definition_parameters.html#task_size"

MASTER_PORT = 5557
"""On which Locust's master listens to its workers."""

RUNS_PREFIX = "runs/"
"""Where in the results bucket every run has a folder of its own."""

PARAMETER_PREFIX = "/low-latency-endpoint/load-test-fleet/"
"""Systems Manager parameters that describe the fleet of an endpoint begin so."""

CLIENT_NOT_INSTALLED = rule(
    "LLE567",
    "the load generator's image needs a package that is not installed",
    fix="Install the wheel of low_latency_client, which `make wheel` builds beside the library's.",
)


def _steps(first: int, last: int, step: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1, step))


_MEMORY_BY_CPU: dict[int, tuple[int, ...]] = {
    256: (512, 1024, 2048),
    512: _steps(1024, 4096, 1024),
    1024: _steps(2048, 8192, 1024),
    2048: _steps(4096, 16_384, 1024),
    4096: _steps(8192, 30_720, 1024),
    8192: _steps(16_384, 61_440, 4096),
    16_384: _steps(32_768, 122_880, 8192),
    32_768: (61_440, 122_880, 249_856),
}

TASK_CPU = Choice(
    rule(
        "LLE560",
        "the task's CPU units are not a Fargate size",
        fix="1024 units are one vCPU. More vCPUs help only if payloads are slow to make.",
        source=_TASK_SIZE,
    ),
    "the CPU units of a task",
    tuple(_MEMORY_BY_CPU),
)
MEMORY_MIB = rule(
    "LLE561",
    "the task's memory does not fit its CPU units",
    fix="Choose a memory size that Fargate offers with them.",
    source=_TASK_SIZE,
)
RESULTS_RETENTION = number_range(
    "LLE563",
    "the retention of results",
    1,
    3650,
    unit="days",
    source="/AmazonS3/latest/API/API_LifecycleExpiration.html",
    fix="Give whole days.",
)
LOG_RETENTION = Choice(
    rule(
        "LLE564",
        "CloudWatch Logs does not offer this retention",
        fix=USE_AN_ALLOWED_VALUE,
        source="/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html",
    ),
    "the days for which the log is kept",
    (
        1,
        3,
        5,
        7,
        14,
        30,
        60,
        90,
        120,
        150,
        180,
        365,
        400,
        545,
        731,
        1096,
        1827,
        2192,
        2557,
        2922,
        3288,
        3653,
    ),
)
ENDPOINT_KIND = rule(
    "LLE566",
    "the fleet's endpoint is not named",
    fix="Pass the Endpoint construct, or the name of an existing endpoint.",
)


def check_task_size(cpu: int, memory_mib: int, where: str = "") -> None:
    """Check that Fargate has tasks of this size."""
    TASK_CPU.check(cpu, where)
    allowed = _MEMORY_BY_CPU[cpu]
    if memory_mib not in allowed:
        raise _wrong_memory(cpu, memory_mib, allowed, where)


def _wrong_memory(
    cpu: int, memory_mib: object, allowed: tuple[int, ...], where: str
) -> ConfigurationError:
    shown = (
        ", ".join(map(str, allowed))
        if len(allowed) == 3
        else f"{allowed[0]} to {allowed[-1]} MiB in steps of {allowed[1] - allowed[0]}"
    )
    return MEMORY_MIB.error(
        got=f"{memory_mib!r} MiB with {cpu} CPU units", allowed=shown, where=where
    )


def descriptions_path(endpoint_name: str) -> str:
    """Path of the parameters that describe an endpoint's fleets, one for each stack with one."""
    return f"{PARAMETER_PREFIX}{endpoint_name}"
