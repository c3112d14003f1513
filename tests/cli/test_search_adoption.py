"""A point of a simulated search in the settings file: the plan that follows is a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from low_latency_endpoint.cli.search_adoption import adopt_found
from low_latency_endpoint.plan.traffic_shapes import shape
from low_latency_endpoint.settings import explain_endpoint, load_settings, plan_endpoint
from low_latency_endpoint.settings.yaml_editing import write_edit
from low_latency_endpoint.simulate.estimates import Estimate
from low_latency_endpoint.simulate.search_goals import Candidate, Found, Goal, Reserve, SearchResult
from tests.refusals import refused

SHIPPED = (Path(__file__).parents[1] / "sentiment.yaml").read_text("utf-8")
FIXED = Found(
    Candidate("RANDOM", 5, 5), Estimate(0.12, 0.001), 5.0, 0, 8, "yes", Reserve.of(5, 1000, 200, 2)
)
POLICY = Found(
    Candidate("RANDOM", 3, 12, 0.8, 300.0),
    Estimate(0.12, 0.001),
    6.5,
    0,
    4,
    "yes",
    Reserve.of(7, 1000, 200, 2),
    "spike",
)


def result(tps: float = 1000.0, tps_per_instance: float = 200.0) -> SearchResult:
    return SearchResult(
        Goal(99.0, 0.2, tps),
        (FIXED,),
        (POLICY,),
        (shape("spike"),),
        7,
        8,
        4,
        tps_per_instance,
        ("it is assumed",),
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "endpoint.yaml"
    made.write_text(SHIPPED, "utf-8")
    return made


def test_what_follows_from_a_fixed_fleet_is_planned_anew(file: Path) -> None:
    before = explain_endpoint(load_settings(file), "sentiment")
    after = adopt_found(file, "sentiment", FIXED, result()).after
    assert [after[f"{name}_instances"].value for name in ("min", "initial", "max")] == [5, 5, 16]
    # The peak of 1,000 with 200 x 0.65 each is 8 all the same, and 16 the rule's maximum.
    assert after["scaling_metric"].value == before["scaling_metric"].value  # it goes on scaling
    assert file.read_text("utf-8") == SHIPPED
    decision = after["initial_instances"]
    assert decision.rule == "found by simulation for p99 < 200 ms at 1,000 TPS, cheapest"
    assert decision.inputs["seed"] == 7
    assert decision.inputs["simulated p99"] == "120 ± 1 ms"
    assert "confirm it with a load test. Assumed: it is assumed" in decision.note
    assert "simulation" not in after["warm_up_requests"].rule
    for name in ("max_instances", "scale_out_cooldown"):  # which a fixed fleet leaves as they are
        assert after[name].rule == before[name].rule, name


@pytest.mark.parametrize("found", [FIXED, POLICY])
@pytest.mark.parametrize(("tps", "one"), [(1000.0, 200.0), (1500.0, 187.0)])
def test_the_written_file_plans_the_same_numbers(
    file: Path, found: Found, tps: float, one: float
) -> None:
    adopted = adopt_found(file, "sentiment", found, result(tps, one))
    write_edit(adopted.edit)
    plan = plan_endpoint(load_settings(file), "sentiment")
    why = explain_endpoint(load_settings(file), "sentiment")
    assert [(each.name, each.value) for each in why] == [
        (each.name, each.value) for each in adopted.after
    ]
    assert plan.routing == "RANDOM"
    if found is POLICY:
        assert plan.fleet.maximum == 12
    else:
        assert plan.fleet.minimum == plan.fleet.initial == 5
        assert plan.scaling, "a fixed fleet is the least: the settings go on scaling"
    throughput = load_settings(file).endpoints["sentiment"].throughput
    assert throughput
    assert (throughput.peak_tps, throughput.tps_per_instance) == (tps, one)
    if found is POLICY:
        assert plan.scaling
        assert plan.scaling.target == pytest.approx(one * 0.8 * 60)
        assert plan.scaling.scale_out_seconds == 300
        assert plan.fleet.initial == -(-tps // (one * 0.8))
    assert adopt_found(file, "sentiment", found, result(tps, one)).edit.changed is False


def test_comments_stay(file: Path) -> None:
    write_edit(adopt_found(file, "sentiment", POLICY, result()).edit)
    after = file.read_text("utf-8")
    for line in SHIPPED.splitlines():
        if "safety_factor" not in line:
            assert line in after


def test_scaling_that_was_off_is_on_with_a_policy(file: Path) -> None:
    file.write_text(SHIPPED + "    scaling: {enabled: false}\n", "utf-8")
    assert adopt_found(file, "sentiment", POLICY, result()).after["scaling_target"].value == 9600
    assert adopt_found(file, "sentiment", FIXED, result()).after["max_instances"].value == 5


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            lambda text: text + "    scaling: {metric: concurrency, concurrency_target: 3}\n",
            "LLE929",
        ),
        (
            lambda text: text[: text.index("    throughput:")] + text[text.index("    warm_up:") :],
            "LLE928",
        ),
    ],
)
def test_a_policy_needs_the_metric_it_was_found_on_and_a_throughput(
    file: Path, change: object, code: str
) -> None:
    file.write_text(change(SHIPPED), "utf-8")  # type: ignore[operator]
    adopt_found(file, "sentiment", FIXED, result())
    with refused(code):
        adopt_found(file, "sentiment", POLICY, result())


def test_routing_that_is_a_mapping_is_left_alone(file: Path) -> None:
    file.write_text(
        SHIPPED + "    routing: {prefix_aware: {prefix_length: 1024, concurrency_threshold: 16}}\n",
        "utf-8",
    )
    with refused("LLE937"):
        adopt_found(file, "sentiment", FIXED, result())
