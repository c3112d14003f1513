"""The endpoint: name, deployments, tags, counts that an update keeps, and the check of what serves."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest
from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam

from low_latency_endpoint import DeploymentPolicy, InstanceType, MeasuredThroughput, ScalingOptions
from low_latency_endpoint.plan.launched_names import as_named
from tests.refusals import refused

from .conftest import alarms_on, by_action, name_at_synth, warnings_after_synth
from .inline_functions import loaded


def assert_no_cycle(template):
    for logical_id in template["Resources"]:
        assert logical_id not in template.needs(logical_id)


def test_an_update_policy_is_always_stated(smallest):
    routing = smallest("endpoint").deployment["BlueGreenUpdatePolicy"][
        "TrafficRoutingConfiguration"
    ]
    assert (routing["Type"], routing["WaitIntervalInSeconds"]) == ("CANARY", 300)


def test_runs_its_configuration(smallest):
    template = smallest("endpoint")
    assert template.only("AWS::SageMaker::Endpoint")["EndpointConfigName"] == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::EndpointConfig"), "EndpointConfigName"]
    }


def test_its_name_is_known_at_synth(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    template, name = template_of(stack), name_at_synth(endpoint)
    assert template.only("AWS::SageMaker::Endpoint")["EndpointName"] == name
    assert name == name.lower()
    assert len(name) <= 63
    # Whoever uses this one is made after the endpoint.
    assert stack.resolve(endpoint.endpoint_name) == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::Endpoint"), "EndpointName"]
    }


def test_a_long_path_makes_a_name_that_fits(new_stack, parts):
    stack = new_stack(name="a" + "-very-long-name-of-a-stack" * 4)
    configuration = parts.configuration(stack)
    names = [
        name_at_synth(parts.endpoint(stack, f"{'Endpoint' * 9}{n}", configuration=configuration))
        for n in (1, 2)
    ]
    assert len(set(names)) == 2
    assert all(len(name) <= 63 for name in names)


def test_a_name_of_the_users_own(stack, parts, template_of):
    endpoint = parts.endpoint(stack, endpoint_name="Sentiment-v2")
    properties = template_of(stack).only("AWS::SageMaker::Endpoint")
    assert properties["EndpointName"] == endpoint.name_in(stack) == "Sentiment-v2"


def test_tags(stack, parts, template_of):
    parts.endpoint(stack, tags={"team": "search", "cost-centre": "42"})
    tags = template_of(stack).only("AWS::SageMaker::Endpoint")["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"team": "search", "cost-centre": "42"}


def test_rollback_alarms_exist_before_the_endpoint(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    alarms = alarms_on(
        stack,
        endpoint,
        "Rollback",
        new_fleet_only=True,
        model_latency={"p99": Duration.millis(200)},
        error_rate=0.01,
    ).alarms.values()
    endpoint.roll_back_on(*alarms)
    template = template_of(stack)
    endpoint_id = template.only_id("AWS::SageMaker::Endpoint")
    configured = template.deployment
    assert configured["AutoRollbackConfiguration"] == {
        "Alarms": [{"AlarmName": stack.resolve(alarm.alarm_name)} for alarm in alarms]
    }
    assert "BlueGreenUpdatePolicy" in configured
    made = set(template.of_type("AWS::CloudWatch::Alarm"))
    assert len(made) == 2
    assert made <= template.needs(endpoint_id)
    assert_no_cycle(template)


def test_rollback_alarms_given_at_once_or_later_add_up(stack, parts, template_of):
    def alarm(id):
        metric = cloudwatch.Metric(namespace="Shop", metric_name="CheckoutFailures")
        return cloudwatch.Alarm(
            stack, id, metric=metric, threshold=1, evaluation_periods=1, alarm_name=id
        )

    endpoint = parts.endpoint(stack, rollback_alarms=[alarm("First")])
    endpoint.roll_back_on(alarm("Second"), alarm("Third"))
    configured = template_of(stack).deployment
    assert len(configured["AutoRollbackConfiguration"]["Alarms"]) == 3


def test_more_than_ten_rollback_alarms_are_refused_also_over_several_calls(stack, parts):
    alarms = [
        cloudwatch.Alarm.from_alarm_arn(
            stack, f"Alarm{n}", f"arn:aws:cloudwatch:us-east-1:123456789012:alarm:a{n}"
        )
        for n in range(11)
    ]
    endpoint = parts.endpoint(stack, rollback_alarms=alarms[:10])
    with refused("LLE508", got="11: 11 of others"):
        endpoint.roll_back_on(alarms[10])


def test_without_scaling_an_update_resets_the_counts(smallest):
    endpoint = smallest("endpoint").only("AWS::SageMaker::Endpoint")
    assert "RetainAllVariantProperties" not in endpoint
    assert "ExcludeRetainedVariantProperties" not in endpoint


def test_with_scaling_an_update_keeps_the_counts_but_not_the_weights(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    endpoint.scale("primary", min_instances=2, max_instances=4)
    properties = template_of(stack).only("AWS::SageMaker::Endpoint")
    assert properties["RetainAllVariantProperties"] is True
    assert properties["ExcludeRetainedVariantProperties"] == [
        {"VariantPropertyType": "DesiredWeight"}
    ]


def test_granting_covers_both_ways_to_invoke_and_this_endpoint_only(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    endpoint.grant_invoke(caller)
    template = template_of(stack)
    (policy,) = [
        properties
        for properties in template.of_type("AWS::IAM::Policy").values()
        if properties["Roles"] == [stack.resolve(caller.role_name)]
    ]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Action": ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"],
        "Resource": {"Ref": template.only_id("AWS::SageMaker::Endpoint")},
    }


@pytest.mark.parametrize(
    ("name", "statistic", "namespace"),
    [
        ("ModelLatency", "p99", "AWS/SageMaker"),
        ("Invocations", "Sum", "AWS/SageMaker"),
        ("CPUUtilization", "Average", "/aws/sagemaker/Endpoints"),
    ],
)
def test_metrics(stack, parts, name, statistic, namespace):
    endpoint = parts.endpoint(stack)
    metric = endpoint.metric(name, statistic=statistic)
    assert (metric.namespace, metric.metric_name, metric.statistic) == (namespace, name, statistic)
    assert metric.period.to_seconds() == 60
    assert as_named(stack.resolve(metric.dimensions)) == {
        "EndpointName": name_at_synth(endpoint),
        "VariantName": "primary",
    }


def test_two_endpoints_in_one_stack_have_different_names(stack, parts, template_of):
    for name in ("One", "Two"):
        configuration = parts.configuration(
            stack, f"{name}Configuration", variants=[parts.variant(stack, name=name)]
        )
        parts.endpoint(stack, name, configuration=configuration)
    template = template_of(stack)
    names = [
        endpoint["EndpointName"]
        for endpoint in template.of_type("AWS::SageMaker::Endpoint").values()
    ]
    assert len(set(names)) == 2
    assert_no_cycle(template)
    assert "AmazonSageMakerFullAccess" not in json.dumps(template)


def percent(value):
    return {"Type": "CAPACITY_PERCENT", "Value": value}


def blue_green(kind, wait, sizes=None, **more):
    routing = {"Type": kind, "WaitIntervalInSeconds": wait, **(sizes or {})}
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing, **more}}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (DeploymentPolicy.canary(), blue_green("CANARY", 300, {"CanarySize": percent(10)})),
        (
            DeploymentPolicy.canary(
                size_percent=50,
                wait=Duration.hours(1),
                termination_wait=Duration.minutes(2),
                maximum_execution=Duration.hours(8),
            ),
            blue_green(
                "CANARY",
                3600,
                {"CanarySize": percent(50)},
                TerminationWaitInSeconds=120,
                MaximumExecutionTimeoutInSeconds=28800,
            ),
        ),
        (
            DeploymentPolicy.canary(wait=Duration.seconds(0)),
            blue_green("CANARY", 0, {"CanarySize": percent(10)}),
        ),
        (
            DeploymentPolicy.linear(step_percent=20, wait=Duration.minutes(1)),
            blue_green("LINEAR", 60, {"LinearStepSize": percent(20)}),
        ),
        (DeploymentPolicy.all_at_once(), blue_green("ALL_AT_ONCE", 0)),
        (DeploymentPolicy.all_at_once(wait=Duration.minutes(10)), blue_green("ALL_AT_ONCE", 600)),
        (
            DeploymentPolicy.rolling(
                batch_percent=5, wait=Duration.minutes(1), maximum_execution=Duration.hours(2)
            ),
            {
                "RollingUpdatePolicy": {
                    "MaximumBatchSize": percent(5),
                    "WaitIntervalInSeconds": 60,
                    "MaximumExecutionTimeoutInSeconds": 7200,
                    # Absent it would be the whole fleet at once, for which there may be no room.
                    "RollbackMaximumBatchSize": percent(5),
                }
            },
        ),
    ],
)
def test_each_policy(stack, parts, template_of, policy, expected):
    parts.endpoint(stack, deployment=policy)
    assert template_of(stack).deployment == expected


def test_inf1_updates_all_at_once_by_default(stack, parts, template_of):
    variant = parts.variant(stack, instance_type=InstanceType("ml.inf1.xlarge"))
    parts.endpoint(stack, variants=[variant])
    deployment = template_of(stack).deployment
    routing = deployment["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    assert routing["Type"] == "ALL_AT_ONCE"


# What AWS adds up: waits between the shifts, and the wait before the old fleet ends.
@pytest.mark.parametrize(
    ("kind", "given", "waits"),
    [
        ("canary", {"wait": "20m", "termination_wait": "10m"}, 1800),
        ("linear", {"step_percent": 30, "wait": "10m"}, 2400),
        ("rolling", {"batch_percent": 50, "wait": "10m"}, 1200),
    ],
)
def test_the_longest_time_exceeds_the_waits(kind, given, waits):
    make = partial(getattr(DeploymentPolicy, kind), **given)
    with refused("LLE521", allowed=f"more than the waits' {waits:,} seconds"):
        make(maximum_execution=timedelta(seconds=waits))
    assert make(maximum_execution=timedelta(seconds=waits + 1)).waits == timedelta(seconds=waits)


ENDPOINT = "AWS::SageMaker::Endpoint"
CONFIGURATION = "AWS::SageMaker::EndpointConfig"
KEPT = {
    "RetainAllVariantProperties": True,
    "ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredWeight"}],
}
WARNING = "a changed initial number has no effect"


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
    assert bool(warnings_after_synth(stack, WARNING)) is warned
    assert retained(template_of(stack)) == expected


CHECK = "Custom::EndpointServingCheck"
NEW, OLD = "configuration-new", "configuration-old"


# ------------------------------------------------------------------------------------ template


def test_comes_after_the_endpoint_and_concerns_its_configuration(smallest):
    template = smallest("endpoint")
    check = template.only(CHECK)
    assert check["EndpointName"] == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::Endpoint"), "EndpointName"]
    }
    assert check["EndpointConfigName"] == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::EndpointConfig"), "EndpointConfigName"]
    }
    assert int(check["ServiceTimeout"]) > _functions(template)[0]["Timeout"]


def test_two_endpoints_share_one_function_that_may_describe_these_two_only(
    stack, parts, template_of
):
    for name in ("first", "Second"):
        variants = [parts.variant(stack, model=parts.model(stack, f"Model-{name}"))]
        configuration = parts.configuration(stack, f"Configuration-{name}", variants=variants)
        parts.endpoint(stack, f"Endpoint-{name}", configuration=configuration, endpoint_name=name)
    template = template_of(stack)
    (function,) = _functions(template)
    tokens = [check["ServiceToken"] for check in template.of_type(CHECK).values()]
    (function_id,) = [
        logical_id
        for logical_id, each in template.of_type("AWS::Lambda::Function").items()
        if each == function
    ]
    assert tokens == [{"Fn::GetAtt": [function_id, "Arn"]}] * 2
    role_id = function["Role"]["Fn::GetAtt"][0]
    role = template["Resources"][role_id]["Properties"]
    assert "ManagedPolicyArns" not in role
    logs = {"Fn::GetAtt": [function["LoggingConfig"]["LogGroup"]["Ref"], "Arn"]}
    rights = by_action(template.rights_of(role_id))
    del rights["sagemaker:DescribeEndpoint"]
    assert {action: statement["Resource"] for action, statement in rights.items()} == {
        "cloudformation:DescribeStacks": {"Ref": "AWS::StackId"},
        "logs:CreateLogStream": logs,
        "logs:PutLogEvents": logs,
    }
    described = []
    for policy_id, policy in template.of_type("AWS::IAM::Policy").items():
        if policy["Roles"] != [{"Ref": role_id}]:
            continue
        (statement,) = policy["PolicyDocument"]["Statement"]
        assert statement["Action"] == ["sagemaker:DescribeEndpoint"]
        described.append(statement["Resource"]["Fn::Join"][1][-1])
        (user,) = [
            each for each in template.of_type(CHECK) if policy_id in template.depends_on(each)
        ]
        assert user.startswith("Endpoint")
    # ARNs of endpoints are in lower case.
    assert sorted(resource.rpartition(":")[2] for resource in described) == [
        "endpoint/first",
        "endpoint/second",
    ]


def _functions(template):
    return [
        each
        for each in template.of_type("AWS::Lambda::Function").values()
        if "Confirms" in each["Description"]
    ]


def test_its_code_needs_no_asset(smallest):
    (function,) = _functions(smallest("endpoint"))
    assert len(function["Code"]["ZipFile"]) < 4096  # Lambda's limit for inline code


def test_can_be_left_out(stack, parts, template_of):
    endpoint = parts.endpoint(stack, confirm_updates=False)
    assert endpoint.confirmation is None
    template = template_of(stack)
    assert CHECK not in template.types
    assert not _functions(template)


# --------------------------------------------------------------------------------------- code


class SageMaker:
    """DescribeEndpoint: one answer after the other, the last one for good."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    def describe_endpoint(self, *, EndpointName):
        assert EndpointName == "sentiment"
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def endpoint(status="InService", config=NEW, **more):
    return {
        "EndpointName": "sentiment",
        "EndpointStatus": status,
        "EndpointConfigName": config,
        **more,
    }


