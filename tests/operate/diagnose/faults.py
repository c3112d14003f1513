"""The injected faults: what is wrong, and the finding that it must produce.

``companions`` are findings that belong to the fault too; anything else is a false finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from low_latency_endpoint.operate.diagnose import Diagnosis, diagnose

from .account import FakeAccount
from .scenarios import END, ENDPOINT, Scenario, constant


@dataclass(frozen=True)
class Fault:
    """One fault in one endpoint; a pattern needs so many minutes ``over`` which it shows."""

    name: str
    scenario: Callable[[], Scenario]
    finding: str
    says: tuple[str, ...]
    changes: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()
    options: dict[str, Any] = field(default_factory=dict)
    over: int = 45

    def account(self) -> FakeAccount:
        """An account with this fault, one for all tests: they only read it."""
        return _account(self.name)

    def diagnosed(self) -> Diagnosis:
        """What is found in the scenario's window, read once for all tests."""
        return _diagnosed(self.name)


@cache
def _account(name: str) -> FakeAccount:
    return _named(name).scenario().account()


@cache
def _diagnosed(name: str) -> Diagnosis:
    fault = _named(name)
    return diagnose(
        fault.account(),
        ENDPOINT,
        start=fault.scenario().start,
        end=END,
        now=END,
        region="us-east-1",
        **fault.options,
    )


def _named(name: str) -> Fault:
    (found,) = [fault for fault in FAULTS if fault.name == name]
    return found


def from_minute(minute: int, before: float, after: float) -> Callable[[int], float]:
    """One value before the minute, another from it on."""
    return lambda now: before if now < minute else after


def between(first: int, last: int, inside: float, outside: float) -> Callable[[int], float]:
    """One value in some minutes, another in the others."""
    return lambda now: inside if first <= now < last else outside


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


def _saturated(**more: Any) -> Scenario:
    """Full instances from minute 25 on: too much load, CPU at its end, slow answers."""
    values: dict[str, Any] = {
        "tps": from_minute(25, 600, 1900),
        "cpu": from_minute(25, 45, 97),
        "latency": lambda m, i: 40 if m < 25 else 300,
        "in_flight": from_minute(25, 24, 570),
        "scaling": {"min": 2, "max": 8, "target": 7800.0},
    }
    return Scenario(**(values | more))


def _scale_out_failed(message: str) -> Scenario:
    made = _saturated(scaling={"min": 2, "max": 16, "target": 7800.0})
    made.activities = [made.scaled(28 + 4 * n, 15, "Failed", message) for n in range(3)]
    return made


def _lagging() -> Scenario:
    """The load doubles over 25 minutes, each step of scaling comes late."""
    made = Scenario(
        minutes=90,
        tps=lambda m: min(max(300 + 40 * (m - 30), 300), 1500),
        instances=lambda m: 3 if m < 55 else 6 if m < 68 else 12,
        cpu=lambda m: 45 if m < 38 else 96 if m < 68 else 60,
        latency=lambda m, i: 40 if m < 38 else 320 if m < 68 else 42,
        scaling={"min": 2, "max": 16, "target": 7800.0, "cooldown": 600},
    )
    made.activities = [made.scaled(49, 6), made.scaled(62, 12)]
    return made


def _suspended() -> Scenario:
    made = _saturated(scaling={"min": 2, "max": 16, "target": 7800.0})
    made.suspended = True
    return made


def _cold_after_scale_out(
    to: int = 8, *, by_hand: bool = False, until: int = 33, **more: Any
) -> Scenario:
    """New instances are ten times slower for some minutes."""
    values: dict[str, Any] = {
        "tps": from_minute(20, 500, 1000),
        "instances": from_minute(27, 5, to),
        "cpu": from_minute(20, 30, 55),
        "latency": lambda m, i: 400 if i >= 5 and 27 <= m < until else 40,
    }
    made = Scenario(**(values | more))
    if not by_hand:
        made.activities = [made.scaled(21, to, took=6)]
    return made


