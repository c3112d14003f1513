"""What ``diagnose`` says of the endpoint in AWS's load-testing post; see ``test_load_testing.py``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hosting_site import Site, taking

from low_latency_endpoint.operate.diagnose import Diagnosis
from tests.operate.diagnose.scenarios import Scenario, constant
from tests.settings_files import mistakes
from tests.synth.conftest import Synthesised
from tools.fuzzing.agreement import text_of

from .conftest import drive, page, stated, told

says = pytest.mark.says
Find = Callable[..., Diagnosis]
Template = Callable[..., Synthesised]

# --- where the time goes ------------------------------------------------------------------------


@says(23, "latency breakdown of your endpoint calls")
@says(32, "necessarily the sum of ModelLatency plus OverheadLatency")
@says(33, "internet + ModelLatency + OverheadLatency")
@says(36, "any intermediary layers between your client and the SageMaker runtime")
def test_what_lies_between_caller_and_endpoint(find: Find) -> None:
    """Callers wait 240 ms, of which SageMaker's two metrics have a part: the rest is on the way."""
    (finding,) = find(Scenario(), client_latency={"p99": 240.0}).findings
    assert finding.id == "LLD801"
    for words in ("ModelLatency", "OverheadLatency", "240 ms"):
        assert words in told(finding)
    assert "API Gateway" in told(finding)


@says(32, "necessarily the sum of ModelLatency plus OverheadLatency")
def test_callers_who_wait_for_the_model_alone_are_no_finding(find: Find) -> None:
    assert find(Scenario(), client_latency={"p99": 90.0}).findings == ()


@says(35, "Where is the client that is invoking your endpoint?")
def test_the_callers_zones_are_asked_first() -> None:
    values = stated()
    del values["client_zones"]
    assert "client_zones" in str(mistakes(text_of(values))[0][1])


@says(24, "any custom inference code or scripts")
@says(27, "profile your script")
@says(29, "or as environment variables")
def test_a_slow_model_leads_into_the_container(find: Find) -> None:
    (finding,) = find(Scenario(latency=lambda m, i: 400, cpu=constant(60))).findings
    assert "rofile the inference script" in told(finding)
    assert "containers[].environment settings of the server and the framework" in told(finding)


@says(28, "REST vs. gRPC connections")
def test_the_protocol_to_the_model_server() -> None:
    assert "gRPC" in page("how-to/own-container.md")


@says(30, "OverheadLatency is measured from the time that SageMaker receives the request")
@says(31, "This part is largely outside of your control")
def test_overhead_has_no_setting_that_does_nothing(find: Find) -> None:
    (finding,) = find(Scenario(overhead=constant(80))).findings
    assert finding.id == "LLD203"
    assert not {"instance_type", "instances.min", "containers[].image"} & {
        change.key for change in finding.changes
    }


# --- a full instance, and one that is not ---

ONE = {"instances": constant(1), "scaling": None, "planned": None}
FAILURES = ("Invocation5XXErrors", "InvocationModelErrors")


def since(minute: int, before: float, after: float) -> Callable[[int], float]:
    """One value before the minute, another from it on."""
    return lambda now: before if now < minute else after


def overload(**more: Any) -> Scenario:
    """From minute 25 on 330 a second come to an instance for 200, with a deployment shortly before."""
    stated: dict[str, Any] = {
        "tps": since(25, 150, 330),
        "cpu": since(25, 60, 99.9),
        "latency": lambda m, i: 40 if m < 25 else 300,
        "in_flight": since(25, 6, 99),
        "errors": {name: since(25, 0, 0.4) for name in FAILURES},
        "deployed": 20,
    }
    return Scenario(**{**ONE, **stated, **more})


LARGER = "a larger type, such as ml.m5.24xlarge, in a smaller fleet"
HARDWARE = ("LLD101", "LLD102", "LLD105", "LLD401")


