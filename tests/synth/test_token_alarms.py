"""Alarms on tokens by PromQL, as a construct and of the pattern."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns

from local_sagemaker.promql.queries import parse
from local_sagemaker.promql.series import Form, SeriesStore
from low_latency_endpoint import (
    AlarmOptions,
    ConfigurationOptions,
    Container,
    ContainerImage,
    Endpoint,
    FurtherVariant,
    LatencyDashboard,
    LatencyTarget,
    MeasuredThroughput,
    MetricsPublishing,
    ModelData,
    TokenAlarmOptions,
    TokenLatencyAlarms,
    TokenTraffic,
    VariantAttributes,
)
from low_latency_endpoint.facts.container_metrics import LONGEST_QUERY, data_part, metric_names_in
from tests.cdk_features import needs_cdk
from tests.refusals import refused

from .conftest import warnings_in

ALARM, COMPOSITE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
HALF = {"p95": Duration.millis(500)}


def serving(stack, *variants, name="chat"):
    """An endpoint made elsewhere, with these variants."""
    attributes = [VariantAttributes(name=each) for each in variants or ("primary",)]
    return Endpoint.from_endpoint_attributes(
        stack, "Endpoint", endpoint_name=name, variants=attributes
    )


def token_alarms_on(stack, endpoint, id="Tokens", *, asked=None, **watched):
    """Alarms on what is stated, asked as is stated."""
    options = TokenAlarmOptions(**watched)
    return TokenLatencyAlarms(stack, id, endpoint=endpoint, options=options, **(asked or {}))


@pytest.fixture
def endpoint(stack):
    return serving(stack)


def test_the_properties_are_those_of_a_promql_alarm(stack, endpoint, template_of):
    alarms = token_alarms_on(
        stack,
        endpoint,
        asked={
            "evaluation_interval": Duration.seconds(30),
            "pending_period": Duration.minutes(3),
            "recovery_period": Duration.minutes(10),
        },
        ttft=HALF,
    )
    found = template_of(stack).made_of(alarms.alarms)["primary/TimeToFirstToken/p95"]
    criteria = found.pop("EvaluationCriteria")["PromQLCriteria"]
    assert (criteria["PendingPeriod"], criteria["RecoveryPeriod"]) == (180, 600)
    assert criteria["Query"] == alarms.queries["primary/TimeToFirstToken/p95"]
    assert found.pop("EvaluationInterval") == 30
    assert set(found) == {"AlarmDescription"}  # nothing of a metric alarm's
    assert (
        "p95 of the time to first token in the server is above 500 ms" in found["AlarmDescription"]
    )
    assert "low-latency diagnose chat" in found["AlarmDescription"]


def test_by_default_it_is_judged_each_minute(stack, endpoint, template_of):
    alarms = token_alarms_on(stack, endpoint, kv_cache_use=0.95)
    found = template_of(stack).made_of(alarms.alarms)["primary/KvCacheUse"]
    assert found["EvaluationInterval"] == 60
    criteria = found["EvaluationCriteria"]["PromQLCriteria"]
    assert (criteria["PendingPeriod"], criteria["RecoveryPeriod"]) == (120, 300)
    assert "more than 95 %" in found["AlarmDescription"]


@needs_cdk("aws_cloudwatch.PromQLAlarm")
def test_an_older_cdk_makes_the_same_template(monkeypatch, template_of):
    def template():
        stack = cdk.Stack(cdk.App(), "S")
        endpoint = serving(stack)
        token_alarms_on(stack, endpoint, ttft=HALF, waiting_requests=8)
        return template_of(stack)["Resources"]

    newer = template()
    monkeypatch.delattr(cloudwatch, "PromQLAlarm")
    assert template() == newer


# ------------------------------------------------------------------------------------- the queries


def page(slow: float, requests: int = 100) -> str:
    """What vLLM prints: `requests` first tokens, a share of which took 0.5 to 1 s, and gauges."""
    late = round(requests * slow)
    return f"""
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{{le="0.25"}} {requests - late}
vllm:time_to_first_token_seconds_bucket{{le="0.5"}} {requests - late}
vllm:time_to_first_token_seconds_bucket{{le="1.0"}} {requests}
vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {requests}
vllm:time_to_first_token_seconds_sum {requests * 0.2}
vllm:time_to_first_token_seconds_count {requests}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting 9
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc 0.97
"""


FORMS = [
    Form(names, histograms)
    for names in ("as-scraped", "underscores")
    for histograms in ("exponential", "explicit")
]
LABELS = {"aws.sagemaker.endpoint.name": "chat", "aws.sagemaker.variant.name": "primary"}


def answered(
    query: str, form: Form, slow: float, requests: int = 100, **labels: str
) -> list[float]:
    """What a query finds when a server has told nothing, and then all of its requests."""
    store = SeriesStore()
    for number in range(5):
        text = page(slow, 0 if number < 2 else requests)
        store.ingest(text, {**LABELS, **labels}, number * 60.0, form)
    return list(parse(query).evaluate(store, 240.0).values())


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.names}-{form.histograms}")
def test_in_each_form_that_aws_may_have_the_alarm_finds_slow_first_tokens(stack, endpoint, form):
    alarms = token_alarms_on(stack, endpoint, ttft=HALF)
    query = alarms.queries["primary/TimeToFirstToken/p95"]
    # A tenth above 500 ms: so is the 95th percentile. A hundredth: it is not.
    (value,) = answered(query, form, slow=0.10)
    assert 0.5 < value <= 1.0
    assert answered(query, form, slow=0.01) == []
    assert answered(query, form, slow=0.10, requests=10) == []  # too few to say
    other = {"aws.sagemaker.endpoint.name": "another"}
    assert answered(query, form, slow=0.10, **other) == []
    assert answered(query, form, slow=0.10, **{"aws.sagemaker.variant.name": "b"}) == []
    # Without the threshold there is data either way: what verify asks.
    (healthy,) = answered(data_part(query), form, slow=0.01)
    assert 0 < healthy < 0.5


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.names}-{form.histograms}")
def test_in_each_form_the_alarms_on_gauges_find_the_fullest_instance(stack, endpoint, form):
    alarms = token_alarms_on(stack, endpoint, waiting_requests=8, kv_cache_use=0.95)
    waiting = alarms.queries["primary/RequestsWaiting"]
    (value,) = answered(waiting, form, slow=0.0)
    assert value == 9
    assert answered(waiting.replace("> 8", "> 9"), form, slow=0.0) == []
    assert answered(alarms.queries["primary/KvCacheUse"], form, slow=0.0) == [pytest.approx(0.97)]


def test_queries_of_sglang_have_its_names(stack, endpoint):
    alarms = token_alarms_on(stack, endpoint, server="sglang", itl=HALF, waiting_requests=1)
    names = metric_names_in(alarms.queries["primary/RequestsWaiting"])
    assert names == ("sglang:num_queue_reqs", "sglang_num_queue_reqs")
    names = metric_names_in(alarms.queries["primary/InterTokenLatency/p95"])
    assert names[0] == "sglang:inter_token_latency_seconds"


def test_the_longest_query_fits(stack):
    longest = serving(stack, "v" * 63, name="e" * 63)
    alarms = token_alarms_on(
        stack, longest, asked={"window": Duration.hours(24)}, ttft=HALF, itl=HALF
    )
    assert max(map(len, alarms.queries.values())) < LONGEST_QUERY / 2


def test_names_that_are_tokens_pass_through(stack, template_of):
    name = cdk.CfnParameter(stack, "Name").value_as_string
    endpoint = serving(stack, name=name)
    alarms = token_alarms_on(stack, endpoint, waiting_requests=1)
    found = template_of(stack).made_of(alarms.alarms)["primary/RequestsWaiting"]
    query = found["EvaluationCriteria"]["PromQLCriteria"]["Query"]
    assert {"Ref": "Name"} in query["Fn::Join"][1]


# -------------------------------------------------------------------------- severities, who is told


def test_severities_have_a_composite_each(stack, endpoint, template_of):
    topic = sns.Topic(stack, "Topic")
    alarms = token_alarms_on(
        stack,
        endpoint,
        asked={"actions": [actions.SnsAction(topic)]},
        ttft={"Warning": {"p95": Duration.millis(300)}, "Critical": {"p95": Duration.seconds(1)}},
        kv_cache_use=0.9,
    )
    assert set(alarms.alarms) == {
        "primary/TimeToFirstToken/p95/Warning",
        "primary/TimeToFirstToken/p95/Critical",
        "primary/KvCacheUse",
    }
    assert set(alarms.composites) == {"Warning", "Critical", ""}
    template = template_of(stack)
    for composite in template.of_type(COMPOSITE).values():
        assert composite["AlarmActions"] == [{"Ref": template.only_id("AWS::SNS::Topic")}]
    assert all("AlarmActions" not in each for each in template.of_type(ALARM).values())


def test_several_variants_have_alarms_each_unless_some_are_named(stack):
    endpoint = serving(stack, "a", "b")
    whole = token_alarms_on(stack, endpoint, "Both", waiting_requests=1)
    one = token_alarms_on(stack, endpoint, "One", asked={"variants": ["b"]}, waiting_requests=1)
    assert set(whole.alarms) == {"a/RequestsWaiting", "b/RequestsWaiting"}
    assert set(one.alarms) == {"b/RequestsWaiting"}
    assert 'variant.name"="b"' in one.queries["b/RequestsWaiting"]


@pytest.mark.parametrize(
    ("region", "warned"),
    [("us-east-1", False), ("me-central-1", True), ("us-gov-west-1", True), (None, False)],
)
def test_a_region_without_promql_is_warned_of_where_it_is_known(region, warned):
    stack = cdk.Stack(cdk.App(), "S", env=cdk.Environment(region=region))
    token_alarms_on(stack, serving(stack), waiting_requests=1)
    assert bool(warnings_in(stack, "queriesNotInRegion")) is warned
    assert warnings_in(stack, "alarmsNotifyNobody")


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"evaluation_interval": Duration.seconds(45)}, "LLE990"),
        ({"evaluation_interval": Duration.minutes(61)}, "LLE990"),
        ({"evaluation_interval": Duration.millis(1500)}, "LLE990"),
        ({"ttft": {"average": Duration.seconds(1)}}, "LLE992"),
        ({"ttft": {"p100": Duration.seconds(1)}}, "LLE992"),
        ({"ttft": {"p95": Duration.millis(0)}}, "LLE701"),
        ({"ttft": None}, "LLE997"),
        ({"variants": ["other"]}, "LLE622"),
    ],
)
def test_refusals(stack, endpoint, given, code):
    with refused(code):
        own = {
            name: given.pop(name) for name in ("evaluation_interval", "variants") if name in given
        }
        options = TokenAlarmOptions(**{"ttft": HALF, **given})
        TokenLatencyAlarms(stack, "Tokens", endpoint=endpoint, options=options, **own)


def test_the_dashboard_draws_them(stack, endpoint, template_of):
    alarms = token_alarms_on(
        stack, endpoint, ttft={"Critical": {"p95": Duration.millis(500)}}, kv_cache_use=0.95
    )
    dashboard = LatencyDashboard(stack, "Dashboard", endpoint=endpoint, tokens=alarms.panels)
    charts = [each for each in dashboard.body["widgets"] if each["type"] == "chart"]
    assert len(charts) == 4
    lines = charts[0]["properties"]["plotOptions"]["annotations"]["horizontal"]
    assert [line["label"] for line in lines] == ["alarm: Critical p95 above 500 ms"]
    template = template_of(stack)
    template.only("AWS::CloudWatch::Dashboard")
    assert len(template.queries) == len(alarms.queries) + 3 + 3 + 2 + 1


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