def _cold_then_saturated(**more: Any) -> Scenario:
    """Cold for eight minutes after a scale-out to the maximum; later full for twelve."""
    values: dict[str, Any] = {
        "tps": between(40, 52, 950, 500),
        "cpu": between(40, 52, 97, 40),
        "latency": lambda m, i: 400 if 18 <= m < 26 else 300 if 40 <= m < 52 else 40,
        "instances": from_minute(18, 6, 8),
        "scaling": {"min": 2, "max": 8, "target": 7800.0},
        "in_flight": between(40, 52, 285, 20),
        "planned": None,
    }
    made = Scenario(**(values | more))
    made.activities = [made.scaled(13, 8)]
    return made


def _twice_cold() -> Scenario:
    made = Scenario(
        tps=lambda m: 500 if m < 22 else 700 if m < 40 else 900,
        instances=lambda m: 5 if m < 22 else 6 if m < 40 else 8,
        latency=lambda m, i: 400 if (i == 5 and 22 <= m < 27) or (i > 5 and 40 <= m < 46) else 40,
    )
    made.activities = [made.scaled(17, 6), made.scaled(35, 8)]
    return made


def _gpu(**more: Any) -> Scenario:
    return Scenario(**({"instance_type": "ml.g5.xlarge", "gpu": constant(55)} | more))


def _by_concurrency(most: int, used: float, **more: Any) -> Scenario:
    """Scaled by requests in flight, four on each instance; from minute 25 on there are forty."""
    values: dict[str, Any] = {
        "gpu": from_minute(25, 40, used),
        "cpu": constant(20),
        "tps": from_minute(25, 8, 24),
        "in_flight": from_minute(25, 3, 40),
        "latency": lambda m, i: 40 if m < 25 else 900,
        "planned": None,
        "scaling": {
            "min": 2,
            "max": most,
            "target": 4.0,
            "metric": "SageMakerVariantConcurrentRequestsPerModelHighResolution",
        },
    }
    return _gpu(**(values | more))


def _every(period: int, length: int = 1) -> Callable[[int, int], float]:
    """Ten times slower for the first minutes of each period."""
    return lambda m, i: 400 if m % period < length else 40


def _restarting(m: int) -> int:
    """Minutes since the last of the restarts, one in forty minutes."""
    return (m + 15) % 40


def _zone_lost(**more: Any) -> Scenario:
    """Half of the fleet gone from minute 25 on; what is left is full."""
    values: dict[str, Any] = {
        "tps": constant(800),
        "instances": from_minute(25, 8, 4),
        "cpu": from_minute(25, 52, 98),
        "latency": lambda m, i: 40 if m < 25 else 330,
    }
    return Scenario(**(values | more))


