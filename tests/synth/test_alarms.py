"""Alarms on latency, errors and saturation, of pools of types too; what they cost and whom they tell."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import CfnParameter, Duration
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns

from low_latency_endpoint import AlarmTopic, InstancePool, InstanceType, LatencyDashboard
from low_latency_endpoint.settings import load_settings, plan_endpoint, planned_variants
from low_latency_endpoint.settings.stack_cost import billed_alarms
from tools.fuzzing.agreement import synthesised, text_of
from tools.fuzzing.cases import bases

from .conftest import alarms_on, name_at_synth


@pytest.fixture
def endpoint(stack, parts):
    return parts.endpoint(stack)


@pytest.mark.parametrize(
    ("threshold", "microseconds"),
    [(Duration.millis(200), 200_000), (Duration.seconds(2), 2_000_000), (Duration.millis(1), 1000)],
)
def test_model_latency_in_microseconds(stack, endpoint, template_of, threshold, microseconds):
    alarms = alarms_on(stack, endpoint, model_latency={"p99": threshold})
    alarm = template_of(stack).made_of(alarms.alarms)["primary/ModelLatency/p99"]
    assert alarm["Threshold"] == microseconds
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/SageMaker", "ModelLatency")
    assert alarm["ExtendedStatistic"] == "p99"
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["Period"] == 60
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (2, 3)
    assert {item["Name"]: item["Value"] for item in alarm["Dimensions"]} == {
        "EndpointName": name_at_synth(endpoint),
        "VariantName": "primary",
    }


def test_overhead_latency_as_an_average(stack, endpoint, template_of):
    alarms = alarms_on(stack, endpoint, overhead_latency={"Average": Duration.millis(20)})
    alarm = template_of(stack).made_of(alarms.alarms)["primary/OverheadLatency/Average"]
    assert alarm["Threshold"] == 20_000
    assert alarm["Statistic"] == "Average"
    assert alarm["MetricName"] == "OverheadLatency"


def test_the_error_rate_is_a_share_of_enough_failures(stack, endpoint, template_of):
    alarms = alarms_on(stack, endpoint, error_rate=0.02, minimum_failures=5)
    alarm = template_of(stack).made_of(alarms.alarms)["primary/Invocation5XXErrors/Rate"]
    assert alarm["Threshold"] == 0.02
    assert alarm["TreatMissingData"] == "notBreaching"
    by_id = {metric["Id"]: metric for metric in alarm["Metrics"]}
    (result,) = [metric for metric in alarm["Metrics"] if metric.get("ReturnData") is not False]
    assert result["Expression"] == "IF(errors >= 5, errors / invocations, 0)"
    for part, name in (("errors", "Invocation5XXErrors"), ("invocations", "Invocations")):
        assert by_id[part]["MetricStat"]["Metric"]["MetricName"] == name
        assert by_id[part]["MetricStat"]["Stat"] == "Sum"


def test_the_new_fleet_alone(stack, endpoint, template_of):
    alarms = alarms_on(
        stack,
        endpoint,
        "Rollback",
        new_fleet_only=True,
        model_latency={"p99": Duration.millis(200)},
        error_rate=0.01,
    )
    configuration = stack.resolve(endpoint.configuration.endpoint_config_name)
    found = template_of(stack).made_of(alarms.alarms)
    assert configuration["Fn::GetAtt"][1] == "EndpointConfigName"
    latency = found["primary/ModelLatency/p99"]["Dimensions"]
    assert {"Name": "EndpointConfigName", "Value": configuration} in latency
    metrics = found["primary/Invocation5XXErrors/Rate"]["Metrics"]
    stats = [metric["MetricStat"] for metric in metrics if "MetricStat" in metric]
    assert len(stats) == 2
    for stat in stats:
        dimensions = stat["Metric"]["Dimensions"]
        assert {"Name": "EndpointConfigName", "Value": configuration} in dimensions
        # The endpoint's name as text, not a reference: the endpoint is made after these alarms.
        assert {"Name": "EndpointName", "Value": name_at_synth(endpoint)} in dimensions


def test_a_new_fleet_has_no_band_that_it_usually_keeps(stack, endpoint, template_of):
    band = {"Invocations": "Sum"}
    assert alarms_on(stack, endpoint, "Rollback", new_fleet_only=True, anomalies=band).alarms == {}
    assert template_of(stack).of_type("AWS::CloudWatch::Alarm") == {}


def test_every_variant_is_watched(stack, parts, template_of):
    variants = [parts.variant(stack), parts.variant(stack, name="challenger")]
    endpoint = parts.endpoint(stack, variants=variants)
    alarms = alarms_on(
        stack, endpoint, model_latency={"p50": Duration.millis(50), "p99": Duration.millis(200)}
    )
    assert set(alarms.alarms) == {
        f"{variant}/ModelLatency/{statistic}"
        for variant in ("primary", "challenger")
        for statistic in ("p50", "p99")
    }
    watched = [
        (item["Value"], alarm["ExtendedStatistic"])
        for alarm in template_of(stack).made_of(alarms.alarms).values()
        for item in alarm["Dimensions"]
        if item["Name"] == "VariantName"
    ]
    assert len(set(watched)) == 4


def test_somebody_is_told(stack, endpoint, template_of):
    topic = sns.Topic.from_topic_arn(stack, "Pages", "arn:aws:sns:us-east-1:123456789012:pages")
    alarms_on(
        stack,
        endpoint,
        model_latency={"p99": Duration.millis(200)},
        actions=[actions.SnsAction(topic)],
    )
    resources = template_of(stack)["Resources"].values()
    told = [
        resource
        for resource in resources
        if topic.topic_arn in resource.get("Properties", {}).get("AlarmActions", [])
    ]
    assert len(told) == 1


def test_periods_of_the_users_own(stack, endpoint, template_of):
    alarms = alarms_on(
        stack,
        endpoint,
        model_latency={"p99": Duration.millis(200)},
        period=Duration.minutes(5),
        evaluation_periods=1,
        datapoints_to_alarm=1,
    )
    alarm = template_of(stack).made_of(alarms.alarms)["primary/ModelLatency/p99"]
    assert alarm["Period"] == 300
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (1, 1)


def composites(template):
    return [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::CloudWatch::CompositeAlarm"
    ]


def test_nothing_suppresses_pages_by_default(stack, endpoint, template_of):
    alarms_on(stack, endpoint, model_latency={"p99": Duration.millis(200)})
    template = template_of(stack)
    (composite,) = composites(template)
    assert not [name for name in composite if name.startswith("ActionsSuppressor")]
    assert "Quiet" not in composite["AlarmDescription"]
    (alarm,) = [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    ]
    assert alarm["MetricName"] == "ModelLatency"


@pytest.mark.parametrize(
    ("variants", "many", "of"),
    [
        # An hour's worth of minutes, each of which covers 12 at most, shared by the variants;
        # CloudWatch allows a day.
        (1, 60, 12 * 60),
        (2, 60, 24 * 60),
        (3, 40, 24 * 60),
        (10, 12, 24 * 60),
    ],
)
def test_pages_are_held_back_for_an_hour_at_most(stack, parts, template_of, variants, many, of):
    endpoint = parts.endpoint(
        stack, variants=[parts.variant(stack, name=f"v{number}") for number in range(variants)]
    )
    alarms_on(
        stack, endpoint, model_latency={"p99": Duration.millis(200)}, quiet_during_deployments=True
    )
    template = template_of(stack)
    quiet, composite = sorted(composites(template), key=lambda each: len(each))
    assert composite["ActionsSuppressor"]["Fn::GetAtt"][0].startswith("AlarmsQuiet")
    assert composite["ActionsSuppressorWaitPeriod"] == 60
    assert composite["ActionsSuppressorExtensionPeriod"] == 60
    assert f"for {many} such minutes at most" in composite["AlarmDescription"]
    found = {
        logical_id: resource["Properties"]
        for logical_id, resource in template["Resources"].items()
        if "Metrics" in resource.get("Properties", {})
    }
    periods = sorted(
        (each["DatapointsToAlarm"], each["EvaluationPeriods"]) for each in found.values()
    )
    assert periods == sorted([(1, 10)] * variants + [(many, of)] * variants)
    for each in found.values():
        (stat, other) = [
            metric["MetricStat"] for metric in each["Metrics"] if "MetricStat" in metric
        ]
        assert (stat["Stat"], other["Stat"], stat["Period"], other["Period"]) == (
            "Sum",
            "Sum",
            60,
            60,
        )
        assert each["TreatMissingData"] == "notBreaching"
    # They watch the new configuration before it takes requests.
    (made_after,) = [
        resource["DependsOn"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::SageMaker::Endpoint"
    ]
    assert set(found) <= set(made_after)
    # Any that is deploying, and none for too long.
    names = [part["Ref"] for part in quiet["AlarmRule"]["Fn::Join"][1] if isinstance(part, dict)]
    assert sorted(names) == sorted(found)
    assert [("TooLong" in name) for name in names] == [False] * variants + [True] * variants
    text = "".join(
        part if isinstance(part, str) else "x" for part in quiet["AlarmRule"]["Fn::Join"][1]
    )
    assert text.count("NOT") == 1
    assert " AND (NOT (" in text


G5, M5 = "ml.g5.12xlarge", "ml.m5.2xlarge"  # 48 vCPUs and 4 GPUs; 8 vCPUs


@pytest.fixture
def pooled(stack, parts):
    """An endpoint whose variant may run on these types, tried in this order."""

    def make(*types):
        variant = parts.variant(
            stack,
            instance_pools=[
                InstancePool(InstanceType(name), number) for number, name in enumerate(types, 1)
            ],
        )
        return parts.endpoint(stack, variants=[variant])

    return make


def watched(stack, template_of, alarms):
    """Key -> threshold and instance type of the metric."""
    found = {}
    for key, alarm in template_of(stack).made_of(alarms.alarms).items():
        types = [d["Value"] for d in alarm["Dimensions"] if d["Name"] == "InstanceType"]
        found[key] = (alarm["Threshold"], *types)
    return found


def test_the_whole_and_each_type_have_thresholds(stack, pooled, template_of):
    """The whole is watched too: a series by type may not exist, and then its alarm stays silent.

    cloud-custodian/cloud-custodian#11078 found InstanceType only together with AvailabilityZone.
    """
    alarms = alarms_on(
        stack, pooled(G5, M5), cpu_utilization=85, memory_utilization=90, gpu_utilization=80
    )
    assert watched(stack, template_of, alarms) == {
        "primary/CPUUtilization/Average": (0.85 * 800,),
        f"primary/CPUUtilization/Average/{G5}": (0.85 * 4800, G5),
        f"primary/CPUUtilization/Average/{M5}": (0.85 * 800, M5),
        "primary/MemoryUtilization/Average": (90,),
        f"primary/MemoryUtilization/Average/{G5}": (90, G5),
        f"primary/MemoryUtilization/Average/{M5}": (90, M5),
        "primary/GPUUtilization/Average": (0.8 * 400,),
        f"primary/GPUUtilization/Average/{G5}": (0.8 * 400, G5),
    }


def test_latency_is_watched_as_a_whole_and_by_type(stack, pooled, template_of):
    alarms = alarms_on(stack, pooled(G5, M5), model_latency={"p99": Duration.millis(200)})
    assert watched(stack, template_of, alarms) == {
        "primary/ModelLatency/p99": (200_000,),
        f"primary/ModelLatency/p99/{G5}": (200_000, G5),
        f"primary/ModelLatency/p99/{M5}": (200_000, M5),
    }


def test_severities_stay_apart(stack, pooled):
    alarms = alarms_on(
        stack, pooled(G5, M5), model_latency={"Warning": {"p99": Duration.millis(100)}}
    )
    assert set(alarms.composites) == {"Warning"}
    assert f"primary/ModelLatency/p99/{M5}/Warning" in alarms.alarms


def test_the_page_names_every_type(stack, pooled, template_of):
    alarms_on(stack, pooled(G5, M5), cpu_utilization=85)
    composite = template_of(stack).only("AWS::CloudWatch::CompositeAlarm")
    assert str(composite["AlarmRule"]).count("'Ref'") == 3


def test_rollback_alarms_watch_the_new_fleet_as_a_whole(stack, pooled, template_of):
    alarms = alarms_on(
        stack, pooled(G5, M5), new_fleet_only=True, model_latency={"p99": Duration.millis(200)}
    )
    assert watched(stack, template_of, alarms) == {"primary/ModelLatency/p99": (200_000,)}


def test_one_pool_is_watched_like_a_type(stack, pooled, template_of):
    alarms = alarms_on(stack, pooled(M5), cpu_utilization=85)
    assert watched(stack, template_of, alarms) == {"primary/CPUUtilization/Average": (680,)}


def test_a_type_that_is_a_parameter_leaves_one_alarm(stack, pooled):
    unknown = CfnParameter(stack, "Type").value_as_string
    alarms = alarms_on(stack, pooled(unknown, M5), memory_utilization=90)
    assert list(alarms.alarms) == ["primary/MemoryUtilization/Average"]


def graphs_of(body):
    return {
        widget["properties"]["title"]: widget["properties"]
        for widget in body["widgets"]
        if widget["type"] == "metric"
    }


def test_the_dashboard_draws_each_type(stack, pooled):
    body = LatencyDashboard(
        stack, "Dashboard", endpoint=pooled(G5, M5), model_latency={"p99": Duration.millis(160)}
    ).body
    graphs = graphs_of(body)
    formulas = [
        row[0]["expression"]
        for row in graphs["Utilization of the instance"]["metrics"]
        if len(row) == 1
    ]
    assert formulas == ["cpu0_raw / 48", "gpu0_raw / 4", "cpu1_raw / 8"]
    latency = graphs["How fast is each instance type?"]
    assert [row[7] for row in latency["metrics"] if len(row) > 1] == [G5, M5]
    assert latency["annotations"]["horizontal"][0]["value"] == 160
    shares = graphs["Which instance types serve?"]
    assert [row[7] for row in shares["metrics"]] == [G5, M5]
    assert shares["stacked"] is True


def test_one_type_has_no_such_graphs(stack, parts):
    body = LatencyDashboard(stack, "Dashboard", endpoint=parts.endpoint(stack)).body
    assert "How fast is each instance type?" not in graphs_of(body)


ALL_ALARMS = {
    "client_error_rate": 0.05,
    "model_error_rate": 0.01,
    "slow_requests": {"threshold": "200ms"},
    "service_level_objective": 0.99,
    "zone_imbalance": 1.5,
    "expect_traffic": True,
    "anomalies": {"Invocations": "Sum"},
    "period": "5m",
    "quiet_during_deployments": True,
}


def metrics_of(resource: dict[str, Any]) -> int:
    """Metrics that CloudWatch bills an alarm for: those read, not the expression over them.

    But for a band that CloudWatch learns, each edge of which counts.
    """
    metrics = resource["Properties"].get("Metrics", ())
    bands = sum("ANOMALY_DETECTION_BAND" in each.get("Expression", "") for each in metrics)
    return sum("MetricStat" in each for each in metrics) + 2 * bands or 1


def cases() -> list[dict[str, Any]]:
    shipped, *others = bases()[:3]
    watchful, fixed = bases()[0], bases()[0]
    for endpoint in watchful["endpoints"].values():
        endpoint["alarms"] = {**endpoint.get("alarms", {}), **ALL_ALARMS}
        endpoint["deployment"] = {"rolling": {"batch_percent": 20}, "rollback_on_alarms": True}
    for endpoint in fixed["endpoints"].values():
        endpoint["scaling"] = {"enabled": False}
        endpoint["alarms"] = {"model_latency": {"p50": "100ms", "p99": "200ms"}}
    stepped = [copy.deepcopy(bases()[0]) for _ in range(2)]
    for values, metric in zip(stepped, ("concurrency", "invocations"), strict=True):
        for endpoint in values["endpoints"].values():
            steps = {"metric": metric, "adds": [{"requests": 900, "add": 2}]}
            endpoint["scaling"] = {**endpoint.get("scaling", {}), "steps": steps}
    tested, shadowed = copy.deepcopy(watchful), copy.deepcopy(bases()[0])
    for endpoint in tested["endpoints"].values():
        endpoint["deployment"] = {"canary": {"size_percent": 10, "wait": "5m"}}
        endpoint["variants"] = {"b": {"routing": "random"}, "c": {"scaling": {"enabled": False}}}
        endpoint["alarms"]["quiet_during_deployments"] = True
        endpoint["alarms"].pop("capacity_at_maximum", None)
    for endpoint in shadowed["endpoints"].values():
        endpoint["shadow"] = {"name": "b", "containers": copy.deepcopy(endpoint["containers"])}
    hub = copy.deepcopy(shipped)
    for endpoint in hub["endpoints"].values():
        del endpoint["containers"]
        endpoint["hugging_face"] = {"model": "BAAI/bge-small-en-v1.5"}
        other = {"model": "BAAI/bge-small-en-v1.5", "bucket": "our-models"}
        endpoint["shadow"] = {"name": "b", "hugging_face": other}
    return [hub, shipped, *others, watchful, fixed, *stepped, tested, shadowed, *of_tokens()]


def of_tokens() -> list[dict[str, Any]]:
    """Language models: the plan's alarms on tokens, stated ones, and those of several variants."""
    vllm, sglang = (
        [{"image": {"dlc": {"repository": name, "tag": "0.30.0-cpu"}}}]
        for name in ("vllm", "sglang")
    )
    own = [{"image": {"uri": "registry.example.com/scorer:1"}}]
    every = {"ttft": {"p99": "1s", "p50": "100ms"}, "waiting_requests": 2, "kv_cache_use": 0.9}
    changes: list[dict[str, Any]] = [
        {"containers": vllm},
        {"containers": vllm, "alarms": {"tokens": every}},
        {"containers": vllm, "alarms": {"tokens": {"ttft": {}, "itl": {}}}},  # none
        {"containers": vllm, "variants": {"b": {"weight": 1}}},
        {"containers": vllm, "variants": {"b": {"containers": sglang}}},
        {"containers": vllm, "shadow": {"name": "b"}},
        {"containers": own},  # nobody knows its metrics
        {"containers": own, "alarms": {"tokens": {"server": "vllm"}}},
    ]
    made = []
    for change in changes:
        values = copy.deepcopy(bases()[0])
        for endpoint in values["endpoints"].values():
            endpoint |= {
                "latency": {"ttft_p95": "500ms", "itl_p50": "30ms", "itl_p95": "50ms"},
                "tokens": {"input": 512, "output": 128},
                **copy.deepcopy(change),
            }
        made.append(values)
    return made


