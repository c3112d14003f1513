"""Service level objectives of Application Signals: what each is about, its name, and where there are none."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import aws_cdk as cdk
import botocore.session
import cfnlint
import pytest
from aws_cdk import Duration
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from low_latency_endpoint import Endpoint, InstanceType, LatencyAlarms, VariantAttributes
from low_latency_endpoint.facts.rules import has_objectives
from low_latency_endpoint.options.alarms import AlarmOptions, tightest
from tests.refusals import refused

from .conftest import alarms_on, warnings_in

SLO = "AWS::ApplicationSignals::ServiceLevelObjective"
P99 = {"p99": Duration.millis(200)}
# Those of the schema of CloudFormation's type.
PATTERN = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", SLO).schema["properties"][
    "Name"
]["pattern"]

REGIONS = {
    file.stem: json.loads(file.read_text())
    for file in (Path(cfnlint.__file__).parent / "data/schemas/providers").glob("*-*.json")
}


@pytest.fixture
def endpoint(stack, parts):
    return parts.endpoint(stack)


def test_an_objective_on_the_threshold_of_the_alarm(stack, endpoint, template_of):
    alarms = alarms_on(stack, endpoint, model_latency=P99, service_level_objective=0.999)
    template = template_of(stack)
    alarm = template.made_of(alarms.alarms)["primary/ModelLatency/p99"]
    found = template.only(SLO)
    assert set(alarms.objectives) == {"primary"}
    (query,) = found["Sli"]["SliMetric"].pop("MetricDataQueries")
    assert found["Sli"] == {
        "ComparisonOperator": "LessThanOrEqualTo",
        "MetricThreshold": alarm["Threshold"],
        "SliMetric": {},
    }
    stat = query["MetricStat"]
    assert query["ReturnData"] is True
    assert (stat["Period"], stat["Stat"]) == (60, "p99")
    assert stat["Metric"]["Dimensions"] == alarm["Dimensions"]
    assert stat["Metric"]["Namespace"] == "AWS/SageMaker"
    assert stat["Metric"]["MetricName"] == "ModelLatency"
    assert found["Goal"]["AttainmentGoal"] == 99.9
    rolling = {"Duration": 28, "DurationUnit": "DAY"}
    assert found["Goal"]["Interval"] == {"RollingInterval": rolling}
    windows = [each["LookBackWindowMinutes"] for each in found["BurnRateConfigurations"]]
    assert windows == [5, 30, 60, 360]
    assert "p99 is at most 200 ms in 99.9 % of the periods of 60 s" in found["Description"]


def test_windows_are_not_shorter_than_a_period(stack, endpoint, template_of):
    options = {"model_latency": P99, "service_level_objective": 0.99}
    alarms_on(stack, endpoint, period=timedelta(minutes=15), **options)
    found = template_of(stack).only(SLO)
    windows = [each["LookBackWindowMinutes"] for each in found["BurnRateConfigurations"]]
    assert windows == [30, 60, 360]
    assert found["Sli"]["SliMetric"]["MetricDataQueries"][0]["MetricStat"]["Period"] == 900


def test_each_production_variant_has_one_with_a_name_of_its_own(stack, parts, template_of):
    longest = "v" * 63
    variants = [parts.variant(stack), parts.variant(stack, name=longest)]
    configuration = parts.configuration(stack, variants=variants)
    endpoint = parts.endpoint(stack, configuration=configuration)
    options = {"model_latency": P99, "service_level_objective": 0.99}
    for name in ("Alarms", "A" * 200):
        assert set(alarms_on(stack, endpoint, name, **options).objectives) == {"primary", longest}
    names = [each["Name"] for each in template_of(stack).of_type(SLO).values()]
    assert len(set(names)) == 4
    assert all(re.fullmatch(PATTERN, name) for name in names), names


def test_a_shadow_and_a_new_fleet_have_none(stack, parts, template_of):
    shadow = parts.variant(stack, name="candidate")
    configuration = parts.configuration(stack, variants=[parts.variant(stack)], shadow=shadow)
    endpoint = parts.endpoint(stack, configuration=configuration)
    options = {"model_latency": P99, "service_level_objective": 0.99}
    rollback = alarms_on(stack, endpoint, "Rollback", new_fleet_only=True, **options)
    assert rollback.objectives == {}
    assert set(alarms_on(stack, endpoint, **options).objectives) == {"primary"}
    assert len(template_of(stack).of_type(SLO)) == 1


def test_without_the_option_there_is_none(stack, endpoint, template_of):
    assert alarms_on(stack, endpoint, model_latency=P99).objectives == {}
    assert template_of(stack).of_type(SLO) == {}


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        ({"p99": "200ms"}, ("p99", 200)),
        ({"p50": "50ms", "p99": "200ms"}, ("p50", 50)),
        ({"p90": "200ms", "p99.9": "200ms", "p99": "200ms"}, ("p99.9", 200)),
        ({"Average": "10ms", "p99": "200ms"}, ("p99", 200)),
        ({"Maximum": "1s", "Average": "100ms"}, ("Average", 100)),
        ({"Warning": {"p99": "150ms"}, "Critical": {"p99": "200ms"}}, ("p99", 150)),
        ({}, None),
        ("planned", None),
        (None, None),
    ],
)
def test_the_tightest_threshold(thresholds, expected):
    """Percentiles first, then the shortest, then the highest percentile."""
    assert tightest(thresholds) == expected


@pytest.mark.parametrize("thresholds", [None, {}])
def test_an_objective_without_a_threshold_is_refused_with_the_options(thresholds):
    with refused("LLE739", "AlarmOptions, service_level_objective"):
        AlarmOptions(model_latency=thresholds, service_level_objective=0.99)


def test_an_objective_on_a_plan_that_is_nowhere(stack, endpoint):
    with refused("LLE739", "Alarms"):
        LatencyAlarms(
            stack,
            "Alarms",
            endpoint=endpoint,
            options=AlarmOptions(service_level_objective=0.99, capacity_at_maximum=False),
        )


def test_periods_of_more_than_15_minutes_are_refused():
    options = {"model_latency": P99, "service_level_objective": 0.99}
    AlarmOptions(period=timedelta(minutes=15), **options)
    with refused("LLE739", got="960s"):
        AlarmOptions(period=timedelta(minutes=16), **options)


@pytest.mark.parametrize(
    ("region", "made"),
    [
        ("us-east-1", True),
        ("ca-west-1", True),
        ("us-gov-west-1", True),
        (None, True),
        ("cn-north-1", False),
        ("us-iso-east-1", False),
        ("us-isob-east-1", False),
        ("eu-isoe-west-1", False),
        ("eusc-de-east-1", False),
    ],
)
def test_regions_without_application_signals_get_a_warning_instead(region, made):
    stack = cdk.Stack(cdk.App(), "S", env=cdk.Environment(region=region))
    variants = [
        VariantAttributes(name=name, instance_types=[InstanceType("ml.m5.large")])
        for name in ("a", "b")
    ]
    endpoint = Endpoint.from_endpoint_attributes(stack, "E", endpoint_name="e", variants=variants)
    alarms = alarms_on(stack, endpoint, model_latency=P99, service_level_objective=0.99)
    assert len(alarms.objectives) == 2 * made
    warnings = warnings_in(stack, "noServiceLevelObjective")
    assert len(warnings) == (not made)
    assert all(f"AWS lists no Application Signals in {region}" in each for each in warnings)


def test_regions_are_those_of_the_partitions_that_the_api_takes_arns_of():
    """When this fails after a new version: read where Application Signals is now."""
    loader = botocore.session.Session().get_component("data_loader")
    shapes = loader.load_service_model("application-signals", "service-2")["shapes"]
    pattern = shapes["ServiceLevelObjectiveArn"]["pattern"]
    assert pattern.startswith("arn:(aws|aws-us-gov):application-signals:")
    for partition in loader.load_data("endpoints")["partitions"]:
        listed = partition["partition"] in ("aws", "aws-us-gov")
        for region in partition["regions"]:
            assert has_objectives(region) is listed, region


def test_cloudformation_has_the_type_in_each_region_with_objectives():
    for name, types in REGIONS.items():
        assert SLO in types or not has_objectives(name), name
