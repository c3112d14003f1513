"""Names that users state for what is made: each once in an account and Region."""

from __future__ import annotations

import inspect

import aws_cdk as cdk
import pytest
from constructs import Construct

import low_latency_endpoint
from low_latency_endpoint import (
    Endpoint,
    EndpointConfiguration,
    InstanceType,
    LatencyDashboard,
    VariantAttributes,
)
from tests.refusals import refused

VARIANT = VariantAttributes(name="primary", instance_types=[InstanceType("ml.m5.xlarge")])


def endpoint(scope, id, name):
    configuration = EndpointConfiguration.from_endpoint_config_name(
        scope, f"{id}Configuration", "approved", variants=[VARIANT]
    )
    return Endpoint(scope, id, configuration=configuration, endpoint_name=name)


def dashboard(scope, id, name):
    served = Endpoint.from_endpoint_attributes(
        scope, f"{id}Endpoint", endpoint_name="sentiment", variants=[VARIANT]
    )
    return LatencyDashboard(scope, id, endpoint=served, dashboard_name=name)


def test_one_stack_has_a_name_once(stack):
    endpoint(stack, "First", "fraud")
    with refused("LLE931", got="fraud", where="Serving/Second") as caught:
        endpoint(stack, "Second", "fraud")
    assert "Serving/First" in caught.value.allowed
    with refused("LLE931", got="Fraud"):  # one name to SageMaker
        endpoint(stack, "Third", "Fraud")
    endpoint(stack, "Fourth", "fraud-2")


def test_a_nested_stack_is_of_its_stack(new_stack):
    stack = new_stack(region=None)
    endpoint(stack, "First", "fraud")
    with refused("LLE931", got="fraud"):
        endpoint(cdk.NestedStack(stack, "Nested"), "Second", "fraud")


@pytest.mark.parametrize(
    ("region", "other", "clash"),
    [("us-east-1", "us-east-1", True), ("us-east-1", "eu-west-1", False), (None, None, False)],
)
def test_two_stacks_clash_where_both_go_to_one_region(new_stack, region, other, clash):
    """Stacks without an environment may go to two accounts."""
    first = new_stack(region=region)
    second = new_stack(app=cdk.App.of(first), name="Other", region=other)
    endpoint(first, "First", "fraud")
    if clash:
        with refused("LLE931", where="Other/Second"):
            endpoint(second, "Second", "fraud")
    else:
        endpoint(second, "Second", "fraud")


def test_a_name_that_the_deployment_knows_is_not_compared(stack):
    name = cdk.CfnParameter(stack, "Name").value_as_string
    endpoint(stack, "First", name)
    endpoint(stack, "Second", name)


def test_dashboards_and_endpoints_may_have_one_name(stack):
    endpoint(stack, "First", "fraud")
    dashboard(stack, "Board", "fraud")
    with refused("LLE931", got="fraud"):
        dashboard(stack, "Board2", "fraud")


def test_parameters_of_two_endpoints(parts, stack):
    first = parts.pattern(stack, "First")
    first.publish_parameters(prefix="/fraud")
    second = parts.pattern(
        stack, "Second", client_zones=None, network=first.network, private_link=first.private_link
    )
    with refused("LLE931", got="/fraud"):
        second.publish_parameters(prefix="/fraud")


def test_every_name_of_what_is_made_is_claimed():
    """A new argument ``..._name`` of a construct is tried above, or names what exists."""
    named = {
        f"{name} {parameter}"
        for name in low_latency_endpoint.__all__
        if issubclass(kind := getattr(low_latency_endpoint, name), Construct)
        for parameter, of in inspect.signature(kind).parameters.items()
        if parameter.endswith("_name") and of.default is None
    }
    assert named == {
        "Endpoint endpoint_name",
        "InferenceComponent component_name",  # test_inference_component.py
        "InferenceComponent variant_name",  # exists
        "LatencyDashboard dashboard_name",
    }
