"""AWS's Knowledge Center: "When I invoke my Amazon SageMaker endpoint, I experience high latency".

https://repost.aws/knowledge-center/sagemaker-endpoint-latency
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hosting_site import Site, taking

from low_latency_endpoint.operate.diagnose import Diagnosis
from tests.operate.diagnose.scenarios import Scenario, constant
from tests.synth.conftest import Synthesised

from .conftest import drive, page, told
from .statements import ROOT

says = pytest.mark.says
Find = Callable[..., Diagnosis]

MODEL_SLOW = {"latency": lambda m, i: 400, "cpu": constant(60), "in_flight": constant(20)}


def ids(diagnosis: Diagnosis) -> list[str]:
    return [finding.id for finding in diagnosis.findings]


@says(1, "monitor the latency metrics ModelLatency and OverheadLatency")
def test_both_latencies_are_watched_and_drawn(template: Callable[..., Synthesised]) -> None:
    alarms = template().of_type("AWS::CloudWatch::Alarm").values()
    assert {"ModelLatency", "OverheadLatency"} <= {alarm.get("MetricName") for alarm in alarms}
    drawn = str(template().of_type("AWS::CloudWatch::Dashboard"))
    assert "ModelLatency" in drawn
    assert "OverheadLatency" in drawn


@says(2, "ModelLatency is the amount of time that a model takes to respond")
@says(3, "includes the local communication time for the model")
@says(4, "OverheadLatency is the amount of time that SageMaker takes")
def test_what_the_two_latencies_are(site: Site) -> None:
    """One request of 100 ms: the model's time, what SageMaker adds, and no more than the caller saw."""
    site.aws.set_model_servers({"*": taking(0.1)})
    endpoint = site.endpoint({}, wait=False)
    site.settle(endpoint)
    began = time.perf_counter()
    site.invoke(endpoint)
    seen = time.perf_counter() - began
    model = site.statistics(endpoint, "ModelLatency", "Average")["Average"] / 1e6
    overhead = site.statistics(endpoint, "OverheadLatency", "Average")["Average"] / 1e6
    assert model >= 0.1
    assert overhead > 0
    assert model + overhead <= seen
    definitions = dict(re.findall(r"\| `(\w+)` \| ([^|]+) \|", page("reference/monitoring.md")))
    for part in ("sending the request to the container", "inference code", "fetching the response"):
        assert part in definitions["ModelLatency"]
    assert "receives the request until it returns the response" in definitions["OverheadLatency"]
    assert "less ModelLatency" in definitions["OverheadLatency"]


MULTI_MODEL = {
    "ModelCacheHit": constant(0.6),
    "LoadedModelCount": constant(12),
    "ModelLoadingWaitTime": constant(900),
    "ModelDownloadingTime": constant(300),
    "ModelLoadingTime": constant(600),
    "ModelUnloadingTime": constant(40),
}


@says(5, "ModelLoadingWaitTime")
@says(6, "ModelDownloadingTime")
@says(7, "ModelLoadingTime")
@says(8, "ModelCacheHit")
@says(9, "LoadedModelCount")
def test_requests_that_wait_for_models(find: Find) -> None:
    (finding,) = find(Scenario(overhead=constant(60), multi_model=MULTI_MODEL)).findings
    assert finding.id == "LLD301"
    for number in ("40 %", "12 models", "900 ms", "300 ms", "600 ms"):
        assert number in told(finding)


@says(6, "ModelDownloadingTime: The amount of time to download the model")
def test_models_that_are_far_away(find: Find) -> None:
    far = {**MULTI_MODEL, "ModelDownloadingTime": constant(3500), "ModelUnloadingTime": constant(0)}
    (finding,) = find(Scenario(overhead=constant(60), multi_model=far)).findings
    assert finding.id == "LLD302"
    assert "3,500 ms" in told(finding)


@says(8, "ModelCacheHit")
def test_models_that_are_loaded_are_no_finding(find: Find) -> None:
    warm = {**MULTI_MODEL, "ModelCacheHit": constant(0.999)}
    assert ids(find(Scenario(multi_model=warm))) == []


