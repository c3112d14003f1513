"""Each injected fault gives its finding and nothing else; healthy endpoints give none."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose.document import alarms_text
from low_latency_endpoint.operate.diagnose.findings import KINDS
from low_latency_endpoint.options.scaling import InstanceCounts, ScalingOptions
from low_latency_endpoint.options.throughput import MeasuredThroughput
from low_latency_endpoint.plan.endpoint_request import EndpointRequest
from low_latency_endpoint.plan.latency_plan import make_plan
from low_latency_endpoint.plan.serving import Serving
from tests.depth import sampled

from .conftest import Run
from .faults.endpoints import custom_metric, not_started, one_core
from .faults.fault import Fault, between, from_minute, slow, up_to
from .scenarios import Scaled, Scenario, constant
from .update_faults import ALL_FAULTS


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=str)
def test_a_fault_gives_its_finding_and_nothing_else(fault: Fault) -> None:
    made = fault.diagnosed
    found = {finding.id: finding for finding in made.findings}
    assert set(found) == {fault.finding} | fault.companions
    assert len(made.findings) == len(found), "one finding each"
    finding = found[fault.finding]
    words = " ".join(evidence.text for evidence in finding.evidence)
    for text in fault.says:
        assert text in words
    changes = [change.text for change in finding.changes]
    for text in fault.changes:
        assert any(change == text or change.startswith(text) for change in changes), changes
    assert not made.healthy
    told = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert {each["id"] for each in told["findings"]} == set(found)


SCHEMA = json.loads((Path(__file__).parents[3] / "endpoint.schema.json").read_text("utf-8"))


def said_by(schema: Any, word: str) -> list[Any]:
    """What a schema, or any of its alternatives, says under a word."""
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    others = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    return [
        *([schema[word]] if word in schema else ()),
        *(x for o in others for x in said_by(o, word)),
    ]


def has_key(key: str, schema: Any) -> bool:
    """Whether the settings file's schema has this path of keys, ``[]`` being any item."""
    groups = [schema]
    for part in key.split("."):
        name = part.removesuffix("[]")
        found = [each for group in groups for each in said_by(group, "properties")]
        groups = [each[name] for each in found if name in each]
        if part.endswith("[]"):
            groups = [each for group in groups for each in said_by(group, "items")]
    return bool(groups)


def endpoint_schema() -> Any:
    (endpoints,) = said_by(SCHEMA["properties"]["endpoints"], "patternProperties")
    return next(iter(endpoints.values()))


def test_the_check_of_keys_can_fail() -> None:
    assert has_key("instances.max", endpoint_schema())
    assert has_key("containers[].image", endpoint_schema())
    assert not has_key("instances.most", endpoint_schema())
    assert not has_key("containers[].picture", endpoint_schema())


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=str)
def test_changes_name_keys_of_the_settings_file(fault: Fault) -> None:
    for finding in fault.diagnosed.findings:
        assert finding.changes or finding.besides, "something to do"
        said = " ".join([finding.besides, *(f"{each.text} {each.why}" for each in finding.changes)])
        assert not re.search(r"\{[a-z_]+\}", said), "each name in braces is filled"
        assert finding.evidence
        assert finding.path
        for change in finding.changes:
            root = SCHEMA if "stack-level" in change.why else endpoint_schema()
            assert change.command or has_key(change.key, root), change.key


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=str)
def test_the_plan_takes_every_number(fault: Fault) -> None:
    made = fault.diagnosed
    (variant,) = made.measurements.variants
    planned = made.measurements.plan
    for finding in made.findings:
        for change in finding.changes:
            assert "for 65 %" not in change.why
            if not re.fullmatch(r"[\d.]+", change.value):
                continue
            number = float(change.value)
            throughput, chosen = None, {}
            if change.key in ("throughput.tps_per_instance", "throughput.peak_tps"):
                peak = (planned and planned.peak_tps) or 600.0
                each = (planned and planned.tps_per_instance) or 200.0
                throughput = (
                    MeasuredThroughput(peak_tps=peak, tps_per_instance=number, safety_factor=0.65)
                    if change.key.endswith("instance")
                    else MeasuredThroughput(
                        peak_tps=number, tps_per_instance=each, safety_factor=0.65
                    )
                )
            elif change.key in ("instances.max", "instances.min"):
                held = variant.scaling.minimum if variant.scaling else None
                assert change.key == "instances.max" or number > (held or 0), change
                chosen = {"instances": InstanceCounts(max=int(number))}
            elif change.key == "scaling.concurrency_target":
                chosen = {
                    "scaling": ScalingOptions(metric="concurrency", concurrency_target=number)
                }
            plan = make_plan(
                EndpointRequest(
                    client_zones=("use1-az1", "use1-az2"),
                    serving=Serving(instance_type=variant.instance_type),
                    throughput=throughput,
                    **chosen,
                )
            )
            assert plan.fleet.at_peak <= 4 * 16, "the most that the faults' scaling may start"


