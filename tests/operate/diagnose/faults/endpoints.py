"""Endpoints that several faults are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..scenarios import ENDPOINT, Scaled, Scenario, constant
from .fault import between, from_minute, slow, up_to

ZONES = ("us-east-1a", "us-east-1b")

#: Minutes without a rhythm, a fifth of all, and never two of three.
SINGLE = {3, 6, 15, 19, 22, 30, 34, 43, 46, 53, 62, 66, 75, 78, 90, 96, 104, 107}
#: An alarm that two minutes on end do not put on.
THREE_OF_FIVE = {"EvaluationPeriods": 5, "DatapointsToAlarm": 3}


def not_started(**more: Any) -> Scenario:
    """An endpoint that is being created for 40 minutes, without a log group."""
    values: dict[str, Any] = {
        "instance_type": "ml.g6e.2xlarge",
        "status": "Creating",
        "created": 20,
        "log_group": False,
        "tps": constant(0),
        "scaling": None,
        "image": "vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker",
    }
    return Scenario(**(values | more))


def saturated(**more: Any) -> Scenario:
    """Full instances from minute 25 on: too much load, CPU at its end, slow answers."""
    values: dict[str, Any] = {
        "tps": from_minute(25, 600, 1900),
        "cpu": from_minute(25, 45, 97),
        "latency": slow(25, 60, 300),
        "in_flight": from_minute(25, 24, 570),
        "scaling": up_to(8),
    }
    return Scenario(**(values | more))


def scale_out_failed(message: str, **more: Any) -> Scenario:
    failed = [Scaled(28 + 4 * n, 15, "Failed", message) for n in range(3)]
    return saturated(scaling=up_to(16), activities=failed, **more)


def cold_after_scale_out(to: int = 8, *, until: int = 33, **more: Any) -> Scenario:
    """New instances are ten times slower for some minutes."""
    values: dict[str, Any] = {
        "tps": from_minute(20, 500, 1000),
        "instances": from_minute(27, 5, to),
        "cpu": from_minute(20, 30, 55),
        "latency": slow(27, until, 400, instances=range(5, to)),
        "activities": [Scaled(21, to, took=6)],
    }
    return Scenario(**(values | more))


def since_deployment(**more: Any) -> Scenario:
    """Eight instances of a model that is asked for one thing at a time, new for six minutes."""
    of = {"tps": constant(9.5), "cpu": constant(2), "planned": None, "scaling": None}
    thresholds = {("ModelLatency", "p99"): 1500.0}
    return Scenario(**(of | {"deployed": 54, "thresholds": thresholds} | more))


def asked_late(**more: Any) -> Scenario:
    """An endpoint created in minute 5, which gets its first request in minute 35."""
    values: dict[str, Any] = {
        "created": 5,
        "tps": from_minute(35, 0, 300),
        "cpu": constant(20),
        "planned": None,
        "scaling": None,
    }
    return Scenario(**(values | more))


def cold_then_saturated(**more: Any) -> Scenario:
    """Cold for eight minutes after a scale-out to the maximum; later full for twelve."""
    values: dict[str, Any] = {
        "tps": between(40, 52, 950, 500),
        "cpu": between(40, 52, 97, 40),
        "latency": lambda m, i: 400 if 18 <= m < 26 else 300 if 40 <= m < 52 else 40,
        "instances": from_minute(18, 6, 8),
        "scaling": up_to(8),
        "in_flight": between(40, 52, 285, 20),
        "planned": None,
        "activities": [Scaled(13, 8)],
    }
    return Scenario(**(values | more))


def gpu(**more: Any) -> Scenario:
    return Scenario(**({"instance_type": "ml.g5.xlarge", "gpu": constant(55)} | more))


def by_concurrency(most: int, used: float, **more: Any) -> Scenario:
    """Scaled by requests in flight, four on each instance; from minute 25 on there are forty."""
    values: dict[str, Any] = {
        "gpu": from_minute(25, 40, used),
        "cpu": constant(20),
        "tps": from_minute(25, 8, 24),
        "in_flight": from_minute(25, 3, 40),
        "latency": slow(25, 60, 900),
        "planned": None,
        "scaling": up_to(most, 4.0)
        | {"metric": "SageMakerVariantConcurrentRequestsPerModelHighResolution"},
    }
    return gpu(**(values | more))


def started_too_early(metric: str, took: float = 4) -> Scenario:
    """The first minute of each new instance fails."""
    return Scenario(
        instances=lambda m: 5 if m < 24 else 6 if m < 44 else 7,
        tps=lambda m: 500 if m < 15 else 600 if m < 35 else 700,
        errors={metric: lambda m: 0.22 if m in (24, 44) else 0},
        activities=[Scaled(20, 6, took=took), Scaled(40, 7, took=took)],
    )


def named(**dimensions: str) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in dimensions.items()]


def custom_metric(statistic: str, **dimensions: str) -> dict[str, Any]:
    """A customized metric of a policy."""
    return {
        "Namespace": "AWS/SageMaker",
        "MetricName": "InvocationsPerInstance",
        "Dimensions": named(EndpointName=ENDPOINT, **dimensions),
        "Statistic": statistic,
    }


def limited(milliseconds: float) -> dict[str, Any]:
    """One alarm on p99, and no plan."""
    return {"thresholds": {("ModelLatency", "p99"): milliseconds}, "planned": None}


def pinned(**more: Any) -> Scenario:
    """All instances that scaling may start, with next to nothing to do."""
    values: dict[str, Any] = {
        "instances": constant(16),
        "cpu": constant(12),
        "planned": None,
        "scaling": up_to(16, 100.0),
    }
    return Scenario(**(values | more))


def stuck(**more: Any) -> Scenario:
    """Six times the target for an hour, and no activity."""
    values: dict[str, Any] = {
        "instances": constant(2),
        "cpu": constant(55),
        "scaling": up_to(16, 3000.0),
    }
    return Scenario(**(values | more))


def unanswered(**more: Any) -> Scenario:
    """From minute 20 on the load is doubled and the GPU full; no instance is added in 40 minutes."""
    values: dict[str, Any] = {
        "instance_type": "ml.g5.xlarge",
        "gpu": from_minute(20, 60, 100),
        "tps": from_minute(20, 600, 1200),
        "latency": slow(20, 60, 300),
        "in_flight": from_minute(20, 24, 360),
        "planned": None,
    }
    return Scenario(**(values | more))


def flapping(**more: Any) -> Scenario:
    """Out and in every ten minutes."""
    values: dict[str, Any] = {
        "tps": constant(300),
        "instances": lambda m: 3 if m % 20 < 10 else 2,
        "activities": [Scaled(10 * n - 1, 2 if n % 2 else 3, took=1) for n in range(6)],
    }
    return Scenario(**(values | more))


def one_core(**more: Any) -> Scenario:
    """A single worker on four CPUs, with more to do than it can."""
    values: dict[str, Any] = {
        "instance_type": "ml.m5.xlarge",
        "instances": constant(1),
        "tps": constant(13),
        "latency": slow(0, 60, 145),
        "spread": 0.4,
        "cpu": constant(24),
        "in_flight": constant(3),
        "scaling": None,
        "planned": None,
    }
    return Scenario(**(values | more))


def four_workers(**more: Any) -> Scenario:
    """Requests of 57 ms of a CPU that queue for four workers of 100 ms, all the time."""
    values: dict[str, Any] = {
        "instance_type": "ml.c6i.2xlarge",
        "instances": constant(6),
        "scaling": {"min": 6, "max": 12, "target": 2700.0},
        "planned": None,
        "thresholds": {("ModelLatency", "p99"): 600.0},
        "tps": constant(228),
        "latency": slow(0, 60, 340),
        "spread": 0.637,
        "cpu": constant(27),
        "in_flight": constant(31),
    }
    return Scenario(**(values | more))


def batches(**more: Any) -> Scenario:
    """Each request waits a second for others to fill its batch, since few come."""
    values: dict[str, Any] = {
        "instance_type": "ml.g5.xlarge",
        "instances": constant(1),
        "tps": from_minute(20, 40, 2),
        "latency": lambda m, i: 50 if m < 20 else 1058,
        "spread": 0.05,
        "gpu": from_minute(20, 45, 9),
        "cpu": from_minute(20, 20, 4),
        "in_flight": constant(4),
        "scaling": None,
        "planned": None,
    }
    return Scenario(**(values | more))


def few_requests(**more: Any) -> Scenario:
    """Ten requests a minute and instance, whose work no metric of the instance shows."""
    values: dict[str, Any] = {
        "instance_type": "ml.m5.xlarge",
        "instances": constant(2),
        "tps": constant(0.33),
        "latency": slow(20, 60, 300),
        "cpu": constant(0.4),
        "in_flight": constant(1),
        "planned": None,
        "scaling": None,
    }
    return Scenario(**(values | more))


def slow_dependency(**more: Any) -> Scenario:
    """Ten times slower at the same rate: so many more are in flight, and the CPU has less to do."""
    values: dict[str, Any] = {
        "cpu": from_minute(20, 45, 12),
        "latency": slow(20, 60, 400),
        "in_flight": from_minute(20, 24, 240),
    }
    return Scenario(**(values | more))


def every(period: int, length: int = 1) -> Callable[[int, int], float]:
    """Ten times slower for the first minutes of each period."""
    return lambda m, i: 400 if m % period < length else 40


def six(**more: Any) -> Scenario:
    """Six instances with metrics of each."""
    return Scenario(**({"instances": constant(6), "enhanced": True, "tps": constant(500)} | more))


def leaving(begins: tuple[int, ...] = tuple(range(10, 115, 12)), **more: Any) -> Scenario:
    """One of four instances goes for three minutes; what is left is slow."""
    gone = {begin + n for begin in begins for n in range(3)}
    values: dict[str, Any] = {
        "minutes": 120,
        "tps": constant(400),
        "instances": lambda m: 3 if m in gone else 4,
        "latency": lambda m, i: 300 if m in gone else 40,
        "cpu": lambda m: 75 if m in gone else 56,
        "planned": None,
    }
    return Scenario(**(values | more))


def restarting(m: int) -> int:
    """Minutes since the last of the restarts, one in forty minutes."""
    return (m + 15) % 40


def zone_lost(**more: Any) -> Scenario:
    """Half of the fleet gone from minute 25 on; what is left is full."""
    values: dict[str, Any] = {
        "tps": constant(800),
        "instances": from_minute(25, 8, 4),
        "cpu": from_minute(25, 52, 98),
        "latency": slow(25, 60, 330),
    }
    return Scenario(**(values | more))