@pytest.mark.parametrize("values", cases(), ids=lambda values: ",".join(values["endpoints"]))
def test_alarms(folder: Path, values: dict[str, Any]) -> None:
    path = folder / "alarms.yaml"
    path.write_text(text_of(values), encoding="utf-8")
    settings = load_settings(path)
    resources = synthesised(settings)["Resources"].values()
    of = {
        kind: [each for each in resources if each["Type"] == f"AWS::CloudWatch::{kind}"]
        for kind in ("Alarm", "CompositeAlarm")
    }
    plans = {key: plan_endpoint(settings, key) for key in settings.endpoints}
    billed = [billed_alarms(settings, key, plan) for key, plan in plans.items()]
    # Target tracking makes two alarms of its own, which are in no template.
    tracking = sum(2 for each in planned_variants(settings) if each.plan.scaling)
    assert sum(each.composites for each in billed) == len(of["CompositeAlarm"]) > 0
    assert sum(each.metrics + each.high_resolution for each in billed) - tracking == sum(
        map(metrics_of, of["Alarm"])
    )


def test_cloudwatch_of_this_account_may_publish_and_use_the_key(stack, template_of):
    AlarmTopic(stack, "OnCall", emails=["on-call@example.com"])
    template = template_of(stack)

    key = template.only("AWS::KMS::Key")
    assert key["EnableKeyRotation"] is True
    by_cloudwatch = [
        statement
        for statement in key["KeyPolicy"]["Statement"]
        if statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    ]
    assert [statement["Action"] for statement in by_cloudwatch] == [
        ["kms:Decrypt", "kms:GenerateDataKey*"]
    ]
    assert "aws:SourceAccount" in by_cloudwatch[0]["Condition"]["StringEquals"]

    topic = template.only("AWS::SNS::Topic")
    assert topic["KmsMasterKeyId"]
    policy = template.only("AWS::SNS::TopicPolicy")
    statements = policy["PolicyDocument"]["Statement"]
    assert {statement["Action"] for statement in statements} == {"sns:Publish"}
    denied = [statement for statement in statements if statement["Effect"] == "Deny"]
    assert denied[0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    allowed = [statement for statement in statements if statement["Effect"] == "Allow"]
    assert allowed[0]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert "ArnLike" in allowed[0]["Condition"]

    subscription = template.only("AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "on-call@example.com")


def test_a_key_that_is_passed_is_used_as_it_is(stack, template_of):
    from aws_cdk import aws_kms as kms

    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    )
    AlarmTopic(stack, "OnCall", encryption_key=key)
    template = template_of(stack)
    assert not template.of_type("AWS::KMS::Key")
    topic = template.only("AWS::SNS::Topic")
    assert topic["KmsMasterKeyId"].startswith("arn:aws:kms:")