def test_every_kind_of_finding_has_a_fault() -> None:
    shown = {fault.finding for fault in ALL_FAULTS}
    # LLD101 needs scaling unknown, LLD406 streams, LLD606 and LLD705 silence (test_reports.py), LLD703
    # missing instances, LLD710 an alarm alone (test_alarm_causes.py), LLD137 to LLD143 tokens
    # (test_tokens.py): each its own test.
    of_tokens = {f"LLD{number}" for number in range(137, 144)}
    assert {kind.id for kind in KINDS.values()} - shown == of_tokens | {
        "LLD101",
        "LLD406",
        "LLD606",
        "LLD703",
        "LLD705",
        "LLD710",
    }


def _daily_wave() -> Scenario:
    """A day from 150 to 1500 requests a second; scaling follows with some minutes' delay."""

    def wave(minute: float) -> float:
        return 825 - 675 * math.cos(2 * math.pi * minute / 1440)

    def fleet(minute: float) -> int:
        return max(2, math.ceil(wave(minute - 6) * 60 / 7800 * 1.05))

    def cpu(minute: int) -> float:
        return 70 * wave(minute) * 60 / 7800 / fleet(minute)

    return Scenario(
        minutes=1440,
        tps=wave,
        instances=fleet,
        cpu=cpu,
        latency=lambda m, i: 35 + cpu(m) / 10,
        activities=[
            Scaled(m - 4, now, cause="AlarmHigh" if now > before else "AlarmLow", took=4)
            for m in range(1, 1440)
            if (now := fleet(m)) != (before := fleet(m - 1))
        ],
    )


def _just_scaled() -> Scenario:
    """New instances since five minutes: two minutes a little slower, within the target."""
    return Scenario(
        tps=lambda m: 500 if m < 45 else 780,
        instances=lambda m: 5 if m < 55 else 7,
        cpu=lambda m: 50 if m < 45 else 68,
        latency=lambda m, i: 60 if i >= 5 and m < 57 else 42,
        overhead=lambda m: 12 if 55 <= m < 57 else 6,
        activities=[Scaled(49, 7, took=6)],
    )


@pytest.mark.parametrize("seed", range(5))
def test_wrong_requests_are_not_throttled(seed: int, run: Run) -> None:
    """A share of what comes, at any load; also where they come only while it is high."""
    chosen = random.Random(seed)
    share, begin = chosen.uniform(0.03, 0.3), chosen.choice([0, 20, 35])
    made = Scenario(
        tps=lambda m: 500 + 10 * m,
        errors={"Invocation4XXErrors": lambda m: share if m >= begin else 0},
    )
    assert [finding.id for finding in run(made).findings] == ["LLD403"]


@pytest.mark.parametrize("seed", range(5))
def test_a_limit_of_each_instance_is_throttling_too(seed: int, run: Run) -> None:
    """The limit rises with the instances: 90 requests a second on each."""
    chosen = random.Random(seed)
    high = [chosen.uniform(800, 1300) for _ in range(60)]

    def tps(m: int) -> float:
        return high[m] if 15 <= m < 45 else 300

    made = Scenario(
        tps=tps,
        instances=lambda m: 8 if m < 30 else 10,
        errors={"Invocation4XXErrors": lambda m: max(0, 1 - (720 if m < 30 else 900) / tps(m))},
    )
    (finding,) = run(made).findings
    assert finding.id == "LLD407"
    assert "90 requests a second on each instance" in finding.evidence[1].text


def _small(**more: Any) -> Scenario:
    """One instance of four CPUs, one of them busy, and fast enough."""
    values: dict[str, Any] = {
        "latency": slow(0, 60, 70),
        "spread": 0.3,
        "cpu": constant(25),
        "in_flight": constant(2),
    }
    return one_core(**(values | more))


