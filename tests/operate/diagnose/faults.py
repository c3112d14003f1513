"""The injected faults: what is wrong, and the finding that it must produce."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from low_latency_endpoint.operate.diagnose import Diagnosis, diagnose

from .account import FakeAccount
from .scenarios import END, ENDPOINT, Scaled, Scenario, constant


@dataclass(frozen=True, eq=False)
class Fault:
    """One fault in one endpoint; a pattern needs so many minutes ``over`` which it shows.

    ``companions`` are findings that belong to the fault too; anything else is a false finding.
    """

    finding: str
    name: str
    says: tuple[str, ...]
    changes: tuple[str, ...]
    scenario: Callable[[], Scenario]
    companions: frozenset[str]
    client_latency: dict[str, float] | None
    over: int

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    @cached_property
    def account(self) -> FakeAccount:
        """An account with this fault, one for all tests: they only read it."""
        return self.scenario().account()

    @cached_property
    def diagnosed(self) -> Diagnosis:
        """What is found in the scenario's window, read once for all tests."""
        return self.diagnosed_over(self.scenario().minutes)

    def diagnosed_over(self, minutes: int) -> Diagnosis:
        """What is found in the last minutes."""
        return diagnose(
            self.account,
            ENDPOINT,
            start=END - timedelta(minutes=minutes),
            end=END,
            now=END,
            region="us-east-1",
            client_latency=self.client_latency,
        )


def fault(
    says: str,
    changes: str = "",
    *,
    of: Callable[..., Scenario] = Scenario,
    companion: str = "",
    client_latency: dict[str, float] | None = None,
    over: int = 45,
    **scenario: Any,
) -> Callable[[str, str], Fault]:
    """A fault, but for its finding and name, of which all is told that stands between ``" & "``."""
    return partial(
        Fault,
        says=tuple(says.split(" & ")),
        changes=tuple(changes.split(" & ")) if changes else (),
        scenario=partial(of, **scenario),
        companions=frozenset({companion} - {""}),
        client_latency=client_latency,
        over=over,
    )


def watched(**in_one_zone: Callable[[int], float | None]) -> dict[str, dict[str, Any]]:
    """What canaries see in two zones: all is well but for these metrics in one of them.

    ``None`` is a run that published nothing.
    """
    well = {
        "CanaryConnectTime": constant(1),
        "CanaryAnswerTime": constant(50),
        "CanaryUnreachable": constant(0),
        "CanaryOutOfZone": constant(0),
    }
    return {"use1-az1": {**well, **in_one_zone}, "use1-az2": well}


def from_minute(minute: int, before: float, after: float) -> Callable[[int], float]:
    """One value before the minute, another from it on."""
    return lambda now: before if now < minute else after


def between(first: int, last: int, inside: float, outside: float) -> Callable[[int], float]:
    """One value in some minutes, another in the others."""
    return lambda now: inside if first <= now < last else outside


def slow(
    first: int, last: int, by: float, *, instances: range = range(99)
) -> Callable[[int, int], float]:
    """The latency of some instances in some minutes; 40 ms else."""
    return lambda m, i: by if first <= m < last and i in instances else 40


_ZONES = ("us-east-1a", "us-east-1b")


def up_to(most: int, target: float = 7800.0) -> dict[str, Any]:
    """Scaling from two instances to so many."""
    return {"min": 2, "max": most, "target": target}


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


def _scale_out_failed(message: str, **more: Any) -> Scenario:
    failed = [Scaled(28 + 4 * n, 15, "Failed", message) for n in range(3)]
    return saturated(scaling=up_to(16), activities=failed, **more)


def _cold_after_scale_out(to: int = 8, *, until: int = 33, **more: Any) -> Scenario:
    """New instances are ten times slower for some minutes."""
    values: dict[str, Any] = {
        "tps": from_minute(20, 500, 1000),
        "instances": from_minute(27, 5, to),
        "cpu": from_minute(20, 30, 55),
        "latency": slow(27, until, 400, instances=range(5, to)),
        "activities": [Scaled(21, to, took=6)],
    }
    return Scenario(**(values | more))


def _since_deployment(**more: Any) -> Scenario:
    """Eight instances of a model that is asked for one thing at a time, new for six minutes."""
    of = {"tps": constant(9.5), "cpu": constant(2), "planned": None, "scaling": None}
    thresholds = {("ModelLatency", "p99"): 1500.0}
    return Scenario(**(of | {"deployed": 54, "thresholds": thresholds} | more))


def _cold_then_saturated(**more: Any) -> Scenario:
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


def _gpu(**more: Any) -> Scenario:
    return Scenario(**({"instance_type": "ml.g5.xlarge", "gpu": constant(55)} | more))


def _by_concurrency(most: int, used: float, **more: Any) -> Scenario:
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
    return _gpu(**(values | more))


def _started_too_early(metric: str, took: float = 4) -> Scenario:
    """The first minute of each new instance fails."""
    return Scenario(
        instances=lambda m: 5 if m < 24 else 6 if m < 44 else 7,
        tps=lambda m: 500 if m < 15 else 600 if m < 35 else 700,
        errors={metric: lambda m: 0.22 if m in (24, 44) else 0},
        activities=[Scaled(20, 6, took=took), Scaled(40, 7, took=took)],
    )


def _named(**dimensions: str) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in dimensions.items()]


def custom_metric(statistic: str, **dimensions: str) -> dict[str, Any]:
    """A customized metric of a policy."""
    return {
        "Namespace": "AWS/SageMaker",
        "MetricName": "InvocationsPerInstance",
        "Dimensions": _named(EndpointName=ENDPOINT, **dimensions),
        "Statistic": statistic,
    }


def _limited(milliseconds: float) -> dict[str, Any]:
    """One alarm on p99, and no plan."""
    return {"thresholds": {("ModelLatency", "p99"): milliseconds}, "planned": None}


def _pinned(**more: Any) -> Scenario:
    """All instances that scaling may start, with next to nothing to do."""
    values: dict[str, Any] = {
        "instances": constant(16),
        "cpu": constant(12),
        "planned": None,
        "scaling": up_to(16, 100.0),
    }
    return Scenario(**(values | more))


def _stuck(**more: Any) -> Scenario:
    """Six times the target for an hour, and no activity."""
    values: dict[str, Any] = {
        "instances": constant(2),
        "cpu": constant(55),
        "scaling": up_to(16, 3000.0),
    }
    return Scenario(**(values | more))


def _unanswered(**more: Any) -> Scenario:
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


def _flapping(**more: Any) -> Scenario:
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


def _four_workers(**more: Any) -> Scenario:
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


def _batches(**more: Any) -> Scenario:
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


def _few_requests(**more: Any) -> Scenario:
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


def _slow_dependency(**more: Any) -> Scenario:
    """Ten times slower at the same rate: so many more are in flight, and the CPU has less to do."""
    values: dict[str, Any] = {
        "cpu": from_minute(20, 45, 12),
        "latency": slow(20, 60, 400),
        "in_flight": from_minute(20, 24, 240),
    }
    return Scenario(**(values | more))


def _every(period: int, length: int = 1) -> Callable[[int, int], float]:
    """Ten times slower for the first minutes of each period."""
    return lambda m, i: 400 if m % period < length else 40


def _six(**more: Any) -> Scenario:
    """Six instances with metrics of each."""
    return Scenario(**({"instances": constant(6), "enhanced": True, "tps": constant(500)} | more))


