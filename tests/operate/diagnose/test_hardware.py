"""Use of the hardware, as AWS's post on load testing judges it: CPU and GPU, at 80 % and below 30 %."""

from __future__ import annotations

import re
from typing import Any

import pytest

from low_latency_endpoint.cli.output import print_document
from low_latency_endpoint.facts.instance_types import instance_types
from low_latency_endpoint.facts.prices import Price, your_price
from low_latency_endpoint.operate.diagnose.document import document
from tests.depth import sampled

from .conftest import Run
from .faults.fault import between, up_to
from .scenarios import Scenario, constant

_GPU = {"instance_type": "ml.g5.12xlarge", "cpu": constant(20)}
_UNKNOWN_TARGET: dict[str, Any] = {"thresholds": {}, "planned": None}


@pytest.mark.parametrize("target", [{}, _UNKNOWN_TARGET], ids=["a target", "no target"])
@pytest.mark.parametrize(
    "used", [{"cpu": constant(82)}, _GPU | {"gpu": constant(82)}], ids=["CPU", "GPU"]
)
def test_from_80_percent_on_it_is_a_risk(
    used: dict[str, Any], target: dict[str, Any], run: Run
) -> None:
    """Whether or not a target is known."""
    (finding,) = run(Scenario(scaling=None, **(used | target))).findings
    assert finding.id == "LLD147"
    assert finding.risk
    assert "at 82 % of the whole instance" in finding.evidence[0].text
    (counts,) = [change for change in finding.changes if change.key == "instances"]
    assert "{min: 11," in counts.value  # 8 x 82 / 65, rounded up
    assert "at 60 to 70 % utilization" in counts.why


def test_a_fleet_at_its_maximum_may_not_grow(run: Run) -> None:
    scenario = Scenario(cpu=between(20, 32, 90, 45), scaling=up_to(8))
    (finding,) = run(scenario).findings
    assert finding.id == "LLD147"
    assert "instances.max" in {change.key for change in finding.changes}


def _day(**changed: Any) -> Scenario:
    """A day with office hours, in which four times the instances run that are needed."""
    given: dict[str, Any] = {
        "minutes": 1440,
        "tps": lambda m: 5 if 540 <= m < 1020 else 0,
        "cpu": lambda m: 15 if 540 <= m < 1020 else 1,
        "scaling": None,
        "planned": None,
    }
    return Scenario(**(given | changed))


def test_a_day_below_30_percent_says_what_would_do_and_what_it_saves(run: Run) -> None:
    (finding,) = run(_day(), prices={"ml.m5.12xlarge": your_price(2.5)}).findings
    assert finding.id == "LLD148"
    assert finding.risk
    used, saved = (shown.text for shown in finding.evidence)
    assert "CPU at most 15 %" in used
    assert "in 24 h, 8 h of them with requests" in used
    assert saved == (
        "2 would do (at the 60 to 70 % utilization that AWS advises), which saves 6 instances of "
        "ml.m5.12xlarge: 15.00 USD an hour (price: yours)"
    )


def test_without_a_price_of_this_region_it_says_instances(run: Run) -> None:
    elsewhere = Price(2.5, "list price", "eu-west-1")
    (finding,) = run(_day(), prices={"ml.m5.12xlarge": elsewhere}).findings
    assert finding.evidence[1].text.endswith("which saves 6 instances of ml.m5.12xlarge")


def test_a_gpu_counts_as_a_cpu_does(run: Run) -> None:
    gpu = {"instance_type": "ml.g5.12xlarge", "instances": constant(4)}
    (finding,) = run(_day(gpu=constant(10), **gpu)).findings
    assert "GPU at most 10 %" in finding.evidence[0].text
    assert "CPU at most 15 %" in finding.evidence[0].text
    assert run(_day(gpu=constant(31), **gpu)).findings == ()
    assert run(_day(gpu=None, **gpu)).findings == (), "whose use is not known"


@pytest.mark.parametrize("count", [1, 2])
def test_a_fleet_as_small_as_it_may_be_is_told_a_smaller_type(count: int, run: Run) -> None:
    """AWS's own case: one or two large instances. 15 % of 48 vCPUs are 45 % of 16."""
    prices = {"ml.m5.12xlarge": your_price(2.5), "ml.m5.4xlarge": your_price(1.0)}
    scenario = _day(instances=constant(count), memory=constant(20))
    (finding,) = run(scenario, prices=prices).findings
    assert finding.id == "LLD148"
    (change,) = finding.changes
    assert (change.key, change.value) == ("instance_type", "ml.m5.4xlarge")
    would_do, saves = finding.evidence[1].text.split(", which saves ")
    used = re.fullmatch(
        "ml.m5.4xlarge would do: its 16 vCPUs at (.+) % in the busiest time, and memory at (.+) %",
        would_do,
    )
    assert used is not None
    assert [int(percent) for percent in used.groups()] == pytest.approx([45, 60], abs=2)
    assert saves == f"{1.5 * count:.2f} USD an hour (price: yours)"