HEALTHY: dict[str, Callable[[], Scenario]] = {
    "steady": Scenario,
    "daily wave": _daily_wave,
    "low traffic": lambda: Scenario(
        tps=lambda m: 0.05 if m % 2 else 0.1, instances=constant(2), cpu=constant(2), spread=0.4
    ),
    "low traffic with a slow request now and then": lambda: Scenario(
        tps=constant(0.05),
        instances=constant(2),
        cpu=constant(2),
        latency=lambda m, i: 300 if m % 13 == 0 else 40,
    ),
    "low traffic with some long requests in a row": lambda: Scenario(
        tps=constant(0.05),
        instances=constant(2),
        cpu=constant(2),
        latency=lambda m, i: 300 if 20 <= m < 24 else 40,
    ),
    "just scaled": _just_scaled,
    "just deployed": lambda: Scenario(deployed=50),
    "one slow minute": lambda: Scenario(
        latency=lambda m, i: 400 if m == 30 else 40, overhead=lambda m: 200 if m == 12 else 6
    ),
    "a few errors": lambda: Scenario(
        errors={
            "Invocation5XXErrors": lambda m: 0.002 if m % 9 == 0 else 0,
            "Invocation4XXErrors": constant(0.001),
        }
    ),
    "metrics of instances and zones": lambda: Scenario(
        enhanced=True,
        zones=("us-east-1a", "us-east-1b"),
        routing="RANDOM",
        latency=lambda m, i: 38 + 2 * i,
    ),
    "a GPU at work": lambda: Scenario(instance_type="ml.g5.12xlarge", gpu=constant(72)),
    "multi-model, warm": lambda: Scenario(
        multi_model={
            "ModelCacheHit": constant(0.995),
            "LoadedModelCount": constant(20),
            "ModelLoadingWaitTime": constant(500),
        }
    ),
    "a scale-in at night": lambda: Scenario(
        tps=lambda m: 900 - 10 * m,
        instances=lambda m: 8 if m < 40 else 6,
        activities=[Scaled(39, 6, cause="AlarmLow")],
    ),
    "no traffic at all": lambda: Scenario(tps=constant(0)),
    "being created for a few minutes": lambda: not_started(created=52),
    "being created, and its container logs": lambda: not_started(log_group=True),
    "a batch ten times the usual load": lambda: Scenario(
        tps=between(20, 35, 6000, 600), cpu=between(20, 35, 80, 20)
    ),
    "one worker, fast enough": lambda: _small(),
    "a burstable type at its baseline, fast enough": lambda: _small(
        instance_type="ml.t2.medium", cpu=constant(20)
    ),
    "one call in ten minutes, and a target of 70": lambda: _small(
        tps=lambda m: 1 / 60 if m % 10 == 0 else 0,
        cpu=constant(1),
        scaling=up_to(4, 70.0) | {"min": 1},
    ),
    "a low target of long requests": lambda: Scenario(
        instances=constant(4),
        tps=constant(0.1),
        latency=slow(0, 60, 20_000),
        cpu=constant(3),
        thresholds={("ModelLatency", "p99"): 60_000.0},
        scaling=up_to(8, 2.0),
        planned=None,
    ),
    "one request of 59 s": lambda: Scenario(
        longest_ms=between(30, 31, 59_000, 0),
        errors={"InvocationModelErrors": between(30, 31, 0.0001, 0)},
    ),
    "in flight rises with the rate": lambda: Scenario(
        tps=lambda m: 300 + 10 * m, in_flight=lambda m: 12 + m // 2, cpu=lambda m: 30 + m / 2
    ),
    "blue and green beside each other": lambda: Scenario(
        deployed=30, instances=between(30, 40, 16, 8)
    ),
    "a canary with few errors": lambda: Scenario(
        deployed=30, errors={"Invocation5XXErrors": between(30, 35, 0.004, 0)}
    ),
    "a scheduled scale-out ahead of the load": lambda: Scenario(
        tps=from_minute(30, 400, 1200),
        instances=from_minute(25, 4, 12),
        activities=[Scaled(20, 12, cause="scheduled action morning was triggered")],
    ),
    "a fleet that follows its load out and in": lambda: Scenario(
        minutes=120,
        tps=lambda m: 1300 if m % 40 < 20 else 600,
        instances=lambda m: 12 if m % 40 < 24 else 8,
        activities=[Scaled(20 * n + 3, 8 if n % 2 else 12, took=1) for n in range(6)],
    ),
    "two and three instances by day and by night": lambda: Scenario(
        minutes=2880,
        tps=lambda m: 300 if m // 720 % 2 else 330,
        instances=lambda m: 2 if m // 720 % 2 else 3,
        activities=[Scaled(720 * n, 2 if n % 2 else 3) for n in range(4)],
    ),
    "above its target until scaling acts": lambda: Scenario(
        tps=from_minute(20, 600, 1500),
        instances=from_minute(30, 8, 14),
        activities=[Scaled(24, 14)],
    ),
    "a policy's own metric, of this variant": lambda: Scenario(
        scaling=up_to(16) | {"custom": custom_metric("Sum", VariantName="primary")}
    ),
    "a limit of 30 s, stated as such": lambda: Scenario(
        thresholds={("ModelLatency", "p99"): 30_000.0}, planned=None
    ),
    "alarms on a metric of one's own": lambda: Scenario(
        alarm={"Namespace": "Shop", "Unit": "Seconds", "Period": 10}, planned=None
    ),
    "an instance that leaves every twelve minutes, and nobody notices": lambda: Scenario(
        minutes=120, instances=lambda m: 7 if m % 12 < 3 else 8
    ),
    "six batches of an update, each somewhat slower for two minutes": lambda: Scenario(
        enhanced=True,
        instances=constant(6),
        arrives={i: 6 + 9 * i for i in range(6)},
        latency=lambda m, i: 60 if 0 <= m - 6 - 9 * i < 2 else 40,
    ),
    "an instance of six somewhat slower every six minutes": lambda: Scenario(
        enhanced=True,
        instances=constant(6),
        latency=lambda m, i: 60 if m % 6 == 0 and i == 2 else 40,
    ),
    "at the scalable target's minimum": lambda: Scenario(scaling=up_to(16) | {"min": 8}),
    "at its maximum, below its target": lambda: Scenario(
        scaling=up_to(8), tps=constant(900), cpu=constant(60)
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_endpoint_has_no_finding(name: str, run: Run) -> None:
    made = run(HEALTHY[name]())
    assert [(f.id, [e.text for e in f.evidence]) for f in made.findings] == []
    silent = name in ("no traffic at all", *(each for each in HEALTHY if "created" in each))
    assert made.healthy is (None if silent else True)
    assert made.measurements.unknown == ()


def test_what_scaling_tracks_has_no_data(run: Run) -> None:
    """Asynchronous endpoints publish neither invocations nor their overhead."""
    scenario = Scenario(tps=constant(0.2), latency=slow(0, 60, 9000), thresholds={}, planned=None)
    account = scenario.account()
    published = ("ModelLatency", "CPUUtilization", "MemoryUtilization", "DiskUtilization")
    account.data = {key: data for key, data in account.data.items() if key[1] in published}
    account.configuration["AsyncInferenceConfig"] = {}
    (finding,) = run(account).findings
    assert finding.id == "LLD110"
    assert finding.risk
    assert (
        "has no data while requests arrive, because AWS publishes none" in finding.evidence[0].text
    )


def test_scalings_own_alarms_watch_no_latency(run: Run) -> None:
    scenario = Scenario(thresholds={}, planned=None)
    account = scenario.account()
    account.alarms.append(
        {
            "AlarmName": "TargetTracking-endpoint/sentiment/variant/primary-AlarmLow-1",
            "Namespace": "AWS/SageMaker",
            "MetricName": "InvocationsPerInstance",
            "Statistic": "Sum",
            "Dimensions": [
                {"Name": "EndpointName", "Value": "sentiment"},
                {"Name": "VariantName", "Value": "primary"},
            ],
            "Threshold": 7020.0,
            "ComparisonOperator": "LessThanThreshold",
            "StateValue": "ALARM",
        }
    )
    made = run(account)
    assert made.healthy is None, "no latency was judged"
    assert list(alarms_text(made.measurements)) == ["no alarm watches this endpoint"]


def _any_healthy(seed: int) -> Scenario:
    """A fleet of any size and traffic whose latency and utilization are within their limits."""
    chosen = random.Random(seed)
    count = chosen.randint(2, 10)
    peak = chosen.choice([0.05, 0.5, 5, 50, 80 * count, 100 * count])
    swing, phase = chosen.uniform(0, 0.4), chosen.uniform(0, 6)
    median = chosen.uniform(20, 60)
    return Scenario(
        minutes=chosen.choice([30, 60, 120]),
        tps=lambda m: peak * (1 + swing * math.sin(m / 25 + phase)),
        instances=constant(count),
        latency=lambda m, i: median * (1 + 0.02 * i),
        spread=chosen.uniform(0.1, 0.38),
        cpu=constant(chosen.uniform(5, 72)),
        memory=constant(chosen.uniform(20, 85)),
        overhead=constant(chosen.uniform(3, 25)),
        routing=chosen.choice(["RANDOM", None, "LEAST_OUTSTANDING_REQUESTS"]),
        enhanced=chosen.random() < 0.4,
        zones=("us-east-1a", "us-east-1b") if chosen.random() < 0.4 else (),
        errors={"Invocation5XXErrors": constant(chosen.uniform(0, 0.004))},
        deployed=chosen.choice([None, None, 10]),
        activities=[Scaled(chosen.randint(1, 20), count)] if chosen.random() < 0.5 else [],
    )


@pytest.mark.parametrize("seed", range(20))
def test_no_false_finding_on_any_healthy_endpoint(seed: int, run: Run) -> None:
    made = run(_any_healthy(seed))
    assert [(f.id, [e.text for e in f.evidence]) for f in made.findings] == []


@pytest.mark.parametrize("fault", sampled(ALL_FAULTS, 4), ids=lambda fault: fault.name)
def test_the_same_within_other_windows(fault: Fault) -> None:
    """Windows that hold the fault whole find it too, whatever else they hold."""
    for minutes in {max(45, fault.over), max(150, fault.over)}:
        found = {finding.id for finding in fault.diagnosed_over(minutes).findings}
        assert found == {fault.finding} | fault.companions, minutes