@pytest.fixture
def run(stack, parts, template_of, monkeypatch):
    """Run the handler as it stands in the template; returns what it sent to CloudFormation."""
    parts.endpoint(stack)
    source = _functions(template_of(stack))[0]["Code"]["ZipFile"]

    def run(*answers, request="Update", stack_status="UPDATE_IN_PROGRESS", seconds=300):
        left = [seconds]

        class CloudFormation:
            def describe_stacks(self, *, StackName):
                assert StackName == "arn:stack"
                return {"Stacks": [{"StackStatus": stack_status}]}

        class Context:
            def get_remaining_time_in_millis(self):
                return left[0] * 1000

        def sleep(pause):
            left[0] -= pause
            assert left[0] > 0, "Lambda would have stopped the function"

        sagemaker = SageMaker(*answers)
        clients = {"sagemaker": sagemaker, "cloudformation": CloudFormation()}
        handler, sent = loaded(source, clients, SimpleNamespace(sleep=sleep), monkeypatch)
        names = {"EndpointName": "sentiment", "EndpointConfigName": NEW}
        event = {"RequestType": request, "StackId": "arn:stack", "ResourceProperties": names}
        handler(event, Context())
        ((status, name, reason),) = sent  # exactly one, or CloudFormation waits for its time-out
        assert name == "sentiment"
        return (status, reason), sagemaker.asked

    return run


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_an_endpoint_that_serves_its_configuration_passes(run, request_type):
    assert run(endpoint(), request=request_type) == (("SUCCESS", None), 1)