@pytest.mark.parametrize(
    ("scenario", "larger"),
    [
        pytest.param(overload(), LARGER, id="slow and refused"),
        pytest.param(overload(latency=lambda m, i: 40), LARGER, id="refused at once"),
        pytest.param(
            overload(  # three full minutes have all but six of 129,066 errors
                tps=constant(150),
                cpu=lambda m: 99.9 if 25 <= m < 28 else 20,
                latency=lambda m, i: 40,
                errors={
                    name: lambda m: 0.95 if 25 <= m < 28 else 1 / 9000 if 30 <= m < 36 else 0
                    for name in FAILURES
                },
            ),
            LARGER,
            id="in three minutes, and six single ones later",
        ),
        pytest.param(
            overload(instance_type="ml.m5.24xlarge"),
            "ml.m5.24xlarge is the largest of its family",
            id="on the larger type",
        ),
    ],
)
@says(22, "what type of errors (5xx, 4xx, and so on)")
@says(56, "saturating the entire instance, which also helps explain our 5xx errors")
@says(63, "increase the current instance fleet or try out a larger instance")
def test_errors_at_full_hardware(scenario: Scenario, larger: str, find: Find) -> None:
    """One finding: more instances, with a number, or a larger type; no word of a container's start."""
    (finding,) = find(scenario).findings
    assert finding.id in HARDWARE
    assert re.search(r"CPU at (9[5-9]|10\d) %", told(finding))
    assert "5XX errors" in told(finding)
    assert "/ping" not in told(finding)
    (instances,) = [change.value for change in finding.changes if change.key == "instances"]
    assert re.search(r"min: [2-9]", instances)
    (other,) = [change for change in finding.changes if change.key == "instance_type"]
    assert larger in other.why


@says(55, "Our ml.m5.12x.large instance has 48 vCPUs")
def test_4800_percent_is_a_full_instance(find: Find) -> None:
    scenario = overload()
    values = [
        value
        for (_, metric, _), series in scenario.account().data.items()
        if metric == "CPUUtilization"
        for value, _ in series[scenario.at(30)]
    ]
    assert max(values) == pytest.approx(4800, rel=0.05)
    assert "CPU at 100 % of the whole instance" in told(find(scenario).findings[0])


@says(22, "what type of errors (5xx, 4xx, and so on)")
@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        pytest.param(
            overload(cpu=constant(20), latency=lambda m, i: 40),
            "LLD402",
            marks=[
                says(61, "something at the container or model level"),
                says(62, "proper environment variable for number of workers not set"),
                says(15, "all logging and print statements"),
            ],
            id="5xx beside idle hardware",
        ),
        pytest.param(
            Scenario(**ONE, errors={"Invocation4XXErrors": since(25, 0, 0.1)}), "LLD403", id="4xx"
        ),
    ],
)
def test_errors_that_are_not_the_hardwares(scenario: Scenario, expected: str, find: Find) -> None:
    (finding,) = find(scenario).findings
    assert finding.id == expected
    if expected == "LLD402":
        assert "the number of workers" in told(finding)
        assert "aws logs tail /aws/sagemaker/Endpoints/sentiment" in told(finding)


@says(57, "We also see an increase in ModelLatency")
@says(64, "the ModelLatency metric is still high")
def test_latency_without_errors_at_full_hardware(find: Find) -> None:
    """Five instances with 1,000 a second, all of them full."""
    five = overload(instances=constant(5), tps=since(25, 700, 1000), errors={}, deployed=None)
    (finding,) = find(five).findings
    assert finding.id == "LLD105"
    (number,) = [change.value for change in finding.changes if change.key == "instances"]
    assert "min: 8" in number  # 5 x 99.9 / 65, rounded up