FAULTS = (
    Fault(
        "every fifth minute ten times slower",
        lambda: Scenario(latency=_every(5)),
        "LLD131",
        (
            "slow every 5 min (03:00, 03:05, 03:10, 03:15 and on), in 12 of 12 cycles",
            "20 % of all requests came then",
            "the load is the same",
        ),
        ("containers[].environment",),
    ),
    Fault(
        "single slow minutes at any time, a fifth of all",
        lambda: Scenario(
            minutes=120,
            latency=lambda m, i: (
                400
                if m in {3, 6, 15, 19, 22, 30, 34, 43, 45, 53, 62, 66, 75, 77, 90, 96, 104, 107}
                else 40
            ),
        ),
        "LLD136",
        ("slow 18 times, for 1 periods in the mean", "15 % of all requests came then"),
        ("containers[].environment",),
        over=120,
    ),
    Fault(
        "three minutes of every fifteen slow, which an alarm sees too",
        lambda: Scenario(minutes=120, latency=_every(15, 3)),
        "LLD131",
        ("slow every 15 min", "in 8 of 8 cycles"),
        ("containers[].environment",),
        over=120,
    ),
    Fault(
        "callers that come all at once every ten minutes",
        lambda: Scenario(
            tps=lambda m: 2000 if m % 10 == 2 else 600,
            cpu=lambda m: 97 if m % 10 == 2 else 40,
            latency=lambda m, i: 400 if m % 10 == 2 else 40,
        ),
        "LLD131",
        ("3.3 times the load then: callers come in bursts",),
        over=60,
    ),
    Fault(
        "cold after a pause without requests",
        lambda: Scenario(
            minutes=120,
            tps=between(30, 70, 0, 300),
            cpu=constant(20),
            latency=lambda m, i: 500 if 70 <= m < 76 else 40,
        ),
        "LLD132",
        ("slow for up to 6 min after a pause without requests (02:30-03:10)",),
        ("warm_up.keep_warm",),
        over=120,
    ),
    Fault(
        "latency that creeps to five times its first value",
        lambda: Scenario(latency=lambda m, i: 40 * (1 + 4 * m / 60)),
        "LLD133",
        ("ModelLatency p99 grew from", "load per instance at the end 1.00 times"),
        ("containers[].image",),
        over=60,
    ),
    Fault(
        "memory that leaks until instances restart",
        lambda: Scenario(
            minutes=180,
            memory=lambda m: 35 + 1.55 * _restarting(m),
            instances=lambda m: 4 if _restarting(m) < 3 else 8,
            latency=lambda m, i: 350 if _restarting(m) < 6 or _restarting(m) > 33 else 40,
        ),
        "LLD134",
        ("memory climbed to 9", "4 times, some 40 min apart", "fewer instances served"),
        ("containers[].environment",),
        over=150,
    ),
    Fault(
        "half of the fleet gone at once",
        _zone_lost,
        "LLD135",
        (
            "4 of 8 instances stopped serving at 03:25",
            "not back at the end",
            "800 requests a second before, 800 after",
        ),
        ("client_zones.ids",),
        over=60,
    ),
    Fault(
        "a zone gone with its instances, and back, with errors of those left",
        lambda: _zone_lost(
            minutes=90,
            zones=("us-east-1a",),
            instances=lambda m: 4 if 25 <= m < 50 else 8,
            cpu=between(25, 50, 98, 52),
            latency=lambda m, i: 330 if 25 <= m < 50 else 40,
            errors={"Invocation5XXErrors": between(25, 50, 0.05, 0)},
        ),
        "LLD135",
        ("4 of 8 instances stopped serving at 02:55", "back at 03:20"),
        ("client_zones.ids",),
        over=90,
    ),
    Fault(
        "a saturated fleet at its maximum",
        _saturated,
        "LLD102",
        ("CPU at 97 %", "all 8 instances", "14,250 invocations", "planned for 1,600"),
        ("instances.max: 15", "throughput.peak_tps"),
    ),
    Fault(
        "a saturated fleet at its maximum, far below its scaling target",
        lambda: _saturated(tps=from_minute(25, 200, 400)),
        "LLD102",
        ("CPU at 97 %", "all 8 instances", "3,000 invocations"),
        # 8 x 97 / 65; full at 50 a second where a load test found 200: no capacity to plan with.
        ("instances.max: 12", "throughput.tps_per_instance"),
    ),
    Fault(
        "a scale-out that AWS has no capacity for",
        lambda: _scale_out_failed(
            "Failed to set desired instance count to 15. Reason: unable "
            "to provision requested ML compute capacity"
        ),
        "LLD103",
        ("3 scaling activities failed", "AWS has no more instances"),
        ("capacity_reservation_arn", "instance_type"),
    ),
    Fault(
        "a scale-out beyond the account's quota",
        lambda: _scale_out_failed(
            "The account-level service limit 'ml.m5.12xlarge for endpoint usage' is 8 Instances"
        ),
        "LLD103",
        ("the account's quota is used up",),
        ("instance_type",),
    ),
    Fault(
        "scaling that lags behind a ramp",
        _lagging,
        "LLD104",
        ("the first instances were asked for at",),
        ("scaling.metric: concurrency", "scaling.scale_out_cooldown: 60s"),
    ),
    Fault(
        "a saturated fleet that does not scale",
        lambda: _saturated(scaling=None),
        "LLD105",
        ("CPU at 97 %",),
        ("scaling.enabled: true", "throughput"),
    ),
    Fault(
        "scaling out that somebody suspended",
        _suspended,
        "LLD106",
        ("CPU at 97 %",),
        ("scaling.enabled: true",),
    ),
    Fault(
        "a scaling target above what instances hold",
        lambda: Scenario(
            tps=from_minute(25, 400, 950),
            cpu=from_minute(25, 45, 97),
            latency=lambda m, i: 40 if m < 25 else 300,
        ),
        "LLD107",
        ("only 7,125 invocations per instance and minute against a target of 7,800",),
        ("throughput.tps_per_instance: 119", "throughput.safety_factor"),
    ),
    Fault(
        "a CPU that cannot feed its GPU",
        lambda: _gpu(
            cpu=from_minute(25, 50, 96),
            gpu=from_minute(25, 25, 30),
            latency=lambda m, i: 40 if m < 25 else 300,
        ),
        "LLD108",
        ("GPU at 30 % while CPU at 9",),
        ("instance_type",),
    ),
    Fault(
        "a spike shorter than scaling can follow",
        lambda: Scenario(
            tps=between(30, 35, 3600, 600),
            cpu=between(30, 35, 98, 45),
            latency=lambda m, i: 400 if 30 <= m < 35 else 40,
        ),
        "LLD601",
        ("3,600 requests a second in the spike, 600 in the median",),
        ("instances.min",),
    ),
    Fault(
        "workers too few for idle CPUs",
        lambda: Scenario(
            tps=lambda m: 100 + 20 * m,
            cpu=lambda m: 10 + m / 4,
            latency=lambda m, i: 40 if m < 30 else 40 * (1 + (m - 30) / 4),
            in_flight=lambda m: 4 if m < 30 else 4 + 3 * (m - 30),
            environment={"SAGEMAKER_MODEL_SERVER_WORKERS": "1"},
        ),
        "LLD111",
        ("requests in flight at once", "workers per instance by its environment: 1"),
        ("containers[].environment", "scaling.metric: concurrency"),
    ),
    Fault(
        "a model that is slow on idle CPUs",
        lambda: Scenario(latency=lambda m, i: 240, cpu=constant(30), in_flight=constant(20)),
        "LLD112",
        ("p50 24", "CPU at 30 %"),
        ("instance_type: ml.inf2.xlarge", "instance_type: ml.g5.xlarge or ml.g6.xlarge"),
    ),
    Fault(
        "requests of very different length",
        lambda: Scenario(spread=1.0, latency=lambda m, i: 40),
        "LLD113",
        ("times p50",),
        ("metrics.enhanced: true",),
    ),
    Fault(
        "a GPU image that runs on the CPU",
        lambda: _gpu(
            gpu=constant(0), cpu=constant(70), latency=lambda m, i: 300, in_flight=constant(20)
        ),
        "LLD115",
        ("GPU at 0.0 %",),
        ("containers[].image",),
    ),
    Fault(
        "memory that is full",
        lambda: Scenario(
            memory=from_minute(20, 50, 96), latency=lambda m, i: 40 if m < 20 else 300
        ),
        "LLD117",
        ("memory at 9",),
        ("instance_type",),
    ),
    Fault(
        "instances that start cold",
        _cold_after_scale_out,
        "LLD121",
        ("the scale-out to 8 instances at 03:27",),
        ("instances.min",),
    ),
    Fault(
        "instances that start cold, metrics per instance",
        lambda: _cold_after_scale_out(enhanced=True, zones=("us-east-1a", "us-east-1b")),
        "LLD121",
        ("the scale-out to 8 instances at 03:27",),
        ("instances.min",),
    ),
    Fault(
        "instances that start cold in the minute in which scaling asks for them",
        lambda: (
            made := _cold_after_scale_out(by_hand=True),
            setattr(made, "activities", [made.scaled(27.5, 8, took=0.2)]),
        )[0],
        "LLD121",
        ("the scale-out to 8 instances at 03:27",),
        ("instances.min",),
    ),
    Fault(
        "one instance that starts cold, metrics per instance",
        lambda: _cold_after_scale_out(6, enhanced=True, tps=from_minute(20, 500, 750)),
        "LLD121",
        ("the scale-out to 6 instances at 03:27",),
        ("instances.min",),
    ),
    Fault(
        "instances added by hand that start cold",
        lambda: _cold_after_scale_out(by_hand=True, scaling=None),
        "LLD121",
        ("the rise from 5 to 8 instances at 03:27",),
        ("instances.min",),
    ),
    Fault(
        "an instance replaced by a cold one, metrics per instance",
        lambda: Scenario(
            enhanced=True,
            arrives={2: 25},
            latency=lambda m, i: 400 if i == 2 and 25 <= m < 31 else 40,
        ),
        "LLD121",
        ("the start of i-2 at 03:25",),
        ("containers[].environment",),
    ),
    Fault(
        "a new instance that stays slow, metrics per instance",
        lambda: _cold_after_scale_out(
            6, until=60, enhanced=True, routing="RANDOM", tps=from_minute(20, 500, 750)
        ),
        "LLD501",
        ("i-5: ModelLatency 4", "the 5 others 4"),
        ("routing: least_outstanding_requests",),
    ),
    Fault(
        "cold after two scale-outs",
        _twice_cold,
        "LLD121",
        (
            "in 11 of",
            "in 2 stretches",
            "the scale-out to 6 instances at 03:22",
            "the scale-out to 8 instances at 03:40",
        ),
        ("instances.min",),
    ),
    Fault(
        "requests that queue in a fleet at its maximum, scaled by concurrency",
        lambda: _by_concurrency(8, 78),
        "LLD102",
        ("40 requests in flight on an instance against a target of 4", "all 8 instances"),
        ("instances.max: 10",),
    ),
    Fault(
        "scaling by concurrency that does not follow",
        lambda: _by_concurrency(16, 97),
        "LLD104",
        ("GPU at 97 %", "up to 40 requests in flight on an instance against a target of 4"),
        ("scaling.concurrency_target", "instances.min"),
    ),
    Fault(
        "a target of concurrency above what instances hold",
        lambda: _by_concurrency(16, 97, in_flight=from_minute(25, 2, 4)),
        "LLD107",
        ("only 4 requests in flight on an instance against a target of 4",),
        ("scaling.concurrency_target: 4",),
    ),
    Fault(
        "workers too few, scaled by concurrency",
        lambda: _by_concurrency(8, 30, environment={"SAGEMAKER_MODEL_SERVER_WORKERS": "2"}),
        "LLD111",
        ("workers per instance by its environment: 2",),
        ("scaling.concurrency_target: 2",),
    ),
    Fault(
        "a cold fleet, and a saturated one later",
        _cold_then_saturated,
        "LLD121",
        ("in 8 of", "the scale-out to 8 instances at 03:18"),
        ("instances.min",),
        frozenset({"LLD102"}),
    ),
    Fault(
        "a saturated fleet, and a cold one before",
        _cold_then_saturated,
        "LLD102",
        ("in 12 of", "CPU at 97 %", "all 8 instances"),
        ("instances.max",),
        frozenset({"LLD121"}),
    ),
    Fault(
        "a cold fleet and a saturated one, metrics per instance",
        lambda: _cold_then_saturated(
            enhanced=True,
            latency=lambda m, i: 400 if i >= 6 and 18 <= m < 26 else 300 if 40 <= m < 52 else 40,
        ),
        "LLD102",
        ("in 12 of", "CPU at 97 %"),
        (),
        frozenset({"LLD121"}),
    ),
    Fault(
        "a model somewhat slow, until its fleet is saturated too",
        lambda: _saturated(
            tps=from_minute(40, 600, 1900),
            cpu=from_minute(40, 45, 97),
            latency=lambda m, i: 85 if m < 40 else 300,
            in_flight=constant(24),
        ),
        "LLD102",
        ("in 20 of", "CPU at 97 %", "14,250 invocations"),
        ("instances.max: 15",),
        frozenset({"LLD112"}),
    ),
    Fault(
        "a saturated fleet with one instance slower still, metrics per instance",
        lambda: _saturated(
            routing="RANDOM",
            enhanced=True,
            latency=lambda m, i: 40 if m < 25 else 700 if i == 0 else 300,
        ),
        "LLD102",
        ("CPU at 97 %", "all 8 instances"),
        ("instances.max: 15",),
    ),
    Fault(
        "an overhead after a scale-out, and another under steady traffic",
        lambda: (
            made := Scenario(
                instances=from_minute(20, 5, 8),
                tps=constant(500),
                overhead=lambda m: 90 if 20 <= m < 25 or m >= 45 else 6,
            ),
            setattr(made, "activities", [made.scaled(15, 8)]),
        )[0],
        "LLD201",
        ("the scale-out to 8 instances",),
        ("instances.min",),
        frozenset({"LLD203"}),
    ),
    Fault(
        "a cold fleet after a deployment, metrics per instance",
        lambda: Scenario(
            deployed=20,
            enhanced=True,
            arrives=dict.fromkeys(range(8), 20),
            latency=lambda m, i: 300 + 20 * i if 21 <= m < 29 else 40,
        ),
        "LLD121",
        ("the deployment of sentiment-config-2 at 03:20",),
        ("deployment.canary",),
    ),
    Fault(
        "a slow instance of a new fleet, metrics per instance",
        lambda: Scenario(
            deployed=45,
            enhanced=True,
            arrives=dict.fromkeys(range(8), 45),
            routing="RANDOM",
            latency=lambda m, i: 600 if m >= 46 and i == 0 else 40,
        ),
        "LLD501",
        ("i-0: ModelLatency 6", "the 7 others 4"),
        ("routing: least_outstanding_requests",),
    ),
    Fault(
        "a cold fleet after a deployment",
        lambda: Scenario(deployed=20, latency=lambda m, i: 350 if 21 <= m < 29 else 40),
        "LLD121",
        ("the deployment of sentiment-config-2 at 03:20",),
        ("deployment.canary",),
    ),
    Fault(
        "an overhead that follows a scale-out",
        lambda: (
            made := Scenario(
                instances=from_minute(27, 5, 8), tps=constant(500), overhead=between(27, 33, 90, 6)
            ),
            setattr(made, "activities", [made.scaled(21, 8, took=6)]),
        )[0],
        "LLD201",
        ("the scale-out to 8 instances",),
        ("instances.min",),
    ),
    Fault(
        "requests too rare to keep the path warm",
        lambda: Scenario(
            tps=lambda m: 1 / 30 if m % 3 == 0 else 0,
            instances=constant(2),
            overhead=constant(70),
            cpu=constant(2),
        ),
        "LLD202",
        ("2 requests a minute",),
    ),
    Fault(
        "an overhead under steady traffic",
        lambda: Scenario(overhead=from_minute(10, 6, 65), data_capture=100),
        "LLD203",
        ("600 requests a second", "data capture records 100 %"),
        ("data_capture.sampling_percentage",),
    ),
    Fault(
        "more models than fit into memory",
        lambda: Scenario(
            latency=lambda m, i: 70,
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
        "LLD301",
        ("40 % of the requests", "12 models loaded"),
        ("instance_type",),
    ),
    Fault(
        "models that are far away",
        lambda: Scenario(
            multi_model={
                "ModelCacheHit": constant(0.8),
                "LoadedModelCount": constant(30),
                "ModelLoadingWaitTime": constant(4000),
                "ModelDownloadingTime": constant(3500),
                "ModelLoadingTime": constant(500),
            }
        ),
        "LLD302",
        ("download 3,500 ms, load 500 ms",),
        ("containers[].data",),
    ),
    Fault(
        "saturated instances that fail",
        lambda: _saturated(errors={"Invocation5XXErrors": from_minute(25, 0, 0.06)}),
        "LLD401",
        ("6", "CPU at 97 %"),
        ("instances.max",),
        frozenset({"LLD102"}),
    ),
    Fault(
        "a container that crashes",
        lambda: Scenario(
            errors={
                "Invocation5XXErrors": between(30, 50, 0.05, 0),
                "InvocationModelErrors": between(30, 50, 0.05, 0),
            }
        ),
        "LLD402",
        ("5XX errors", "most at 03:"),
        ("containers[].environment",),
    ),
    Fault(
        "callers that send what the model refuses",
        lambda: Scenario(errors={"Invocation4XXErrors": from_minute(30, 0, 0.1)}),
        "LLD403",
        ("4XX errors, 5.0 %",),
        ("alarms.client_error_rate: 0.05",),
    ),
    Fault(
        "callers beyond a limit of 700 requests a second",
        lambda: Scenario(
            tps=lambda m: 500 + 10 * m,
            errors={"Invocation4XXErrors": lambda m: max(0.0, 1 - 700 / (500 + 10 * m))},
        ),
        "LLD407",
        ("4XX errors", "refused only where more than 700 requests a second came"),
        ("containers[].environment",),
        over=60,
    ),
    Fault(
        "a container that drops connections",
        lambda: Scenario(errors={"InvocationModelErrors": from_minute(30, 0, 0.04)}),
        "LLD404",
        ("model errors beside 4XX and 5XX",),
    ),
    Fault(
        "requests that reach the time limit",
        lambda: Scenario(
            errors={"Invocation5XXErrors": from_minute(30, 0, 0.03)},
            longest_ms=from_minute(30, 0, 60_000),
        ),
        "LLD405",
        ("60.0 s",),
        ("containers[].environment",),
    ),
    Fault(
        "a slow instance under RANDOM, metrics per instance",
        lambda: Scenario(
            routing="RANDOM", enhanced=True, latency=lambda m, i: 400 if i == 3 and m >= 20 else 40
        ),
        "LLD501",
        ("i-3: ModelLatency 4", "the 7 others 4", "routing strategy RANDOM"),
        ("routing: least_outstanding_requests",),
    ),
    Fault(
        "a slow instance under RANDOM, no metrics per instance",
        lambda: Scenario(routing=None, latency=lambda m, i: 400 if i == 3 and m >= 20 else 40),
        "LLD502",
        ("routing strategy RANDOM, AWS's default",),
        ("routing: least_outstanding_requests", "metrics.enhanced: true"),
    ),
    Fault(
        "a slow zone",
        lambda: Scenario(
            zones=("us-east-1a", "us-east-1b"),
            latency=lambda m, i: 150 if i % 2 and m >= 15 else 40,
        ),
        "LLD503",
        ("us-east-1b: ModelLatency 15", "50 % of the requests"),
        ("instances.min", "alarms.zone_imbalance: 1.5"),
    ),
    Fault(
        "silence where an alarm expects traffic",
        lambda: Scenario(tps=constant(0), silence_alarm=True),
        "LLD603",
        ("alarm silence is in ALARM",),
    ),
    Fault(
        "a deployment that was rolled back",
        lambda: Scenario(status="UpdateRollbackFailed", failure="CloudWatch alarms in ALARM"),
        "LLD701",
        ("CloudWatch alarms in ALARM",),
        ("deployment.rollback_on_alarms: true",),
    ),
    Fault(
        "a version that is slower",
        lambda: Scenario(deployed=20, latency=lambda m, i: 40 if m < 22 else 130),
        "LLD702",
        ("before 03:20",),
        ("containers[].image",),
    ),
    Fault(
        "a CUDA 13 image on the default driver",
        not_started,
        "LLD119",
        ("Creating for 40 min", "no log group", "CUDA 13.0", "ml.g6e.2xlarge"),
        ("inference_ami: al2023-ami-sagemaker-inference-gpu-4-1",),
    ),
    Fault(
        "a CUDA 12 image on the driver for CUDA 13",
        lambda: not_started(
            image="ray:2.0-gpu-py312-cu129-ubuntu24.04",
            inference_ami="al2023-ami-sagemaker-inference-gpu-4-1",
        ),
        "LLD119",
        ("CUDA 12.9", "no log group"),
        ("inference_ami",),
    ),
    Fault(
        "a CUDA 13 image that failed on the default driver",
        lambda: not_started(status="Failed", failure="did not pass the ping health check"),
        "LLD119",
        ("the endpoint is Failed", "no log group"),
        ("inference_ami",),
        companions=frozenset({"LLD701"}),
    ),
    Fault(
        "no capacity for half an hour",
        lambda: not_started(image="pytorch-inference:2.6.0-gpu-py312-cu124-ubuntu22.04"),
        "LLD120",
        ("Creating for 40 min", "no log group"),
        ("instance_type",),
    ),
    Fault(
        "a disk that is nearly full",
        lambda: Scenario(disk=lambda m: 85 + m / 6),
        "LLD118",
        ("disk at 9",),
        ("volume_size_gib",),
    ),
    Fault(
        "time lost before SageMaker",
        lambda: Scenario(),
        "LLD801",
        ("client p99 400 ms", "outside of SageMaker"),
        ("client_zones.ids",),
        options={"client_latency": {"p99": 400.0}},
    ),
)