@pytest.mark.parametrize("reason", ["", "The container did not pass the ping health check."])
def test_a_rolled_back_update_fails_and_says_what_serves_why_and_what_to_do(run, reason):
    told = {"FailureReason": reason} if reason else {}
    (status, text), asked = run(endpoint(config=OLD, **told))
    assert (status, asked) == ("FAILED", 1)
    for words in (
        OLD,
        NEW,
        "rolled the update back",
        reason or "none given",
        "deploy again",
        "/aws/sagemaker/Endpoints/sentiment",
        "low-latency verify",
    ):
        assert words in text


def test_a_failure_beside_the_right_configuration_fails_and_says_the_way_out(run):
    (status, text), _ = run(endpoint(FailureReason="no capacity"))
    assert status == "FAILED"
    for words in ("no capacity", "any change of the configuration", "confirm_updates"):
        assert words in text


@pytest.mark.parametrize("status", ["Failed", "OutOfService", "UpdateRollbackFailed", "Deleting"])
def test_an_endpoint_out_of_service_fails_at_once(run, status):
    (answer, text), asked = run(endpoint(status, FailureReason="mixed fleets"))
    assert (answer, asked) == ("FAILED", 1)
    assert status in text
    assert "mixed fleets" in text


def test_it_waits_while_something_is_going_on(run):
    busy = [endpoint("Updating"), endpoint("SystemUpdating"), endpoint("Updating")]
    assert run(*busy, endpoint()) == (("SUCCESS", None), 4)
    (status, _), asked = run(
        endpoint("Updating", OLD), endpoint("RollingBack", OLD), endpoint(config=OLD)
    )
    assert (status, asked) == ("FAILED", 3)