@says(10, "Benchmark the model outside of a SageMaker endpoint")
def test_how_to_benchmark_the_model_outside(find: Find) -> None:
    (finding,) = find(Scenario(**MODEL_SLOW)).findings
    assert "outside" in told(finding)
    assert "own-container.md" in told(finding)
    how = page("how-to/own-container.md").partition("## Benchmark the model outside")[2]
    assert "low-latency local-aws --model-server" in how
    assert "low-latency load-test outside" in how


@pytest.mark.parametrize(
    ("instance_type", "used", "named", "not_named"),
    [
        pytest.param(
            "ml.m5.12xlarge",
            {"cpu": constant(60)},
            ("ml.g5.xlarge", "ml.inf2.xlarge"),
            (),
            marks=[
                says(13, "compile the model for Inferentia"),
                says(15, "the model supports GPU acceleration, then use a GPU instance"),
            ],
        ),
        pytest.param(
            "ml.g5.xlarge",
            {"cpu": constant(20), "gpu": constant(60)},
            ("Inferentia (ml.inf2)",),
            ("ml.g5",),
            marks=[
                says(13, "compile the model for Inferentia"),
                says(15, "then use a GPU instance"),
            ],
        ),
        pytest.param(
            "ml.inf2.xlarge",
            {"cpu": constant(60)},
            (),
            ("ml.g5", "ml.g6", "ml.inf2", "a GPU"),
            marks=[says(13, "compile the model for Inferentia")],
        ),
    ],
)
def test_a_slow_model_on_each_hardware(
    instance_type: str,
    used: dict[str, Any],
    named: tuple[str, ...],
    not_named: tuple[str, ...],
    find: Find,
) -> None:
    """It is the model, as no instance is full; other hardware is named where it is another."""
    slow = Scenario(**{**MODEL_SLOW, **used, "instance_type": instance_type})
    (finding,) = find(slow).findings
    assert finding.id == "LLD112"
    changes = [change for change in finding.changes if change.key == "instance_type"]
    text = " ".join(f"{change.text} {change.why}" for change in changes)
    assert [words for words in named if words not in text] == []
    assert [words for words in not_named if words in text] == []


@says(14, "up to three times higher throughput and up to 45% lower cost per inference")
def test_no_figure_of_another_chip_is_promised(find: Find) -> None:
    """Each type is measured with its price; the finding repeats neither 3 times nor 45 %."""
    (finding,) = find(Scenario(**MODEL_SLOW)).findings
    assert "45 %" not in told(finding)
    assert "three times" not in told(finding)
    assert "low-latency recommend" in told(finding)


@says(16, "The inference code might affect the model latency")
@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (Scenario(**MODEL_SLOW), "LLD112"),
        (Scenario(spread=1.0), "LLD113"),  # some requests alone
    ],
)
def test_the_inference_script_is_named(scenario: Scenario, expected: str, find: Find) -> None:
    (finding,) = find(scenario).findings
    assert finding.id == expected
    assert "rofile the inference script" in told(finding)


OVERUSED = {
    "tps": lambda m: 600 if m < 25 else 1900,
    "cpu": lambda m: 45 if m < 25 else 97,
    "latency": lambda m, i: 40 if m < 25 else 300,
    "in_flight": lambda m: 24 if m < 25 else 570,
}


@pytest.mark.parametrize(
    ("scaling", "expected", "advised"),
    [
        pytest.param(
            None,
            "LLD105",
            "scaling: {enabled: true}",
            marks=[
                says(17, "An overused endpoint might cause higher model latency"),
                says(18, "add auto scaling to an endpoint"),
            ],
        ),
        pytest.param(
            {"min": 2, "max": 8, "target": 7800.0},
            "LLD102",
            "instances.max: 15",  # 1,900 a second at 7,800 a minute each
            marks=[says(17, "An overused endpoint might cause higher model latency")],
        ),
    ],
)
def test_an_overused_endpoint(
    scaling: dict[str, Any] | None, expected: str, advised: str, find: Find
) -> None:
    """The same slowness as a slow model's, but the processors are full: the load, not the model."""
    (finding,) = find(Scenario(**OVERUSED, scaling=scaling)).findings
    assert finding.id == expected
    assert advised in [change.text for change in finding.changes]


