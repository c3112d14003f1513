"""What the settings state is what is simulated: scaling, deployment, instances, cooldowns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from low_latency_endpoint.plan.traffic_shapes import Shape
from low_latency_endpoint.settings import load_settings, plan_endpoint
from low_latency_endpoint.simulate import Replication, Rollout, TargetTracking, simulate
from low_latency_endpoint.simulate.assumptions import (
    BUSY_AT_MEASURED,
    SimulatedEndpoint,
    model_of_plan,
)
from low_latency_endpoint.simulate.scenario import busy_rate

SHIPPED = (Path(__file__).parents[1] / "sentiment.yaml").read_text(encoding="utf-8")
RISE = Shape("rise", "a tenth, then all", ((600.0, 0.1), (2400.0, 1.0)))
DEPLOY = Shape("deploy", "a new version", ((3600.0, 0.5),), deploy_at=600.0)


def stated(
    folder: Path,
    lines: str = "",
    *,
    tps: int = 100,
    instead: Mapping[str, str] | None = None,
    **given: float,
) -> SimulatedEndpoint:
    """The shipped endpoint with more lines, by default at a tenth of its load: 100 a second, of
    which one instance holds 20."""
    path = folder / "endpoint.yaml"
    text = (
        SHIPPED.replace("peak_tps: 1000", f"peak_tps: {tps}")
        .replace("tps_per_instance: 200", f"tps_per_instance: {tps // 5}")
        .replace("rise_tps_per_minute: 10 ", f"rise_tps_per_minute: {tps / 100} ")
    )
    for former, new in (instead or {}).items():
        text = text.replace(former, new)
    path.write_text(text.replace("    warm_up:", f"{lines}\n    warm_up:", 1), encoding="utf-8")
    settings = load_settings(path)
    endpoint = settings.endpoints["sentiment"]
    assert endpoint.throughput
    return model_of_plan(
        plan_endpoint(settings, "sentiment"),
        throughput=endpoint.throughput,
        **given,  # type: ignore[arg-type]
    )


def serving(model: SimulatedEndpoint, one: Shape = RISE) -> list[int]:
    return [line.serving for line in run(model, one).timeline]


def run(model: SimulatedEndpoint, one: Shape) -> Replication:
    return simulate(model.over_time(one), replications=2).replications[0]


def test_as_shipped_the_fleet_follows_the_load(tmp_path: Path) -> None:
    model = stated(tmp_path)
    assert model.over_time(RISE).scaling == TargetTracking(
        20 * 0.65 * 60, 2, model.maximum, scale_out_cooldown=60.0, scale_in_cooldown=300.0
    )
    counts = serving(model)
    assert (counts[0], counts[-1]) == (2, 8)


def test_set_times_and_steps_are_said_to_be_left_out(tmp_path: Path) -> None:
    lines = (
        "    scaling: {schedule: [{name: a, rate: 1 day, min: 3}], "
        "steps: {adds: [{requests: 8, add: 2}]}}"
    )
    said = stated(tmp_path, lines).assumed_over_time(RISE)
    assert any("set times are left out" in each for each in said)
    assert any("steps are left out" in each for each in said)
    assert not any("left out" in each for each in stated(tmp_path).assumed_over_time(RISE))


def test_without_scaling_the_initial_instances_stay(tmp_path: Path) -> None:
    model = stated(tmp_path, "    scaling: {enabled: false}\n    instances: {initial: 6}")
    assert model.over_time(RISE).scaling is None
    assert set(serving(model)) == {6}
    assert model.steady().instances == 6
    assert any("nothing scales: 6" in each for each in model.assumed_over_time(RISE))


def test_a_fleet_that_never_scales_is_as_large_as_stated(tmp_path: Path) -> None:
    model = stated(tmp_path, "    instances: {min: 7, initial: 7, max: 7}")
    assert set(serving(model)) == {7}
    assert model.steady().instances == 7


def test_the_peak_meets_no_more_than_the_maximum(tmp_path: Path) -> None:
    model = stated(tmp_path, "    instances: {min: 2, initial: 3, max: 6}")
    assert model.steady().instances == 6  # 8 are wanted
    assert max(serving(model)) == 6


def test_scaling_on_concurrency_aims_at_what_is_stated(tmp_path: Path) -> None:
    """1000 a second, each for 36 ms: 36 in flight, which are nine instances at a target of 4."""
    lines = (
        "    scaling: {metric: concurrency, concurrency_target: 4}\n"
        "    instances: {min: 2, initial: 8, max: 14}"
    )
    model = stated(tmp_path, lines, tps=1000)
    half = Shape("half", "half, then all", ((600.0, 0.5), (1800.0, 1.0)))
    assert model.over_time(half).scaling == TargetTracking.on_concurrency(
        4.0, 2, 14, scale_out_cooldown=60.0, scale_in_cooldown=300.0
    )
    assert any("requests in flight" in each for each in model.assumed_over_time(half))
    counts = serving(model, half)
    assert counts[:15] == [5] * 15  # three values of ten seconds, seen at 640 s; start-up until 940
    # More than the nine: the instance that has most is held at four, not the mean of all.
    assert 9 < counts[15] <= counts[-1] <= 14


def test_no_cooldown_is_no_cooldown(tmp_path: Path) -> None:
    model = stated(tmp_path, "    scaling: {scale_out_cooldown: 0s, scale_in_cooldown: 0s}")
    policy = model.over_time(RISE).scaling
    assert policy
    assert (policy.scale_out_cooldown, policy.scale_in_cooldown) == (0, 0)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", Rollout(at=600.0, kind="canary", step_share=0.1, wait_seconds=300.0)),
        (
            "    deployment: {canary: {size_percent: 20, wait: 1m}, termination_wait: 2m}",
            Rollout(at=600.0, kind="canary", step_share=0.2, wait_seconds=60.0, bake_seconds=120.0),
        ),
        (
            "    deployment: {linear: {step_percent: 30, wait: 10m}}",
            Rollout(at=600.0, kind="linear", step_share=0.3, wait_seconds=600.0),
        ),
        (
            "    deployment: {rolling: {batch_percent: 10, wait: 20m}}",
            Rollout(at=600.0, kind="rolling", step_share=0.1, wait_seconds=1200.0),
        ),
        (
            "    deployment: {all_at_once: {wait: 3m}, termination_wait: 2m}",
            Rollout(at=600.0, kind="all_at_once", bake_seconds=300.0),
        ),
    ],
    ids=["the library's default", "canary", "linear", "rolling", "all at once"],
)
def test_a_deployment_is_the_one_stated(lines: str, expected: Rollout, tmp_path: Path) -> None:
    model = stated(tmp_path, "    scaling: {enabled: false}\n" + lines)
    assert model.over_time(DEPLOY).deployment == expected
    begins, launched = 600.0, [line.launched for line in run(model, DEPLOY).timeline]
    more = [at for at, count in enumerate(launched) if count > model.instances]
    assert more[0] == begins / 60 - 1  # a line shows the end of its minute
    # Twice the fleet for blue/green, one batch for rolling, and for as long as it takes.
    assert max(launched) == model.instances + (
        expected.step(model.instances) if expected.kind == "rolling" else model.instances
    )
    ends = begins + expected.seconds(model.instances)
    if ends < DEPLOY.seconds:
        assert more[-1] in (ends / 60 - 2, ends / 60 - 1)  # the last answers of those that end
    else:
        assert any("not ended" in each for each in model.assumed_over_time(DEPLOY))


def test_inf1_is_deployed_all_at_once_by_default(tmp_path: Path) -> None:
    model = stated(tmp_path)
    assert model.deployment.kind == "canary"
    neuron = {
        "ml.m5.12xlarge": "ml.inf1.xlarge",
        "huggingface-pytorch-inference": "huggingface-pytorch-inference-neuron",
        "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04": (
            "1.10.2-transformers4.20.1-neuron-py37-sdk1.19.1-ubuntu18.04"
        ),
    }
    assert stated(tmp_path, instead=neuron).over_time(DEPLOY).deployment == Rollout(at=600.0)


def test_a_stated_target_of_invocations_is_what_scaling_aims_at(tmp_path):
    model = stated(tmp_path, "    scaling: {invocations_target: 500}")
    assert model.scaling is not None
    assert model.scaling.target == 500
    by_throughput = stated(tmp_path).scaling
    assert by_throughput is not None
    assert by_throughput.target != 500


@pytest.mark.parametrize("slope", [0.0, 0.05, 0.1, 0.15])
@pytest.mark.parametrize("seconds", [0.005, 0.02, 0.1, 0.25])
def test_an_instance_works_on_the_fewest_at_once_that_its_throughput_needs(
    tmp_path: Path, seconds: float, slope: float
) -> None:
    """20 a second, at which it is 90 % busy; requests at once slow each other by the slope."""
    model = stated(tmp_path, slope=slope, service_seconds=seconds)
    needed = 20 / BUSY_AT_MEASURED
    assert busy_rate(model.concurrency, slope, seconds) >= needed * (1 - 1e-9)
    if model.concurrency > 1:
        assert busy_rate(model.concurrency - 1, slope, seconds) < needed