def _leaving(begins: tuple[int, ...] = tuple(range(10, 115, 12)), **more: Any) -> Scenario:
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


def _restarting(m: int) -> int:
    """Minutes since the last of the restarts, one in forty minutes."""
    return (m + 15) % 40


def _zone_lost(**more: Any) -> Scenario:
    """Half of the fleet gone from minute 25 on; what is left is full."""
    values: dict[str, Any] = {
        "tps": constant(800),
        "instances": from_minute(25, 8, 4),
        "cpu": from_minute(25, 52, 98),
        "latency": slow(25, 60, 330),
    }
    return Scenario(**(values | more))


_SINGLE = {3, 6, 15, 19, 22, 30, 34, 43, 45, 53, 62, 66, 75, 77, 90, 96, 104, 107}
_ROWS = {
    "LLD131: every fifth minute ten times slower": fault(
        "slow every 5 min (03:00, 03:05, 03:10, 03:15 and so on), in 12 of 12 cycles"
        " & 20 % of all requests arrived then & the load is the same",
        "containers[].environment",
        latency=_every(5),
    ),
    "LLD136: single slow minutes at any time, a fifth of all": fault(
        "slow 18 times, for 1 periods on average & 15 % of all requests arrived then",
        "containers[].environment",
        over=120,
        minutes=120,
        latency=lambda m, i: 400 if m in _SINGLE else 40,
    ),
    "LLD131: three minutes of every fifteen slow, which an alarm sees too": fault(
        "slow every 15 min & in 8 of 8 cycles",
        "containers[].environment",
        over=120,
        minutes=120,
        latency=_every(15, 3),
    ),
    "LLD131: callers that come all at once every ten minutes": fault(
        "3.3 times the load then: callers send bursts",
        over=60,
        tps=lambda m: 2000 if m % 10 == 2 else 600,
        cpu=lambda m: 97 if m % 10 == 2 else 40,
        latency=lambda m, i: 400 if m % 10 == 2 else 40,
    ),
    "LLD132: cold after a pause without requests": fault(
        "slow for up to 6 min after a pause without requests (02:30-03:10)",
        "warm_up.keep_warm",
        over=120,
        minutes=120,
        tps=between(30, 70, 0, 300),
        cpu=constant(20),
        latency=slow(70, 76, 500),
    ),
    "LLD133: latency that creeps to five times its first value": fault(
        "ModelLatency p99 grew from & load per instance at the end 1.00 times",
        "containers[].image",
        over=60,
        latency=lambda m, i: 40 * (1 + 4 * m / 60),
    ),
    "LLD134: memory that leaks until instances restart": fault(
        "memory climbed to 9 & 4 times, about 40 min apart & fewer instances served",
        "containers[].environment",
        over=150,
        minutes=180,
        memory=lambda m: 35 + 1.55 * _restarting(m),
        instances=lambda m: 4 if _restarting(m) < 3 else 8,
        latency=lambda m, i: 350 if _restarting(m) < 6 or _restarting(m) > 33 else 40,
    ),
    "LLD135: half of the fleet gone at once": fault(
        "4 of 8 instances stopped serving at 03:25 & not replaced by the end"
        " & 800 requests a second before, 800 after",
        "client_zones.ids",
        over=60,
        of=_zone_lost,
    ),
    "LLD135: half of the fleet gone at once, and callers that stop later": fault(
        "4 of 8 instances stopped serving at 03:25 & not replaced by the end",
        over=60,
        of=_zone_lost,
        tps=lambda m: 800 if m < 50 else 0,
    ),
    "LLD135: a zone gone with its instances, and back, with errors of those left": fault(
        "4 of 8 instances stopped serving at 02:55 & replaced at 03:20",
        "client_zones.ids",
        over=90,
        of=_zone_lost,
        minutes=90,
        zones=_ZONES[:1],
        instances=between(25, 50, 4, 8),
        cpu=between(25, 50, 98, 52),
        latency=slow(25, 50, 330),
        errors={"Invocation5XXErrors": between(25, 50, 0.05, 0)},
    ),
    "LLD102: a saturated fleet at its maximum": fault(
        "CPU at 97 % & all 8 instances & 14,250 invocations & planned for 1,600",
        "instances.max: 15 & throughput.peak_tps",
        of=saturated,
    ),
    # 8 x 97 / 65; full at 50 a second where a load test found 200: no capacity to plan with.
    "LLD102: a saturated fleet at its maximum, far below its scaling target": fault(
        "CPU at 97 % & all 8 instances & 3,000 invocations",
        "instances.max: 12 & throughput.tps_per_instance",
        of=saturated,
        tps=from_minute(25, 200, 400),
    ),
    "LLD102: a fleet as full as while it was fast, slow since one minute": fault(
        "CPU at 97 % & from 03:25 on & nothing was deployed at 03:25, and no instances started",
        "instances.max",
        of=saturated,
        tps=constant(1900),
        cpu=constant(97),
    ),
    "LLD103: a scale-out that AWS has no capacity for": fault(
        "3 scaling activities failed & AWS has no more instances",
        "capacity_reservation_arn & instance_type",
        of=_scale_out_failed,
        message="Failed to set desired instance count to 15. Reason: unable to provision requested "
        "ML compute capacity",
    ),
    "LLD103: a scale-out whose containers answer no ping": fault(
        "did not answer /ping",
        "startup_health_check_timeout",
        of=_scale_out_failed,
        message="The primary container for production variant primary did not pass the ping health "
        "check.",
    ),
    "LLD103: a scale-out that failed in words of tomorrow": fault(
        'scaling activities failed: "The moon is full."',
        of=_scale_out_failed,
        message="The moon is full.",
    ),
    "LLD103: a scale-out without capacity, which the endpoint's description tells, too": fault(
        "3 scaling activities failed",
        of=_scale_out_failed,
        message="Failed to set desired instance count to 15. Reason: unable to provision requested "
        "ML compute capacity",
        failure="Unable to provision requested ML compute capacity",
    ),
    "LLD103: a scale-out beyond the account's quota": fault(
        "the account's quota is used up",
        "instance_type",
        of=_scale_out_failed,
        message="The account-level service limit 'ml.m5.12xlarge for endpoint usage' is 8 Instances",
    ),
    # The load doubles over 25 minutes, each step of scaling comes late.
    "LLD104: scaling that lags behind a ramp": fault(
        "scaling requested the first instances at",
        "scaling: {metric: concurrency, concurrency_target: ...} & scaling.scale_out_cooldown: 60s",
        minutes=90,
        tps=lambda m: min(max(300 + 40 * (m - 30), 300), 1500),
        instances=lambda m: 3 if m < 55 else 6 if m < 68 else 12,
        cpu=lambda m: 45 if m < 38 else 96 if m < 68 else 60,
        latency=lambda m, i: 40 if m < 38 else 320 if m < 68 else 42,
        scaling=up_to(16) | {"cooldown": 600},
        activities=[Scaled(49, 6), Scaled(62, 12)],
    ),
    "LLD109: a target per second where the metric counts per minute": fault(
        "2,250 invocations per instance and minute against a target of 100 & CPU at 12 %"
        " & 100 a second is 6,000 a minute",
        "throughput.tps_per_instance: 100",
        of=_pinned,
    ),
    "LLD109: a target of 70 that keeps instances, below the maximum": fault(
        "0.049 requests in progress & the measurements fit a target of up to 2,300",
        of=_pinned,
        tps=constant(17.5),
        instances=constant(15),
        cpu=constant(2),
        scaling=up_to(64, 70.0),
    ),
    "LLD109: a target per second, and what the instances wait for": fault(
        "against a target of 100",
        of=_pinned,
        companion="LLD123",
        cpu=from_minute(20, 30, 12),
        latency=slow(20, 60, 400),
        in_flight=from_minute(20, 24, 240),
    ),
    "LLD102: instances that are full at the same counts": fault(
        "up to 2,250 invocations", of=_pinned, cpu=constant(93), scaling=up_to(16, 2000.0)
    ),
    "LLD110: scaling that never acts": fault(
        "18,000 invocations per instance and minute against a target of 3,000 for 60 min"
        " & no alarm TargetTracking-",
        of=_stuck,
        cpu=constant(97),
        latency=slow(0, 60, 400),
    ),
    "LLD110: scaling that never acts, while latency holds": fault("for 60 min", of=_stuck),
    "LLD110: scaling by concurrency that never acts, while latency holds": fault(
        "40 requests in flight on an instance against a target of 4",
        of=_stuck,
        tps=constant(60),
        in_flight=constant(40),
        scaling=up_to(16, 4.0)
        | {"metric": "SageMakerVariantConcurrentRequestsPerModelHighResolution"},
    ),
    # The load doubles: 10 % above the target, 14,250 / 7,800 = 1.15 times 7,800 and so on.
    "LLD110: scaling that does not act on a load just above its target": fault(
        "9,000 invocations per instance and minute against a target of 7,800 for 40 min"
        " & no scaling activity added instances",
        over=60,
        of=_unanswered,
    ),
    "LLD110: scaling that acted before, and not on this load": fault(
        "9,000 invocations & no scaling activity added instances",
        over=60,
        of=_unanswered,
        activities=[Scaled(2, 8)],
    ),
    "LLD110: a step policy that does not act": fault(
        "the instances were full, with the policy StepScaling for 40 min",
        over=60,
        of=_unanswered,
        scaling=up_to(16) | {"policy": "StepScaling"},
    ),
    "LLD144: an update that holds scaling back": fault(
        "for 40 min: for 30 min of them the endpoint was being updated",
        "instances.min",
        over=60,
        of=_unanswered,
        status="Updating",
        deployed=30,
    ),
    "LLD145: a policy that somebody deleted": fault(
        "registered for 2 to 16 instances, without a policy",
        over=60,
        of=_unanswered,
        scaling=up_to(16) | {"policy": None},
    ),
    "LLD122: a fleet that goes out and in at the same load": fault(
        "6 scaling activities between 2 and 3 instances & 10 min apart",
        "instances: {min: 3",
        of=_flapping,
    ),
    "LLD122: a fleet that goes out and in, and again hours later": fault(
        "6 scaling activities & 10 min apart",
        over=360,
        of=_flapping,
        minutes=360,
        instances=lambda m: 3 if 10 <= m < 20 or 30 <= m < 320 or 330 <= m < 340 else 2,
        activities=[
            Scaled(minute - 1, to, took=1)
            for minute, to in zip((10, 20, 30, 320, 330, 340), (3, 2, 3, 2, 3, 2), strict=True)
        ],
    ),
    "LLD122: a fleet that goes out and in, each new instance cold and failing at first": fault(
        "6 scaling activities & of all requests arrived then",
        "scaling.scale_in_cooldown",
        of=_flapping,
        latency=lambda m, i: 500 if i == 2 and m % 20 < 3 else 40,
        errors={"Invocation5XXErrors": lambda m: 0.1 if m % 20 == 0 else 0},
    ),
    "LLD122: two times out and two times in, too slow with the fewer": fault(
        "scaling activities between 2 and 4 instances",
        "instances: {min: 4",
        over=60,
        instances=lambda m: 2 if m // 15 % 2 else 4,
        tps=constant(300),
        latency=lambda m, i: 400 if m // 15 % 2 else 40,
        activities=[Scaled(15, 2), Scaled(30, 4, took=1), Scaled(45, 2), Scaled(59, 4, took=1)],
    ),
    "LLD110: scaling by a metric of another variant": fault(
        "no VariantName AllTraffic; there is primary",
        scaling=up_to(16) | {"custom": custom_metric("Sum", VariantName="AllTraffic")},
    ),
    "LLD110: scaling by the mean of ones": fault(
        "take the Sum",
        scaling=up_to(16) | {"custom": custom_metric("Average", VariantName="primary")},
    ),
    "LLD604: a threshold in milliseconds": fault(
        "above 160 microseconds, which is 0.16 ms; for 160 ms it is 160000", **_limited(0.16)
    ),
    "LLD604: a threshold in seconds": fault("for 200 ms it is 200000", **_limited(0.0002)),
    "LLD604: a threshold in nanoseconds": fault("for 160 ms it is 160000", **_limited(160_000)),
    "LLD604: a threshold that no invocation can reach, of a slow endpoint": fault(
        "for 160 ms it is 160000",
        companion="LLD127",
        latency=slow(20, 60, 400),
        thresholds={("ModelLatency", "p99"): 160_000.0},
    ),
    "LLD604: a threshold in milliseconds, beside the plan's, which is missed": fault(
        "160 microseconds",
        companion="LLD127",
        latency=slow(20, 60, 400),
        thresholds={("ModelLatency", "p99"): 0.16},
    ),
    "LLD604: alarms without a variant": fault(
        "ModelLatency has the dimensions EndpointName and VariantName, not EndpointName",
        alarm={"Dimensions": _named(EndpointName=ENDPOINT)},
    ),
    "LLD604: alarms on another variant": fault(
        "no VariantName AllTraffic",
        alarm={"Dimensions": _named(EndpointName=ENDPOINT, VariantName="AllTraffic")},
    ),
    "LLD604: alarms in milliseconds": fault(
        "published in Microseconds, not in Milliseconds", alarm={"Unit": "Milliseconds"}
    ),
    "LLD604: alarms in the other namespace": fault(
        "/aws/sagemaker/Endpoints has no ModelLatency; AWS/SageMaker has ModelLatency",
        alarm={"Namespace": "/aws/sagemaker/Endpoints"},
    ),
    "LLD604: an alarm on percentiles that there are not": fault(
        "OverheadLatency has no percentiles",
        thresholds={("ModelLatency", "p99"): 160.0, ("OverheadLatency", "p99"): 40.0},
    ),
    "LLD604: alarms more often than the metric": fault(
        "comes every 60 s, not every 10 s", alarm={"Period": 10}
    ),
    "LLD604: an alarm on a share above one": fault(
        "share of the requests, 1 at most",
        alarm={"MetricName": "Invocation5XXErrors", "Threshold": 5.0},
        thresholds={("ModelLatency", "Average"): 160.0},
    ),
    "LLD105: a saturated fleet that does not scale": fault(
        "CPU at 97 %",
        "instances: {min: 12, initial: 12, max: 24} & scaling: {enabled: true} & throughput",
        of=saturated,
        scaling=None,
    ),
    "LLD106: scaling out that somebody suspended": fault(
        "CPU at 97 %", "scaling.enabled", of=saturated, scaling=up_to(16), suspended=True
    ),
    "LLD107: a scaling target above what instances hold": fault(
        "only 7,125 invocations per instance and minute against a target of 7,800",
        "throughput.tps_per_instance: 119 & throughput.safety_factor",
        tps=from_minute(25, 400, 950),
        cpu=from_minute(25, 45, 97),
        latency=slow(25, 60, 300),
    ),
    "LLD108: a CPU that cannot feed its GPU": fault(
        "GPU at 30 % while CPU at 9",
        "instance_type",
        of=_gpu,
        cpu=from_minute(25, 50, 96),
        gpu=from_minute(25, 25, 30),
        latency=slow(25, 60, 300),
    ),
    "LLD601: a spike shorter than scaling can follow": fault(
        "3,600 requests a second in the spike, 600 in the median",
        # 3,600 x 60 / 7,800 = 27.7; the most that scaling may start now is 16.
        "instances: {min: 28, initial: 28, max: 28}",
        tps=between(30, 35, 3600, 600),
        cpu=between(30, 35, 98, 45),
        latency=slow(30, 35, 400),
    ),
    "LLD111: workers too few for idle CPUs": fault(
        "requests in flight at once & workers per instance in the environment: 1",
        "containers[].environment & scaling: {metric: concurrency, concurrency_target: 1}",
        tps=lambda m: 100 + 20 * m,
        cpu=lambda m: 10 + m / 4,
        latency=lambda m, i: 40 if m < 30 else 40 * (1 + (m - 30) / 4),
        in_flight=lambda m: 4 if m < 30 else 4 + 3 * (m - 30),
        environment={"SAGEMAKER_MODEL_SERVER_WORKERS": "1"},
    ),
    "LLD112: a model that is slow on idle CPUs": fault(
        "p50 24 & CPU at 30 %",
        "instance_type: ml.inf2.xlarge & instance_type: ml.g5.xlarge",
        latency=slow(0, 60, 240),
        cpu=constant(30),
        in_flight=constant(20),
    ),
    "LLD113: requests of very different length": fault(
        "times p50", "metrics.enhanced: true", spread=1.0
    ),
    "LLD115: a GPU image that runs on the CPU": fault(
        "GPU at 0.0 %",
        "containers[].image",
        of=_gpu,
        gpu=constant(0),
        cpu=constant(70),
        latency=slow(0, 60, 300),
        in_flight=constant(20),
    ),
    "LLD117: memory that is full": fault(
        "memory at 9", "instance_type", memory=from_minute(20, 50, 96), latency=slow(20, 60, 300)
    ),
    "LLD121: instances that start cold": fault(
        "the scale-out to 8 instances at 03:27", "instances.min", of=_cold_after_scale_out
    ),
    "LLD121: instances that start cold, metrics per instance": fault(
        "the scale-out to 8 instances at 03:27",
        "instances.min",
        of=_cold_after_scale_out,
        enhanced=True,
        zones=_ZONES,
    ),
    "LLD121: instances that start cold in the minute in which scaling asks for them": fault(
        "the scale-out to 8 instances at 03:27",
        "instances.min",
        of=_cold_after_scale_out,
        activities=[Scaled(27.5, 8, took=0.2)],
    ),
    "LLD121: one instance that starts cold, metrics per instance": fault(
        "the scale-out to 6 instances at 03:27",
        "instances.min",
        of=_cold_after_scale_out,
        to=6,
        enhanced=True,
        tps=from_minute(20, 500, 750),
    ),
    "LLD121: instances added by hand that start cold": fault(
        "the rise from 5 to 8 instances at 03:27",
        "instances.min",
        of=_cold_after_scale_out,
        activities=[],
        scaling=None,
    ),
    "LLD121: an instance replaced by a cold one, metrics per instance": fault(
        "the start of i-2 at 03:25",
        "containers[].environment",
        enhanced=True,
        arrives={2: 25},
        latency=slow(25, 31, 400, instances=range(2, 3)),
    ),
    "LLD121: an instance that starts cold, long before the activity ends": fault(
        "the scale-out to 8 instances at 03:27",
        "instances.min",
        of=_cold_after_scale_out,
        activities=[Scaled(21, 8, took=14)],
    ),
    "LLD501: a new instance that stays slow, metrics per instance": fault(
        "i-5: ModelLatency 4 & the 5 others 4",
        "routing: least_outstanding_requests",
        of=_cold_after_scale_out,
        to=6,
        until=60,
        enhanced=True,
        routing="RANDOM",
        tps=from_minute(20, 500, 750),
    ),
    "LLD121: cold after two scale-outs": fault(
        "in 11 of & in 2 stretches & the scale-out to 6 instances at 03:22"
        " & the scale-out to 8 instances at 03:40",
        "instances.min",
        tps=lambda m: 500 if m < 22 else 700 if m < 40 else 900,
        instances=lambda m: 5 if m < 22 else 6 if m < 40 else 8,
        latency=lambda m, i: 400 if (i == 5 and 22 <= m < 27) or (i > 5 and 40 <= m < 46) else 40,
        activities=[Scaled(17, 6), Scaled(35, 8)],
    ),
    "LLD102: requests that queue in a fleet at its maximum, scaled by concurrency": fault(
        "40 requests in flight on an instance against a target of 4 & all 8 instances",
        "instances.max: 10",
        of=_by_concurrency,
        most=8,
        used=78,
    ),
    "LLD104: scaling by concurrency that does not follow": fault(
        "GPU at 97 % & up to 40 requests in flight on an instance against a target of 4",
        "scaling.concurrency_target & instances.min",
        of=_by_concurrency,
        most=16,
        used=97,
        activities=[Scaled(50, 9, "InProgress")],
    ),
    "LLD107: a target of concurrency above what instances hold": fault(
        "only 4 requests in flight on an instance against a target of 4",
        "scaling.concurrency_target",
        of=_by_concurrency,
        most=16,
        used=97,
        in_flight=from_minute(25, 2, 4),
    ),
    "LLD111: workers too few, scaled by concurrency": fault(
        "workers per instance in the environment: 2",
        "scaling.concurrency_target: 2",
        of=_by_concurrency,
        most=8,
        used=30,
        environment={"SAGEMAKER_MODEL_SERVER_WORKERS": "2"},
    ),
    "LLD121: six batches of an update, each cold for two minutes": fault(
        "the start of i-0 at 03:06 & 6 times, never in three of five periods",
        over=60,
        enhanced=True,
        instances=constant(6),
        arrives={i: 6 + 9 * i for i in range(6)},
        latency=lambda m, i: 400 if 0 <= m - 6 - 9 * i < 2 else 40,
    ),
    "LLD121: six scale-outs, each new instance cold for two minutes": fault(
        "the scale-out to 5 instances & 6 times, never in three of five periods",
        over=60,
        instances=lambda m: 4 + (m + 5) // 10,
        tps=lambda m: 400 + 80 * ((m + 5) // 10),
        latency=lambda m, i: 400 if i >= 4 and 0 <= m - 5 - 10 * (i - 4) < 2 else 40,
        activities=[Scaled(10 * n, 5 + n, took=5) for n in range(6)],
    ),
    "LLD121: a cold fleet, and a saturated one later": fault(
        "in 8 of & the scale-out to 8 instances at 03:18",
        "instances.min",
        of=_cold_then_saturated,
        companion="LLD102",
    ),
    "LLD102: a saturated fleet, and a cold one before": fault(
        "in 12 of & CPU at 97 % & all 8 instances",
        "instances.max",
        of=_cold_then_saturated,
        companion="LLD121",
    ),
    "LLD102: a cold fleet and a saturated one, metrics per instance": fault(
        "in 12 of & CPU at 97 %",
        of=_cold_then_saturated,
        companion="LLD121",
        enhanced=True,
        latency=lambda m, i: 400 if i >= 6 and 18 <= m < 26 else 300 if 40 <= m < 52 else 40,
    ),
    "LLD102: a model somewhat slow, until its fleet is saturated too": fault(
        "in 20 of & CPU at 97 % & 14,250 invocations",
        "instances.max: 15",
        of=saturated,
        companion="LLD112",
        tps=from_minute(40, 600, 1900),
        cpu=from_minute(40, 45, 97),
        latency=lambda m, i: 85 if m < 40 else 300,
        in_flight=constant(24),
    ),
    "LLD102: a saturated fleet with one instance slower still, metrics per instance": fault(
        "CPU at 97 % & all 8 instances",
        "instances.max: 15",
        of=saturated,
        routing="RANDOM",
        enhanced=True,
        latency=lambda m, i: 40 if m < 25 else 700 if i == 0 else 300,
    ),
    "LLD201: an overhead after a scale-out, and another under steady traffic": fault(
        "the scale-out to 8 instances",
        "instances.min",
        companion="LLD203",
        instances=from_minute(20, 5, 8),
        tps=constant(500),
        overhead=lambda m: 90 if 20 <= m < 25 or m >= 45 else 6,
        activities=[Scaled(15, 8)],
    ),
    "LLD121: a cold fleet after a deployment, metrics per instance": fault(
        "the deployment of sentiment-config-2 at 03:20",
        "deployment: {canary",
        deployed=20,
        enhanced=True,
        arrives=dict.fromkeys(range(8), 20),
        latency=lambda m, i: 300 + 20 * i if 21 <= m < 29 else 40,
    ),
    "LLD501: a slow instance of a new fleet, metrics per instance": fault(
        "i-0: ModelLatency 6 & the 7 others 4",
        "routing: least_outstanding_requests",
        deployed=45,
        enhanced=True,
        arrives=dict.fromkeys(range(8), 45),
        routing="RANDOM",
        latency=slow(46, 60, 600, instances=range(1)),
    ),
    "LLD121: a cold fleet after a deployment": fault(
        "the deployment of sentiment-config-2 at 03:20",
        "deployment: {canary",
        deployed=20,
        latency=slow(21, 29, 350),
    ),
    "LLD201: an overhead that follows a scale-out": fault(
        "the scale-out to 8 instances",
        "instances.min",
        instances=from_minute(27, 5, 8),
        tps=constant(500),
        overhead=between(27, 33, 90, 6),
        activities=[Scaled(21, 8, took=6)],
    ),
    "LLD202: requests too rare to keep the path warm": fault(
        "2 requests a minute",
        tps=lambda m: 1 / 30 if m % 3 == 0 else 0,
        instances=constant(2),
        overhead=constant(70),
        cpu=constant(2),
    ),
    "LLD203: an overhead under steady traffic": fault(
        "600 requests a second & data capture records 100 %",
        "data_capture.sampling_percentage",
        overhead=from_minute(10, 6, 65),
        data_capture=100,
    ),
    "LLD301: more models than fit into memory": fault(
        "40 % of the requests & 12 models loaded",
        "instance_type",
        latency=slow(0, 60, 70),
        spread=0.9,
        overhead=constant(60),
        multi_model={
            "ModelCacheHit": constant(0.6),
            "LoadedModelCount": constant(12),
            "ModelLoadingWaitTime": constant(900),
            "ModelDownloadingTime": constant(300),
            "ModelLoadingTime": constant(600),
            "ModelUnloadingTime": constant(40),
        },
    ),
    "LLD302: models that are far away": fault(
        "download 3,500 ms, load 500 ms",
        "containers[].data",
        multi_model={
            "ModelCacheHit": constant(0.8),
            "LoadedModelCount": constant(30),
            "ModelLoadingWaitTime": constant(4000),
            "ModelDownloadingTime": constant(3500),
            "ModelLoadingTime": constant(500),
        },
    ),
    "LLD102: a saturated fleet at its maximum that fails": fault(
        "CPU at 97 % & all 8 instances & 5XX errors",
        "instances.max: 15",
        of=saturated,
        errors={"Invocation5XXErrors": from_minute(25, 0, 0.06)},
    ),
    # 1,900 - 600 requests a second are refused at once: those that are answered are fast.
    "LLD401: saturated instances that fail and are fast": fault(
        "5XX errors & CPU at 97 % & all 8 instances",
        "instances.max: 15 & instance_type",
        of=saturated,
        latency=slow(0, 60, 40),
        errors={"Invocation5XXErrors": from_minute(25, 0, 0.6)},
    ),
    "LLD105: a saturated fleet that does not scale, and requests that wait until SageMaker gives up": fault(
        "CPU at 97 % & neither 4XX nor 5XX & longest ModelLatency then 60.0 s",
        "scaling: {enabled: true}",
        of=saturated,
        scaling=None,
        errors={"InvocationModelErrors": from_minute(30, 0, 0.1)},
        longest_ms=from_minute(30, 0, 60_000),
    ),
    "LLD402: a container that crashes": fault(
        "5XX errors & most at 03:",
        "containers[].environment",
        errors={
            "Invocation5XXErrors": between(30, 50, 0.05, 0),
            "InvocationModelErrors": between(30, 50, 0.05, 0),
        },
    ),
    "LLD403: callers that send what the model refuses": fault(
        "4XX errors, 5.0 %",
        "alarms.client_error_rate: 0.05",
        errors={"Invocation4XXErrors": from_minute(30, 0, 0.1)},
    ),
    "LLD407: callers beyond a limit of 700 requests a second": fault(
        "4XX errors & requests were refused only above 700 requests a second",
        "containers[].environment",
        over=60,
        tps=lambda m: 500 + 10 * m,
        errors={"Invocation4XXErrors": lambda m: max(0.0, 1 - 700 / (500 + 10 * m))},
    ),
    "LLD404: a container that drops connections": fault(
        "model errors that are neither 4XX nor 5XX",
        errors={"InvocationModelErrors": from_minute(30, 0, 0.04)},
    ),
    "LLD405: requests that reach the time limit": fault(
        "60.0 s",
        "containers[].environment",
        errors={"InvocationModelErrors": from_minute(30, 0, 0.03)},
        longest_ms=from_minute(30, 0, 60_000),
    ),
    "LLD404: connections that break beside streams of 90 s": fault(
        "model errors that are neither 4XX nor 5XX",
        errors={"InvocationModelErrors": constant(0.03)},
        longest_ms=constant(90_000),
    ),
    "LLD405: half of all requests reach the time limit": fault(
        "60.0 s & 50 % of the requests",
        tps=constant(3),
        latency=slow(0, 60, 30_000),
        errors={"InvocationModelErrors": constant(0.5)},
        longest_ms=constant(60_000),
    ),
    "LLD408: a ping that answers before the model is loaded": fault(
        "22 % & the scale-out to 6 instances at 03:24, the scale-out to 7 instances at 03:44",
        "containers[].environment & instances.min",
        of=_started_too_early,
        metric="Invocation5XXErrors",
    ),
    "LLD408: connections refused by new instances, long before the activity ends": fault(
        "model errors & none before", of=_started_too_early, metric="InvocationModelErrors", took=9
    ),
    "LLD408: errors since a deployment, after a failing minute of the former version": fault(
        "1 of 6 failing periods before",
        deployed=30,
        errors={"Invocation5XXErrors": lambda m: 0.2 if m == 5 or 31 <= m < 36 else 0},
    ),
    "LLD111: one worker on four CPUs, and what its full queue refuses": fault(
        "0.96 of 4 CPUs busy & 5XX errors",
        "containers[].environment",
        of=one_core,
        errors={"Invocation5XXErrors": constant(0.23)},
    ),
    "LLD111: four workers nearly busy, below a target that they never reach": fault(
        "3.84 of 8 CPUs busy & only 2,850 invocations & had no reason to add instances",
        "containers[].environment & throughput.tps_per_instance & instances: {min: 5",
        instance_type="ml.c7i.2xlarge",
        instances=constant(4),
        scaling={"min": 4, "max": 12, "target": 4000.0},
        planned=None,
        tps=constant(190),
        latency=slow(0, 60, 300),
        cpu=constant(48),
        in_flight=constant(40),
    ),
    "LLD123: the typical request waits, and not a tail alone": fault(
        "2.2 CPUs busy for 16 requests in progress", "containers[].environment", of=_four_workers
    ),
    "LLD111: the same with the workers in the environment": fault(
        "workers per instance in the environment: 4 & only 2,280 invocations",
        "instances: {min: 7",
        of=_four_workers,
        environment={"SAGEMAKER_MODEL_SERVER_WORKERS": "4"},
    ),
    "LLD111: one worker fast enough, and what its full queue refuses": fault(
        "0.96 of 4 CPUs busy & 5XX errors",
        of=one_core,
        thresholds={},
        errors={"Invocation5XXErrors": constant(0.23)},
    ),
    "LLD111: one worker under a load that rises": fault(
        "3.7 times the rate",
        of=one_core,
        tps=from_minute(30, 3, 11),
        latency=lambda m, i: 80 if m < 30 else 400,
        cpu=from_minute(30, 6, 24),
        in_flight=from_minute(30, 1, 6),
    ),
    "LLD108: one CPU that cannot feed its GPU": fault(
        "1.00 of 4 CPUs busy & GPU at 15 %",
        of=one_core,
        instance_type="ml.g4dn.xlarge",
        tps=constant(9),
        latency=slow(0, 60, 420),
        cpu=constant(25),
        gpu=constant(15),
    ),
    "LLD123: what the model calls becomes slow": fault(
        "1 times the rate, 0.27 times the CPU", "containers[].environment", of=_slow_dependency
    ),
    "LLD123: what the model calls becomes slow, CPU as before": fault(
        "1 times the CPU", of=_slow_dependency, cpu=constant(45), in_flight=from_minute(20, 3, 30)
    ),
    "LLD123: what the model calls is slow all the time": fault(
        "5.8 CPUs busy for 31 requests in progress",
        "containers[].environment",
        of=_slow_dependency,
        cpu=constant(12),
        latency=slow(0, 60, 400),
        in_flight=constant(240),
    ),
    "LLD125: callers that wait for each answer, of a model that waits for another": fault(
        "0.1 times the rate & 40 ms at 600 requests a second, 399 ms at 60",
        of=_slow_dependency,
        tps=from_minute(20, 600, 60),
        in_flight=constant(24),
    ),
    # triton-inference-server/server#3953: too few model instances, all else flat.
    "LLD123: requests queue in the model server, GPU at 45 %": fault(
        "0.45 GPUs busy for 6 requests in progress",
        "containers[].environment",
        of=_gpu,
        instances=constant(2),
        tps=constant(30),
        latency=slow(0, 60, 380),
        gpu=constant(45),
        cpu=constant(12),
        in_flight=constant(18),
        planned=None,
    ),
    "LLD112: a model that keeps its GPU busy and is slow": fault(
        "0.8 CPUs and 0.6 GPUs busy",
        "instance_type",
        of=_gpu,
        instances=constant(2),
        tps=constant(3),
        latency=slow(0, 60, 380),
        gpu=constant(60),
        cpu=constant(20),
        in_flight=constant(2),
        planned=None,
    ),
    "LLD112: a slow model on a processor at work, beside a batch delay that plays no part": fault(
        "busy for 19 requests in progress",
        "instance_type: ml.inf2.xlarge & instance_type: ml.g5.xlarge",
        latency=slow(0, 60, 240),
        cpu=constant(30),
        in_flight=constant(160),
        environment={"SAGEMAKER_TS_MAX_BATCH_DELAY": "20"},
    ),
    "LLD112: always slow, and asked too rarely to show why": fault(
        "CPU at 2 %",
        "containers[].image",
        of=_few_requests,
        latency=slow(0, 60, 300),
        cpu=constant(2),
    ),
    "LLD123: slow since one minute, the processors idle": fault(
        "from 03:20 on, 40 ms otherwise & nothing was deployed at 03:20, and no instances started",
        of=_few_requests,
    ),
    "LLD123: slow for a quarter of an hour, the processors idle": fault(
        "from 03:20 to 03:34, 39 ms otherwise", of=_few_requests, latency=slow(20, 35, 300)
    ),
    "LLD123: slow from the beginning until one minute": fault(
        "from 03:00 to 03:29, 39 ms otherwise", over=60, of=_few_requests, latency=slow(0, 30, 300)
    ),
    "LLD127: slow since one minute, and processors that show nothing": fault(
        "from 03:20 on", of=_few_requests, cpu=constant(2)
    ),
    "LLD127: requests that became heavier in one minute, far from full": fault(
        "3 times the CPU & CPU at 30 %",
        cpu=from_minute(20, 10, 30),
        latency=slow(20, 60, 240),
        in_flight=from_minute(20, 24, 144),
    ),
    "LLD127: slow since one minute, memory as full as before": fault(
        "3 times the CPU",
        memory=constant(93),
        cpu=from_minute(20, 10, 30),
        latency=slow(20, 60, 240),
        in_flight=from_minute(20, 24, 144),
    ),
    "LLD127: slow since one minute, the GPU as idle as before": fault(
        "from 03:20 on", of=_few_requests, instance_type="ml.g5.xlarge", gpu=constant(1)
    ),
    "LLD125: slow with two requests a second, fast with forty": fault(
        "50 ms at 40 requests a second, 1,05 & 0.2 times the GPU",
        "containers[].environment",
        of=_batches,
    ),
    "LLD125: the same, and the GPU next to idle": fault(
        "at 40 requests a second", of=_batches, gpu=from_minute(20, 30, 1)
    ),
    "LLD125: the same on processors": fault(
        "at 40 requests a second",
        of=_batches,
        instance_type="ml.m5.12xlarge",
        gpu=None,
        cpu=from_minute(20, 30, 3),
    ),
    "LLD126: slow with two requests a second, and why stands in the environment": fault(
        "SAGEMAKER_TS_MAX_BATCH_DELAY is 1000 & at 40 requests a second",
        "containers[].environment: {SAGEMAKER_TS_MAX_BATCH_DELAY: ...}",
        of=_batches,
        environment={"SAGEMAKER_TS_MAX_BATCH_DELAY": "1000"},
    ),
    "LLD126: two requests a second wait for a batch, all the time": fault(
        "SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS is 1000000 & p50 1,0",
        of=_batches,
        tps=constant(2),
        latency=slow(0, 60, 1058),
        gpu=constant(3),
        cpu=constant(4),
        environment={"SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS": "1000000"},
    ),
    # triton-inference-server/server#7312: 5 a second of 50 ms are 0.25 in the mean.
    "LLD128: requests that come fourteen at a time": fault(
        "14 requests in flight on an instance at once & make 0.",
        "containers[].environment",
        instance_type="ml.g5.xlarge",
        instances=constant(1),
        tps=constant(5),
        latency=slow(0, 60, 60),
        spread=0.7,
        gpu=constant(25),
        cpu=constant(10),
        in_flight=constant(14),
        scaling=None,
        planned=None,
    ),
    "LLD128: three callers at once, one worker, and long pauses": fault(
        "3 requests in flight on an instance at once & make 0.046",
        of=_few_requests,
        instances=constant(1),
        tps=constant(0.02),
        latency=slow(0, 60, 2308),
        thresholds={("ModelLatency", "p50"): 1000.0},
        in_flight=constant(3),
    ),
    "LLD112: callers at once, and each request takes as long": fault(
        "CPU at 0 % of the whole instance",
        of=_few_requests,
        instance_type="ml.m5.12xlarge",
        latency=slow(0, 60, 302),
        spread=0.003,
        in_flight=constant(6),
        cpu=constant(0.1),
    ),
    "LLD113: a tail beside as many at once as chance brings together": fault(
        "times p50", spread=1.0, tps=constant(40), in_flight=constant(16)
    ),
    "LLD501: two of six instances grow": fault(
        "latency grows while the load stays the same (LLD133) & slow too: & the 4 others 4",
        over=60,
        of=_six,
        latency=lambda m, i: 40 * (1 + 4 * m / 60) if i in (1, 4) else 40,
    ),
    "LLD133: six instances of six grow": fault(
        "ModelLatency p99 grew from", over=60, of=_six, latency=lambda m, i: 40 * (1 + 4 * m / 60)
    ),
    "LLD501: one of six instances pauses every six minutes": fault(
        "slow at regular intervals (LLD131): slow every 6 min & i-2: ModelLatency 4 & the 5 others 4",
        over=60,
        of=_six,
        latency=lambda m, i: 400 if m % 6 == 0 and i == 2 else 40,
    ),
    "LLD131: six of six instances pause every six minutes": fault(
        "slow every 6 min", over=60, of=_six, latency=_every(6)
    ),
    "LLD131: one of six instances in turn pauses every six minutes": fault(
        "slow every 6 min",
        over=120,
        of=_six,
        minutes=120,
        latency=lambda m, i: 400 if m % 6 == 0 and i == m // 6 % 6 else 40,
    ),
    "LLD503: a zone that pauses every six minutes": fault(
        "slow at regular intervals (LLD131) & us-east-1b: ModelLatency 4",
        over=60,
        zones=_ZONES,
        latency=lambda m, i: 400 if m % 6 == 0 and i % 2 else 40,
    ),
    "LLD501: single slow minutes of one instance of six": fault(
        "single periods are slow from time to time (LLD136) & i-2: ModelLatency 4",
        over=120,
        of=_six,
        minutes=120,
        latency=lambda m, i: 400 if m in _SINGLE and i == 2 else 40,
    ),
    "LLD136: single slow minutes, each of another instance": fault(
        "slow 18 times",
        over=120,
        of=_six,
        minutes=120,
        latency=lambda m, i: 400 if m in _SINGLE and i == m // 5 % 6 else 40,
    ),
    "LLD501: one of six instances grows cold in a pause without requests": fault(
        "(LLD132) & i-2: ModelLatency 5",
        over=120,
        of=_six,
        minutes=120,
        tps=between(30, 70, 0, 300),
        cpu=constant(20),
        latency=slow(70, 76, 500, instances=range(2, 3)),
    ),
    "LLD122: a fleet that goes out and in, each new instance cold, metrics per instance": fault(
        "6 scaling activities",
        of=_flapping,
        enhanced=True,
        latency=lambda m, i: 500 if i == 2 and m % 20 < 3 else 40,
    ),
    "LLD129: an instance that leaves every twelve minutes": fault(
        "1 of 4 instances stopped serving 9 times, every 12 min & each time for 3 min",
        "containers[].environment",
        over=120,
        of=_leaving,
    ),
    "LLD129: an instance that leaves from time to time": fault(
        "1 of 4 instances stopped serving 5 times, 13 to 30 min apart",
        over=120,
        of=_leaving,
        begins=(12, 37, 50, 80, 101),
    ),
    "LLD135: an instance that leaves twice": fault(
        "1 of 4 instances stopped serving at 02:20 & 1 of 4 instances stopped serving at 03:20",
        over=120,
        of=_leaving,
        begins=(20, 80),
    ),
    "LLD124: a burstable type without credits": fault(
        "CPU at 20 % & baseline of ml.t2.medium",
        "instance_type",
        of=one_core,
        instance_type="ml.t2.medium",
        tps=constant(4),
        cpu=from_minute(20, 60, 20),
        latency=slow(20, 60, 900),
    ),
    "LLD501: a slow instance under RANDOM, metrics per instance": fault(
        "i-3: ModelLatency 4 & the 7 others 4 & routing strategy RANDOM",
        "routing: least_outstanding_requests",
        routing="RANDOM",
        enhanced=True,
        latency=slow(20, 60, 400, instances=range(3, 4)),
    ),
    "LLD502: a slow instance under RANDOM, no metrics per instance": fault(
        "routing strategy RANDOM, AWS's default",
        "routing: least_outstanding_requests & metrics.enhanced: true",
        routing=None,
        latency=slow(20, 60, 400, instances=range(3, 4)),
    ),
    "LLD502: a slow instance under RANDOM, callers in step as before": fault(
        "routing strategy RANDOM",
        of=_few_requests,
        routing="RANDOM",
        instances=constant(3),
        in_flight=constant(7),
        latency=slow(20, 60, 800, instances=range(1)),
    ),
    "LLD503: a slow zone": fault(
        "us-east-1b: ModelLatency 15 & 50 % of the requests",
        "instances: {min: 4, initial: 4, max: 16} & alarms.zone_imbalance: 1.5",
        zones=_ZONES,
        latency=lambda m, i: 150 if i % 2 and m >= 15 else 40,
    ),
    "LLD503: a slow zone of a fleet that has two instances in each already": fault(
        "us-east-1b: ModelLatency 15",
        "alarms.zone_imbalance: 1.5",
        zones=_ZONES,
        instances=constant(12),
        scaling={"min": 12, "max": 16, "target": 7800.0},
        latency=lambda m, i: 150 if i % 2 and m >= 15 else 40,
    ),
    "LLD603: silence where an alarm expects traffic": fault(
        "alarm silence is in ALARM", tps=constant(0), silence_alarm=True
    ),
    "LLD701: a deployment that was rolled back": fault(
        "CloudWatch alarms in ALARM",
        status="UpdateRollbackFailed",
        failure="CloudWatch alarms in ALARM",
    ),
    "LLD701: an update without instances": fault(
        "the endpoint is InService; AWS says: & InsufficientInstanceCapacity",
        "capacity_reservation_arn & instance_type & client_zones.ids & deployment.rolling",
        failure="Unable to provision requested ML compute capacity due to "
        "InsufficientInstanceCapacity error.",
    ),
    "LLD701: an update with a role that does not trust SageMaker": fault(
        "Could not assume role",
        "role_arn",
        failure="Could not assume role arn:aws:iam::123456789012:role/r.",
    ),
    "LLD701: an update whose containers answer no ping": fault(
        "did not pass the ping health check",
        "startup_health_check_timeout & aws logs tail /aws/sagemaker/Endpoints/sentiment --since 1h",
        failure="The primary container for production variant primary did not pass the ping health "
        "check. Please check CloudWatch logs for this endpoint.",
    ),
    "LLD701: an endpoint that failed for want of quota, and never had a log": fault(
        "the endpoint is Failed; AWS says: & is 0 Instances & there is no log group",
        "instance_type",
        of=not_started,
        status="Failed",
        failure="The account-level service limit 'ml.g6e.2xlarge for endpoint usage' is 0 Instances, "
        "with current utilization of 0 Instances and a request delta of 1 Instances.",
    ),
    "LLD701: an update that failed in words of tomorrow": fault(
        "the endpoint is InService; AWS says: & The moon is full",
        "aws logs tail",
        failure="The moon is full.",
    ),
    "LLD702: a version that is slower": fault(
        "before 03:20 & and no slow period before",
        "containers[].image",
        deployed=20,
        latency=slow(22, 60, 130),
    ),
    "LLD702: a version that is slower, after a slow minute of the former": fault(
        "before 03:20 & and 1 slow period before",
        deployed=20,
        latency=lambda m, i: 130 if m == 5 or m >= 22 else 40,
    ),
    "LLD119: a CUDA 13 image on the default driver": fault(
        "Creating for 40 min & no log group & CUDA 13.0 & ml.g6e.2xlarge",
        "inference_ami: al2023-ami-sagemaker-inference-gpu-4-1",
        of=not_started,
    ),
    "LLD119: a CUDA 12 image on the driver for CUDA 13": fault(
        "CUDA 12.9 & no log group",
        "inference_ami",
        of=not_started,
        image="ray:2.0-gpu-py312-cu129-ubuntu24.04",
        inference_ami="al2023-ami-sagemaker-inference-gpu-4-1",
    ),
    "LLD119: a CUDA 13 image that failed on the default driver": fault(
        "the endpoint is Failed & no log group",
        "inference_ami",
        of=not_started,
        companion="LLD701",
        status="Failed",
        failure="did not pass the ping health check",
    ),
    "LLD120: no capacity for half an hour": fault(
        "Creating for 40 min & no log group",
        "instance_type",
        of=not_started,
        image="pytorch-inference:2.6.0-gpu-py312-cu124-ubuntu22.04",
    ),
    "LLD118: a disk that is nearly full": fault(
        "disk at 9", "volume_size_gib", disk=lambda m: 85 + m / 6
    ),
    "LLD111: an overload since a deployment, no cold start": fault(
        "5 requests in flight at first and 17 at last",
        "instances.min",
        of=_since_deployment,
        latency=lambda m, i: 400 if m < 54 else 1500 + 2700 * (m - 54),
        in_flight=lambda m: 1 if m < 54 else 2 + 3 * (m - 54),
    ),
    "LLD121: a cold start that gets no worse": fault(
        "slow within 10 minutes of the deployment",
        "deployment: {canary",
        of=_since_deployment,
        latency=lambda m, i: 400 if m < 54 else 3000,
        in_flight=from_minute(54, 1, 4),
    ),
    "LLD121: a cold start under a load that rises": fault(
        "slow within 10 minutes of the deployment",
        "deployment: {canary",
        of=_since_deployment,
        tps=lambda m: 9.5 if m < 54 else 9.5 + 3 * (m - 54),
        latency=lambda m, i: 400 if m < 54 else 2000 + 600 * (m - 54),
        in_flight=lambda m: 1 if m < 54 else 3 + 6 * (m - 54),
    ),
    "LLD704: somebody lowered the maximum": fault(
        "MaxCapacity is 8, the template says 16",
        "npx cdk deploy --revert-drift",
        of=saturated,
        companion="LLD102",
        stated={"max": 16},
    ),
    "LLD704: the target was raised, and the fleet is full": fault(
        "TargetValue is 90000, the template says 7800",
        of=saturated,
        companion="LLD107",
        scaling={"min": 2, "max": 16, "target": 90000.0},
        stated={"target": 7800.0},
    ),
    "LLD709: the configuration that serves is deleted": fault(
        "sentiment-config-2, the configuration that serves, is deleted", deleted="EndpointConfig"
    ),
    "LLD709: the model that serves is deleted": fault(
        "sentiment-model, the model that serves primary, is deleted", deleted="Model"
    ),
    "LLD715: the minimum was raised, and nothing happens": fault(
        "instances wanted: 8; the scalable target's minimum is 10",
        scaling={"min": 10, "max": 16, "target": 7800.0},
    ),
    "LLD801: time lost before SageMaker": fault(
        "client p99 400 ms & outside of SageMaker",
        "client_zones.ids",
        client_latency={"p99": 400.0},
    ),
    "LLD809: callers whose idle connections died": fault(
        "client p99 60.0 s is a time limit of 60 s, client p50 90 ms",
        of=_few_requests,
        latency=slow(0, 60, 40),
        client_latency={"p50": 90.0, "p99": 60_050.0},
    ),
    "LLD809: the same in the other order, with a retry after 70 s": fault(
        "client p99 70.2 s is a time limit of 70 s, client p50 90 ms",
        of=_few_requests,
        latency=slow(0, 60, 40),
        client_latency={"p99": 70_200.0, "p50": 90.0},
    ),
    "LLD801: a few calls that take long, and end at no time limit": fault(
        "client p99 52.0 s", client_latency={"p50": 60.0, "p99": 52_000.0}
    ),
    "LLD801: every call waits as long": fault(
        "client p50 1,340 ms", client_latency={"p50": 1340.0, "p99": 1390.0}
    ),
    "LLD801: all calls wait for a time limit": fault(
        "client p50 60.0 s", client_latency={"p50": 60_010.0, "p99": 60_050.0}
    ),
    "LLD405: requests that reach the time limit, as callers see it": fault(
        "60.0 s",
        companion="LLD801",
        errors={"InvocationModelErrors": constant(0.03)},
        longest_ms=constant(60_000),
        client_latency={"p50": 60.0, "p99": 60_050.0},
    ),
    "LLD802: 20 ms more on the path of one zone": fault(
        "connecting from use1-az1 takes 21 ms (median), from the other zones 1 ms",
        canary=watched(CanaryConnectTime=from_minute(30, 1, 21)),
    ),
    "LLD803: a zone that gets no answers": fault(
        "100 % of the canary's runs in use1-az1 got no answer & this ended at 03:43",
        canary=watched(CanaryUnreachable=between(20, 43, 1, 0)),
    ),
    "LLD806: answers that one zone waits for, though it connects fast": fault(
        "answers take 2,500 ms from use1-az1 (median), from the other zones 50 ms & takes 1 ms",
        canary=watched(CanaryAnswerTime=from_minute(30, 50, 2500)),
    ),
    "LLD805: a canary that fell silent in one zone": fault(
        "the canary in use1-az1 has been silent since 03:30",
        canary=watched(CanaryUnreachable=lambda minute: None if minute >= 30 else 0),
    ),
    "LLD804: the runtime's name leads out of the zone": fault(
        "in use1-az1 the runtime's name gave another zone's address in 100 % of",
        canary=watched(CanaryOutOfZone=constant(1)),
    ),
}
FAULTS = tuple(row(*key.split(": ", 1)) for key, row in _ROWS.items())