@says(18, "add auto scaling to an endpoint")
def test_scaling_is_on_by_default(template: Callable[..., Synthesised]) -> None:
    target = template().only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert target["MinCapacity"] < target["MaxCapacity"]
    assert template().of_type("AWS::ApplicationAutoScaling::ScalingPolicy")


@pytest.mark.parametrize(
    ("scenario", "expected", "named"),
    [
        pytest.param(
            Scenario(overhead=constant(80)),
            "LLD203",
            ("request and response sizes", "authentication and authorization"),
            marks=[
                says(19, "payload size for request and responses"),
                says(21, "authentication or authorization of the request"),
            ],
            id="steady",
        ),
        pytest.param(
            Scenario(overhead=constant(80), tps=constant(2.4 / 60), instances=constant(2)),
            "LLD202",
            ("warm_up.keep_warm",),
            marks=[
                says(20, "request frequency"),
                says(24, "infrequent requests might also lead to an increase in OverheadLatency"),
            ],
            id="infrequent",
        ),
    ],
)
def test_a_high_overhead(
    scenario: Scenario, expected: str, named: tuple[str, ...], find: Find
) -> None:
    (finding,) = find(scenario).findings
    assert finding.id == expected
    for words in named:
        assert words in told(finding).replace("Authentication", "authentication")
    assert "No setting" not in told(finding)


@says(19, "payload size for request and responses")
def test_the_plan_takes_the_size_of_payloads(command: Callable[..., str]) -> None:
    assert "6,291,456 bytes" in command("plan", "-v", "--settings", str(ROOT / "endpoint.yaml"))


@says(22, "an increase in latency because of a cold start")
@says(23, "send test requests to the endpoint to pre-warm it")
def test_a_cold_start(site: Site, diagnosed: Callable[..., dict[str, Any]]) -> None:
    """A new version, the first requests of which are slow: the answer is named, and no fault of it."""
    warm = taking(0.002, concurrency=8, cpu_busy=20)
    site.aws.set_model_servers({"*": warm})
    endpoint = site.endpoint({"InitialInstanceCount": 2}, wait=False)
    site.settle(endpoint)
    site.aws.advance(3600)
    drive(site, endpoint, callers=2, minutes=10)
    site.aws.set_model_servers({"*": replace(warm, cold_requests=30, cold_factor=100)})
    site.update(endpoint, site.config({"InitialInstanceCount": 2}))
    site.settle(endpoint)
    drive(site, endpoint, callers=2, minutes=12)
    (finding,) = diagnosed(site, endpoint, "--target", "p90=100ms")["findings"]
    assert finding["id"] == "LLD121"
    assert "warm_up" in [change["key"] for change in finding["changes"] if "key" in change]


@says(22, "because of a cold start")
@says(23, "send test requests to the endpoint to pre-warm it")
def test_a_cold_path_to_new_instances(find: Find) -> None:
    cold = Scenario(deployed=40, overhead=lambda m: 90 if 44 <= m < 50 else 6)
    (finding,) = find(cold).findings
    assert finding.id == "LLD201"
    assert "warm_up" in told(finding)


@says(23, "send test requests to the endpoint to pre-warm it")
def test_test_requests_are_sent_after_each_deployment(template: Callable[..., Synthesised]) -> None:
    (kind,) = (name for name in template().types if "WarmUp" in name)
    sent = template().only(kind)
    configuration = template().only_id("AWS::SageMaker::EndpointConfig")
    assert configuration in template().needs(template().only_id(kind))
    assert sent["ServiceToken"]


@says(24, "infrequent requests")
def test_requests_that_keep_an_idle_endpoint_warm(template: Callable[..., Synthesised]) -> None:
    payload = {"data": {"inputs": "I am super happy right now."}}
    warm = template({"warm_up": {"payload": payload, "keep_warm": {"every": "1m"}}})
    rules = warm.of_type("AWS::Events::Rule").values()
    assert [rule["ScheduleExpression"] for rule in rules if "ScheduleExpression" in rule] == [
        "rate(1 minute)"
    ]
    usual = template().of_type("AWS::Events::Rule").values()
    assert [rule for rule in usual if "ScheduleExpression" in rule] == []
