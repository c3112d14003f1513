"""What an update does with the numbers of instances; turning scaling off updates nothing."""

from __future__ import annotations

import pytest
from aws_cdk.assertions import Annotations, Match

from low_latency_endpoint import InstanceType, MeasuredThroughput, ScalingOptions
from tests.refusals import refused

ENDPOINT = "AWS::SageMaker::Endpoint"
CONFIGURATION = "AWS::SageMaker::EndpointConfig"
KEPT = {
    "RetainAllVariantProperties": True,
    "ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredWeight"}],
}
WARNING = Match.string_like_regexp("a changed initial number has no effect")


def retained(template):
    return {key: value for key, value in template.only(ENDPOINT).items() if "Retain" in key}


@pytest.mark.parametrize(
    ("keeps", "scaled", "expected"),
    [
        (None, False, {}),
        (None, True, KEPT),
        (True, False, KEPT),
        (True, True, KEPT),
        (False, False, {}),
    ],
)
def test_an_endpoint(stack, parts, template_of, keeps, scaled, expected):
    endpoint = parts.endpoint(stack, keep_instance_counts=keeps)
    if scaled:
        endpoint.scale("primary", min_instances=1, max_instances=4)
    assert retained(template_of(stack)) == expected


def test_a_scaled_variant_is_not_thrown_back(stack, parts):
    endpoint = parts.endpoint(stack, keep_instance_counts=False)
    with refused("LLE512"):
        endpoint.scale("primary", min_instances=1, max_instances=4)


def pattern(stack, parts, *, measured=True, **given):
    throughput = MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65)
    return parts.pattern(
        stack,
        instance_type=InstanceType("ml.m5.12xlarge"),
        throughput=throughput if measured else None,
        scaling=ScalingOptions(**given),
    )


@pytest.mark.parametrize("keeps", [None, True])
def test_turning_scaling_off_changes_neither_endpoint_nor_configuration(
    new_stack, parts, template_of, keeps
):
    parts_of = {}
    for scaling in (True, False):
        stack = new_stack()
        pattern(stack, parts, enabled=scaling, keep_counts=keeps)
        template = template_of(stack)
        assert ("AWS::ApplicationAutoScaling::ScalableTarget" in template.types) is scaling
        parts_of[scaling] = [template.of_type(kind) for kind in (ENDPOINT, CONFIGURATION)]
    assert parts_of[True] == parts_of[False]


@pytest.mark.parametrize(
    ("given", "expected", "warned"),
    [
        ({"enabled": False}, KEPT, True),
        ({"enabled": False, "keep_counts": True}, KEPT, False),
        ({"enabled": False, "keep_counts": False}, {}, False),
        ({"measured": False}, {}, False),
        ({}, KEPT, False),
    ],
)
def test_the_pattern(stack, parts, template_of, given, expected, warned):
    pattern(stack, parts, **given)
    found = Annotations.from_stack(stack).find_warning("*", WARNING)
    assert bool(found) is warned
    assert retained(template_of(stack)) == expected
