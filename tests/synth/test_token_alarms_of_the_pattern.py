"""A language model's endpoint: alarms on tokens, scaling on requests in flight, no whole calls."""

from __future__ import annotations

import pytest
from aws_cdk import Duration

from low_latency_endpoint import (
    AlarmOptions,
    ConfigurationOptions,
    Container,
    ContainerImage,
    FurtherVariant,
    LatencyTarget,
    MeasuredThroughput,
    MetricsPublishing,
    ModelData,
    TokenAlarmOptions,
    TokenTraffic,
)

from .conftest import warnings_in

CHAT = {"ttft_p95": Duration.millis(500), "itl_p95": Duration.millis(50)}


def served(repository="vllm", tag="0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"):
    return Container(
        image=ContainerImage.from_dlc(repository, tag), data=ModelData.from_uri("s3://models/chat/")
    )


@pytest.fixture
def chat(stack, parts):
    def make(id="Chat", **given):
        stated = {
            "containers": [served()],
            "instance_type": "ml.g6e.xlarge",
            "latency": LatencyTarget(**CHAT),
            "tokens": TokenTraffic(input=512, output=128),
            "throughput": MeasuredThroughput(
                peak_tps=24, tps_per_instance=4, safety_factor=0.7, concurrency_per_instance=20
            ),
            **given,
        }
        return parts.pattern(stack, id, **stated)

    return make


def queries(template):
    """What the alarms ask that ask for container metrics."""
    alarms = template.of_type("AWS::CloudWatch::Alarm").values()
    asking = [each["EvaluationCriteria"] for each in alarms if "EvaluationCriteria" in each]
    return [str(each["PromQLCriteria"]["Query"]) for each in asking]


def metrics_of(template):
    found = []
    for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
        found += [alarm["MetricName"]] if "MetricName" in alarm else []
        found += [
            each["MetricStat"]["Metric"]["MetricName"]
            for each in alarm.get("Metrics", ())
            if "MetricStat" in each
        ]
    return found


def test_tokens_are_watched_in_seconds_and_whole_calls_are_not(chat, stack, template_of):
    made = chat()
    assert list(made.token_alarms) == ["vllm"]
    assert list(made.token_alarms["vllm"].alarms) == [
        "primary/TimeToFirstToken/p95",
        "primary/InterTokenLatency/p95",
    ]
    template = template_of(stack)
    first, between = sorted(queries(template), key=lambda text: "inter_token" in text)
    assert "vllm:time_to_first_token_seconds" in first
    assert ") > 0.4 and" in first  # 500 ms less 20 %
    assert ") > 0.05 and" in between
    assert "ModelLatency" not in metrics_of(template)
    assert "OverheadLatency" not in metrics_of(template)
    # What rolls a deployment back are classic alarms, on errors.
    [endpoint] = template.of_type("AWS::SageMaker::Endpoint").values()
    assert len(endpoint["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]) == 1
    assert "Invocation5XXErrors" in metrics_of(template)


def test_what_holds_pages_back_during_deployments_holds_those_on_tokens_back_too(
    chat, stack, template_of
):
    chat(alarms=AlarmOptions(quiet_during_deployments=True))
    composites = template_of(stack).of_type("AWS::CloudWatch::CompositeAlarm")
    held = {
        "tokens" if "on tokens" in each["AlarmDescription"] else "calls": (
            each["ActionsSuppressor"]["Fn::GetAtt"][0],
            each["ActionsSuppressorWaitPeriod"],
            each["ActionsSuppressorExtensionPeriod"],
        )
        for each in composites.values()
        if "ActionsSuppressor" in each
    }
    assert held["tokens"] == held["calls"]
    assert held["tokens"][0] in composites


def test_scaling_is_on_requests_in_flight(chat, stack, template_of):
    chat()
    [policy] = template_of(stack).of_type("AWS::ApplicationAutoScaling::ScalingPolicy").values()
    tracked = policy["TargetTrackingScalingPolicyConfiguration"]
    assert tracked["TargetValue"] == 14  # 20 x 0.7
    assert tracked["PredefinedMetricSpecification"]["PredefinedMetricType"] == (
        "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    )


def test_with_a_whole_call_both_are_watched(chat, stack, template_of):
    chat(latency=LatencyTarget(**CHAT, p99=Duration.seconds(9)))
    template = template_of(stack)
    assert len(queries(template)) == 2
    assert "ModelLatency" in metrics_of(template)


def test_what_is_stated_goes_before_the_plan(chat, stack, template_of):
    made = chat(
        alarms=AlarmOptions(
            tokens=TokenAlarmOptions(
                ttft={"p99": Duration.millis(900)}, itl=None, kv_cache_use=0.95
            )
        )
    )
    assert list(made.token_alarms["vllm"].alarms) == [
        "primary/TimeToFirstToken/p99",
        "primary/KvCacheUse",
    ]


def test_each_server_is_asked_by_its_own_names(chat, stack, template_of):
    made = chat(
        variants=[
            FurtherVariant(
                name="b",
                containers=[served("sglang", "0.5.20-gpu-py312-cu130-ubuntu24.04-sagemaker")],
            )
        ]
    )
    assert {name: next(iter(each.alarms)) for name, each in made.token_alarms.items()} == {
        "vllm": "primary/TimeToFirstToken/p95",
        "sglang": "b/TimeToFirstToken/p95",
    }


def test_a_container_of_your_own_is_asked_once_its_server_is_stated(chat):
    own = Container(image=ContainerImage.from_uri("registry.example.com/scorer:1"))
    assert chat(containers=[own], instance_type="ml.m5.12xlarge").token_alarms == {}
    stated = chat(
        "Stated",
        containers=[own],
        instance_type="ml.m5.12xlarge",
        alarms=AlarmOptions(tokens=TokenAlarmOptions(server="sglang")),
    )
    assert list(stated.token_alarms) == ["sglang"]


def test_the_alarms_tell_those_whom_the_other_alarms_tell(chat, stack, parts, template_of):
    from aws_cdk import aws_cloudwatch_actions as actions
    from aws_cdk import aws_sns as sns

    topic = sns.Topic(stack, "Topic")
    chat(alarms=AlarmOptions(actions=[actions.SnsAction(topic)]))
    composites = template_of(stack).of_type("AWS::CloudWatch::CompositeAlarm").values()
    assert len(composites) == 2
    assert all(each["AlarmActions"] for each in composites)


def test_what_is_no_language_model_has_none(chat, stack, template_of):
    made = chat(latency=LatencyTarget(p99=Duration.millis(200)), tokens=None)
    assert made.token_alarms == {}
    assert queries(template_of(stack)) == []


def test_the_dashboard_draws_tokens(chat):
    widgets = chat().dashboard.body["widgets"]
    assert len([each for each in widgets if each["type"] == "chart"]) == 4
    whole = chat("Whole", latency=LatencyTarget(p99=Duration.millis(200)), tokens=None)
    assert not [each for each in whole.dashboard.body["widgets"] if each["type"] == "chart"]


@pytest.mark.parametrize("published", [True, False])
def test_alarms_on_metrics_that_are_not_published_are_said_to_be_deaf(chat, stack, published):
    chat(
        configuration=ConfigurationOptions(
            metrics=MetricsPublishing(detailed_observability=published)
        )
    )
    assert bool(warnings_in(stack, "tokensNotPublished")) is (not published)