@says(19, "under-utilized instance (less than 30%), you could potentially scale down")
@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        ({"cpu": constant(8)}, ["LLD148"]),
        ({"instance_type": "ml.g5.12xlarge", "cpu": constant(8), "gpu": constant(10)}, ["LLD148"]),
        ({"cpu": constant(40)}, []),
    ],
    ids=["CPU at 8 %", "GPU at 10 %", "CPU at 40 %"],
)
def test_little_use_at_the_planned_peak(
    hardware: dict[str, Any], expected: list[str], find: Find
) -> None:
    """Eight instances where two would do: the number, what it saves, and a smaller type."""
    peak = {"peak TPS": 5.0, "TPS per instance": 200.0, "safety factor": 0.65}
    load = {"instances": constant(8), "tps": constant(5), "planned": peak}
    risks = find(Scenario(**{**ONE, **load, **hardware})).findings
    assert [risk.id for risk in risks] == expected
    for risk in risks:
        assert risk.risk
        assert "which saves 6 instances" in told(risk)
        assert "or a smaller type" in told(risk)


@says(20, "pick an instance with greater compute/memory")
@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ({"cpu": constant(86)}, ["LLD147"]),
        ({"cpu": constant(95)}, ["LLD147"]),
        ({"cpu": constant(82), "thresholds": {}}, ["LLD147"]),
        ({"cpu": constant(95), "thresholds": {}}, ["LLD105"]),  # nobody knows whether in time
        ({"instance_type": "ml.g5.12xlarge", "gpu": constant(90)}, ["LLD147"]),
        ({"cpu": constant(65)}, []),
    ],
    ids=["86 %", "95 %", "82 %, no target", "95 %, no target", "GPU at 90 %", "65 %"],
)
def test_much_use_though_latency_holds(
    used: dict[str, Any], expected: list[str], find: Find
) -> None:
    risks = find(Scenario(**{**ONE, "instances": constant(5), **used})).findings
    assert [risk.id for risk in risks] == expected
    for risk in risks:
        assert {"instances", "instance_type"} <= {change.key for change in risk.changes}


# --- the same, driven through the local AWS -----------------------------------------------------


@pytest.mark.parametrize(
    ("cpu_busy", "expected"),
    [
        pytest.param(4800, HARDWARE, marks=says(56, "saturating the entire instance")),
        pytest.param(300, ("LLD402",), marks=says(61, "something at the container or model level")),
    ],
    ids=["full", "idle"],
)
@says(54, "we start noticing 5xx errors")
def test_the_overload_right_after_a_deployment(
    cpu_busy: float, expected: tuple[str, ...], site: Site, diagnosed: Callable[..., dict[str, Any]]
) -> None:
    """One instance of 96 workers, and 144 callers: a third of them is refused at any time.

    So many, as a minute of the account takes a second: it counts a sixtieth of what is under way.
    """
    server = taking(1.5, concurrency=96, queue_limit=0, cpu_busy=cpu_busy)
    site.aws.set_model_servers({"*": server})
    endpoint = site.endpoint({"InstanceType": "ml.m5.12xlarge"}, wait=False)
    site.settle(endpoint)
    drive(site, endpoint, callers=8, minutes=3, minute=0.5)
    drive(site, endpoint, callers=144, minutes=6, minute=1)
    first, *_ = diagnosed(site, endpoint, "--target", "p99=9s")["findings"]
    assert first["id"] in expected
    assert "5XX errors" in str(first["evidence"])


@says(64, "the ModelLatency metric is still high")
def test_slow_and_full_without_errors(site: Site, diagnosed: Callable[..., dict[str, Any]]) -> None:
    """Four workers, and twelve callers who wait for them: the processors, not the model."""
    site.aws.set_model_servers({"*": taking(0.02, concurrency=4, cpu_busy=4800)})
    endpoint = site.endpoint({"InstanceType": "ml.m5.12xlarge"}, wait=False)
    site.settle(endpoint)
    site.aws.advance(3600)
    drive(site, endpoint, callers=16, minutes=8)
    first, *_ = diagnosed(site, endpoint, "--target", "p90=40ms")["findings"]
    assert first["id"] in HARDWARE
