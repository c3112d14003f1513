"""Several instance pools in the pattern: planned for the slowest, all of them deployed."""

from __future__ import annotations

import pytest

from low_latency_endpoint import (
    ContainerImage,
    InstanceCounts,
    InstancePool,
    InstanceType,
    MeasuredThroughput,
)
from low_latency_endpoint.errors import ConfigurationError

FAST, SLOW = "ml.c7i.2xlarge", "ml.m5.2xlarge"


@pytest.fixture
def pooled(stack, parts):
    """The pattern on these types, each with what an instance of it holds."""

    def make(types, *, tps=200, peak=1000, **given):
        return parts.pattern(
            stack,
            instance_type=[
                InstancePool(InstanceType(name), priority, tps_per_instance=held)
                for priority, (name, held) in enumerate(types, 1)
            ],
            throughput=tps
            and MeasuredThroughput(peak_tps=peak, tps_per_instance=tps, safety_factor=0.5),
            **given,
        )

    return make


def test_the_variant_has_all_pools_and_the_plan_the_slowest(stack, pooled, template_of):
    endpoint = pooled([(FAST, 300), (SLOW, 200)])
    variant = template_of(stack).variant
    assert variant["InstancePools"] == [
        {"InstanceType": FAST, "Priority": 1},
        {"InstanceType": SLOW, "Priority": 2},
    ]
    assert "InstanceType" not in variant
    # 1000 TPS at half of 200 each, not half of 300.
    assert endpoint.plan.fleet.at_peak == variant["InitialInstanceCount"] == 10
    assert endpoint.plan.scaling.target == 200 * 0.5 * 60


def test_the_plan_names_the_slowest_and_says_why(pooled):
    plan = pooled([(FAST, 300), (SLOW, 200)]).plan
    decision = plan.explanation["instance_type"]
    assert decision.value == SLOW
    assert "the slowest of the instance pools" in decision.rule
    assert decision.inputs["pools"] == [f"{FAST} (300 TPS)", f"{SLOW} (200 TPS)"]
    assumed = next(line.text for line in plan.explanation.summary if line.title == "Assumed")
    assert f"every instance is an {SLOW}, the slowest of the pools" in assumed


def test_alarms_are_by_type(pooled):
    alarms = pooled([(FAST, 300), (SLOW, 200)]).alarms.alarms
    assert f"primary/CPUUtilization/Average/{FAST}" in alarms
    assert f"primary/CPUUtilization/Average/{SLOW}" in alarms


def test_without_throughput_the_first_one_is_named(pooled):
    plan = pooled([(FAST, None), (SLOW, None)], tps=None).plan
    assert plan.request.serving.instance_type == FAST
    assert plan.request.serving.types == (FAST, SLOW)


@pytest.mark.parametrize(
    ("types", "tps", "code"),
    [
        ([(FAST, 300), (SLOW, None)], 300, "LLE432"),
        ([(FAST, 300), (SLOW, 200)], 300, "LLE433"),
        ([(FAST, 300), (SLOW, 200)], 250, "LLE433"),
        ([(FAST, 0), (SLOW, 200)], 200, "LLE603"),
        ([], None, "LLE413"),
    ],
)
def test_what_cannot_be_planned_is_refused(pooled, types, tps, code):
    with pytest.raises(ConfigurationError, match=code):
        pooled(types, tps=tps)


def test_every_type_is_held_against_the_image(pooled):
    with pytest.raises(ConfigurationError, match="LLE33"):
        pooled([(SLOW, 200), ("ml.c7g.2xlarge", 300)])


def test_one_burstable_type_keeps_all_from_scaling(pooled):
    with pytest.raises(ConfigurationError, match=r"LLE624(.|\n)*ml\.t2\.medium"):
        pooled(
            [(FAST, 300), ("ml.t2.medium", 20)],
            tps=20,
            peak=20,
            instances=InstanceCounts(min=2, max=4),
        )


def test_one_inf1_type_keeps_all_from_rollback_alarms(stack, parts, pooled, template_of):
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/neuron:1")
    pooled(
        [("ml.inf2.xlarge", 300), ("ml.inf1.2xlarge", 200)],
        containers=[parts.container(image=image)],
    )
    deployment = template_of(stack).deployment
    assert "AutoRollbackConfiguration" not in deployment


def test_an_unknown_type_among_them_is_a_warning(pooled):
    warnings = pooled([(SLOW, 200), ("ml.z99.large", 300)]).plan.explanation.warnings
    assert "unknown-instance-type-ml.z99.large" in [warning.id for warning in warnings]
