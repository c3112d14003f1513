"""Alarms on tokens: what they ask, which intervals they take, who is told."""

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
    Endpoint,
    LatencyDashboard,
    TokenAlarmOptions,
    TokenLatencyAlarms,
    VariantAttributes,
)
from low_latency_endpoint.facts.container_metrics import LONGEST_QUERY, data_part, metric_names_in
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


@pytest.fixture
def endpoint(stack):
    return serving(stack)


def test_the_properties_are_those_of_a_promql_alarm(stack, endpoint, template_of):
    alarms = TokenLatencyAlarms(
        stack,
        "Tokens",
        endpoint=endpoint,
        evaluation_interval=Duration.seconds(30),
        pending_period=Duration.minutes(3),
        recovery_period=Duration.minutes(10),
        options=TokenAlarmOptions(ttft=HALF),
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
    alarms = TokenLatencyAlarms(
        stack, "Tokens", endpoint=endpoint, options=TokenAlarmOptions(kv_cache_use=0.95)
    )
    found = template_of(stack).made_of(alarms.alarms)["primary/KvCacheUse"]
    assert found["EvaluationInterval"] == 60
    criteria = found["EvaluationCriteria"]["PromQLCriteria"]
    assert (criteria["PendingPeriod"], criteria["RecoveryPeriod"]) == (120, 300)
    assert "more than 95 %" in found["AlarmDescription"]


def test_an_older_cdk_makes_the_same_template(monkeypatch, template_of):
    def template():
        stack = cdk.Stack(cdk.App(), "S")
        endpoint = serving(stack)
        TokenLatencyAlarms(
            stack,
            "Tokens",
            endpoint=endpoint,
            options=TokenAlarmOptions(ttft=HALF, waiting_requests=8),
        )
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
    alarms = TokenLatencyAlarms(
        stack, "Tokens", endpoint=endpoint, options=TokenAlarmOptions(ttft=HALF)
    )
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
    alarms = TokenLatencyAlarms(
        stack,
        "Tokens",
        endpoint=endpoint,
        options=TokenAlarmOptions(waiting_requests=8, kv_cache_use=0.95),
    )
    waiting = alarms.queries["primary/RequestsWaiting"]
    (value,) = answered(waiting, form, slow=0.0)
    assert value == 9
    assert answered(waiting.replace("> 8", "> 9"), form, slow=0.0) == []
    assert answered(alarms.queries["primary/KvCacheUse"], form, slow=0.0) == [pytest.approx(0.97)]


def test_queries_of_sglang_have_its_names(stack, endpoint):
    alarms = TokenLatencyAlarms(
        stack,
        "Tokens",
        endpoint=endpoint,
        options=TokenAlarmOptions(server="sglang", itl=HALF, waiting_requests=1),
    )
    names = metric_names_in(alarms.queries["primary/RequestsWaiting"])
    assert names == ("sglang:num_queue_reqs", "sglang_num_queue_reqs")
    names = metric_names_in(alarms.queries["primary/InterTokenLatency/p95"])
    assert names[0] == "sglang:inter_token_latency_seconds"


def test_the_longest_query_fits(stack):
    longest = serving(stack, "v" * 63, name="e" * 63)
    alarms = TokenLatencyAlarms(
        stack,
        "Tokens",
        endpoint=longest,
        window=Duration.hours(24),
        options=TokenAlarmOptions(ttft=HALF, itl=HALF),
    )
    assert max(map(len, alarms.queries.values())) < LONGEST_QUERY / 2


def test_names_that_are_tokens_pass_through(stack, template_of):
    name = cdk.CfnParameter(stack, "Name").value_as_string
    endpoint = serving(stack, name=name)
    alarms = TokenLatencyAlarms(
        stack, "Tokens", endpoint=endpoint, options=TokenAlarmOptions(waiting_requests=1)
    )
    found = template_of(stack).made_of(alarms.alarms)["primary/RequestsWaiting"]
    query = found["EvaluationCriteria"]["PromQLCriteria"]["Query"]
    assert {"Ref": "Name"} in query["Fn::Join"][1]


# -------------------------------------------------------------------------- severities, who is told


def test_severities_have_a_composite_each(stack, endpoint, template_of):
    topic = sns.Topic(stack, "Topic")
    alarms = TokenLatencyAlarms(
        stack,
        "Tokens",
        endpoint=endpoint,
        actions=[actions.SnsAction(topic)],
        options=TokenAlarmOptions(
            ttft={
                "Warning": {"p95": Duration.millis(300)},
                "Critical": {"p95": Duration.seconds(1)},
            },
            kv_cache_use=0.9,
        ),
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
    whole = TokenLatencyAlarms(
        stack, "Both", endpoint=endpoint, options=TokenAlarmOptions(waiting_requests=1)
    )
    one = TokenLatencyAlarms(
        stack,
        "One",
        endpoint=endpoint,
        variants=["b"],
        options=TokenAlarmOptions(waiting_requests=1),
    )
    assert set(whole.alarms) == {"a/RequestsWaiting", "b/RequestsWaiting"}
    assert set(one.alarms) == {"b/RequestsWaiting"}
    assert 'variant.name"="b"' in one.queries["b/RequestsWaiting"]


@pytest.mark.parametrize(
    ("region", "warned"),
    [("us-east-1", False), ("me-central-1", True), ("us-gov-west-1", True), (None, False)],
)
def test_a_region_without_promql_is_warned_of_where_it_is_known(region, warned):
    stack = cdk.Stack(cdk.App(), "S", env=cdk.Environment(region=region))
    TokenLatencyAlarms(
        stack, "Tokens", endpoint=serving(stack), options=TokenAlarmOptions(waiting_requests=1)
    )
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
    alarms = TokenLatencyAlarms(
        stack,
        "Tokens",
        endpoint=endpoint,
        options=TokenAlarmOptions(
            ttft={"Critical": {"p95": Duration.millis(500)}}, kv_cache_use=0.95
        ),
    )
    dashboard = LatencyDashboard(stack, "Dashboard", endpoint=endpoint, tokens=alarms.panels)
    charts = [each for each in dashboard.body["widgets"] if each["type"] == "chart"]
    assert len(charts) == 4
    lines = charts[0]["properties"]["plotOptions"]["annotations"]["horizontal"]
    assert [line["label"] for line in lines] == ["alarm: Critical p95 above 500 ms"]
    template = template_of(stack)
    template.only("AWS::CloudWatch::Dashboard")
    assert len(template.queries) == len(alarms.queries) + 3 + 3 + 2 + 1