def test_without_both_prices_a_smaller_type_has_no_saving(run: Run) -> None:
    scenario = _day(instances=constant(2), memory=constant(20))
    (finding,) = run(scenario, prices={"ml.m5.12xlarge": your_price(2.5)}).findings
    assert "ml.m5.4xlarge would do" in finding.evidence[1].text
    assert "saves" not in finding.evidence[1].text


@pytest.mark.parametrize("name", sampled(sorted(instance_types()), 12))
def test_a_smaller_type_has_room_for_the_busiest_time(name: str, run: Run) -> None:
    """Over all types: CPU, memory and the number of GPUs of the type that is advised."""
    facts = instance_types()[name]
    gpu = {"gpu": constant(10)} if facts.accelerator == "nvidia" else {}
    scenario = _day(
        instance_type=name, instances=constant(2), cpu=constant(9), memory=constant(11), **gpu
    )
    for change in [change for finding in run(scenario).findings for change in finding.changes]:
        smaller = instance_types()[change.value]
        assert smaller.accelerator_count == facts.accelerator_count
        assert 9 * facts.vcpus / smaller.vcpus <= 65
        assert 11 * facts.memory_gib / smaller.memory_gib <= 65


@pytest.mark.parametrize(
    ("scaling", "key"),
    [
        (up_to(16, 40.0), "throughput.tps_per_instance"),
        (
            up_to(16, 24.0)
            | {"metric": "SageMakerVariantConcurrentRequestsPerModelHighResolution"},
            "scaling.concurrency_target",
        ),
        (up_to(8, 40.0) | {"min": 8}, "instances"),
    ],
    ids=["invocations", "concurrency", "a maximum that is the minimum"],
)
def test_a_fleet_that_scales_is_made_smaller_by_its_target(
    scaling: dict[str, Any], key: str, run: Run
) -> None:
    (finding,) = run(_day(scaling=scaling)).findings
    assert finding.id == "LLD148"
    assert finding.changes[0].key == key


@pytest.mark.parametrize(
    "changed",
    [
        {"scaling": up_to(16, 40.0) | {"min": 8}},
        {"minutes": 1200},
        {"tps": lambda m: 5 if m < 30 else 0},
        {"cpu": lambda m: 31 if m == 700 else 12},
        {"environment": {"SAGEMAKER_MODEL_SERVER_WORKERS": "1"}, "in_flight": constant(24)},
        {"multi_model": {"ModelCacheHit": constant(0.99)}},
        {"latency": lambda m, i: 300},
    ],
    ids=[
        "at the minimum of scaling",
        "less than a day",
        "half an hour of requests",
        "a minute above it",
        "workers that are full",
        "models that need the memory",
        "slow, which has its own advice",
    ],
)
def test_no_statement(changed: dict[str, Any], run: Run) -> None:
    assert "LLD148" not in {finding.id for finding in run(_day(**changed)).findings}


@pytest.mark.parametrize(
    ("changed", "is_told"),
    [
        ({}, True),
        ({"cpu": constant(35)}, False),
        ({"scaling": up_to(16, 40.0) | {"min": 8}}, False),
        ({"instances": constant(2), "instance_type": "ml.m5.large"}, False),
    ],
    ids=["little", "35 %", "the minimum of scaling", "one in each zone"],
)
def test_an_hour_of_little_use_names_the_window_that_tells(
    changed: dict[str, Any], is_told: bool, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """An hour is not the busiest one: what it uses is no finding, and is not kept silent."""
    diagnosis = run(
        Scenario(**({"cpu": constant(8), "tps": constant(5), "scaling": None} | changed))
    )
    assert diagnosis.findings == ()
    print_document(document(diagnosis))
    text = " ".join(capsys.readouterr().out.split())
    assert "the endpoint is healthy" in text
    assert ("CPU at most 8 %" in text) is is_told
    assert ("--since 1d" in text) is is_told


@pytest.mark.parametrize("memory", [30, 60])
def test_memory_that_keeps_a_fleet_from_a_smaller_type_is_told(
    memory: float, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """30 % of 192 GiB are 90 % of 64."""
    diagnosis = run(_day(instances=constant(1), memory=constant(memory)))
    assert diagnosis.findings == ()
    print_document(document(diagnosis))
    text = " ".join(capsys.readouterr().out.split())
    told = re.search(r"ml.m5.4xlarge, has no room: memory at (\d+) % there", text)
    assert told
    assert int(told[1]) == pytest.approx(3 * memory, abs=6)