def test_scaling_that_takes_longer_does_not_fail_but_another_configuration_does(run):
    assert run(endpoint("Updating"))[0] == ("SUCCESS", None)
    (status, text), _ = run(endpoint("Updating", OLD))
    assert status == "FAILED"
    assert OLD in text


@pytest.mark.parametrize("stack_status", ["UPDATE_ROLLBACK_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"])
def test_a_rollback_passes_whatever_serves(run, stack_status):
    answer = endpoint("Failed", OLD, FailureReason="x")
    assert run(answer, stack_status=stack_status) == (("SUCCESS", None), 0)


def test_a_delete_asks_nothing(run):
    assert run(RuntimeError("gone"), request="Delete", stack_status="x") == (("SUCCESS", None), 0)


def test_a_right_that_is_seconds_old_is_waited_for(run):
    denied = RuntimeError("An error occurred (AccessDeniedException) when calling ...")
    assert run(denied, denied, endpoint()) == (("SUCCESS", None), 3)
    (status, text), _ = run(denied)
    assert status == "FAILED"
    assert "AccessDenied" in text


def test_what_else_goes_wrong_reaches_cloudformation(run):
    (status, text), asked = run(RuntimeError("Could not find endpoint"))
    assert (status, asked) == ("FAILED", 1)
    assert "Could not find endpoint" in text


def test_the_reason_fits_into_cloudformation_s_answer(run):
    (_, text), _ = run(endpoint(config=OLD, FailureReason="x" * 5000))
    assert len(text) <= 2000  # of 4,096 bytes
    assert "low-latency verify" in text
