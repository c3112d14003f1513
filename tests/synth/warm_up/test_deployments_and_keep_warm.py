"""What calls the controller between deployments of the stack."""

from __future__ import annotations

import json

from aws_cdk import Duration

from low_latency_endpoint import KeepWarmOptions
from low_latency_endpoint.warm_up.warm_up_function import controller
from tests.refusals import refused
from tests.synth.warm_up.in_template import may


def rules_of(template):
    return [
        (logical_id, rule)
        for logical_id, rule in template.of_type("AWS::Events::Rule").items()
        if logical_id.startswith("WarmUp")
    ]


def test_hears_of_this_endpoints_deployments(template):
    ((rule_id, rule),) = rules_of(template)
    assert rule["EventPattern"] == {
        "source": ["aws.sagemaker"],
        "detail-type": [controller.DEPLOYMENT_EVENT],
        "resources": [{"Ref": template.only_id("AWS::SageMaker::Endpoint")}],
    }
    permission = template.only("AWS::Lambda::Permission")
    assert permission["SourceArn"] == {"Fn::GetAtt": [rule_id, "Arn"]}
    assert permission["Principal"] == "events.amazonaws.com"
    assert "Controller" in permission["FunctionName"]["Ref"]


def test_deployments_can_be_left_alone(stack, make, template_of):
    make(during_deployments=False)
    assert rules_of(template_of(stack)) == []


def test_keep_warm_by_default_sends_one_request_a_minute_below_one_per_second(
    stack, make, template_of
):
    make(during_deployments=False).keep_warm(KeepWarmOptions())
    template = template_of(stack)
    ((_, rule),) = rules_of(template)
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    assert json.loads(rule["Targets"][0]["Input"]) == {
        "keep_warm": {"requests_per_zone": 1, "below_tps": 1.0, "window_seconds": 300}
    }
    assert may(template, "Controller")["cloudwatch:GetMetricStatistics"] == "*"


def test_keep_warm_as_given(stack, make, template_of):
    made = make(during_deployments=False)
    made.keep_warm(
        KeepWarmOptions(
            every=Duration.minutes(5),
            requests_per_zone=4,
            below_tps=0.5,
            window=Duration.minutes(15),
        )
    )
    ((_, rule),) = rules_of(template_of(stack))
    assert rule["ScheduleExpression"] == "rate(5 minutes)"
    assert json.loads(rule["Targets"][0]["Input"])["keep_warm"] == {
        "requests_per_zone": 4,
        "below_tps": 0.5,
        "window_seconds": 900,
    }


def test_the_default_threshold_stays_above_what_keep_warm_sends(stack, make, template_of):
    made = make(during_deployments=False)
    made.keep_warm(KeepWarmOptions(requests_per_zone=60))  # two zones: 2 per second
    ((_, rule),) = rules_of(template_of(stack))
    assert json.loads(rule["Targets"][0]["Input"])["keep_warm"]["below_tps"] == 4


def test_keep_warm_refuses_requests_that_count_as_traffic(make):
    made = make()
    with refused("LLE553"):
        made.keep_warm(KeepWarmOptions(below_tps=2 / 60))  # exactly what two zones get
    made.keep_warm(KeepWarmOptions())  # a refused call leaves nothing behind


def test_keep_warm_is_called_once(make):
    made = make()
    made.keep_warm(KeepWarmOptions())
    with refused("LLE554"):
        made.keep_warm(KeepWarmOptions())
