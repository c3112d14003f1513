"""LLV504 against a local AWS that scrapes a language model: no data is OK to CloudWatch, not here."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hosting_site import Site

from local_sagemaker import LocalAws, RuntimeOptions, delete_stack, deploy_template
from local_sagemaker.model_servers import LanguageModelServer
from low_latency_endpoint.account import clock
from low_latency_endpoint.facts.container_metrics import (
    above,
    container_metric,
    fullest_query,
    percentile_query,
)
from low_latency_endpoint.operate.checking.checks import Result, Status
from low_latency_endpoint.operate.verify import Machine, alarm_checks, run_verification

STACK = "Tokens"
OF = {"endpoint": "chat", "variant": "primary"}
TTFT = above(percentile_query(container_metric("vllm", "time_to_first_token"), 0.95, **OF), 60)
WAITING = above(fullest_query(container_metric("vllm", "requests_waiting"), **OF), 100)
OUTSIDE = Machine(
    resolve=lambda name: [], own_address=lambda: None, client_zone=lambda: None, tls_names=None
)

Look = Callable[..., dict[str, Result]]


def alarm(query: str) -> dict[str, Any]:
    criteria = {"PromQLCriteria": {"Query": query}}
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {"EvaluationCriteria": criteria, "EvaluationInterval": 60},
    }


@pytest.fixture(params=["as-scraped exponential", "underscores explicit"], ids=["c", "b"])
def aws(request: pytest.FixtureRequest) -> Iterator[LocalAws]:
    """A local AWS that has the endpoint `chat` on a clock that stands still."""
    names, histograms = request.param.split()
    options = RuntimeOptions(clock_speed=0.0, metric_names=names, metric_histograms=histograms)
    model = LanguageModelServer(gap_seconds=0.001, seconds_per_prompt_token=0.0, output_tokens=4)
    with LocalAws.in_process(model_servers={"model": model}, runtime=options) as running:
        running.reset()
        site = Site(running)
        site.endpoint({"InstanceType": "ml.g5.xlarge"}, name="chat")
        yield running
        delete_stack(running, STACK)
        running.reset()


@pytest.fixture
def look(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Deploy alarms on these queries, and give what LLV504 says of each."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
    monkeypatch.setenv(clock.TOKEN_VARIABLE, aws.credentials.token)

    def verified(**queries: str) -> dict[str, Result]:
        if queries:
            template = {"Resources": {name: alarm(query) for name, query in queries.items()}}
            deploy_template(aws, template, STACK)
        report = run_verification(STACK, aws.client, "us-east-1", machine=OUTSIDE)
        return {each.subject: each for each in report.results if each.id == "LLV504"}

    return verified


def enrich(aws: LocalAws) -> None:
    aws.client("observabilityadmin").start_telemetry_enrichment()
    aws.client("cloudwatch").start_otel_enrichment()


def chat(aws: LocalAws) -> None:
    body = {"messages": [{"role": "user", "content": "count to four"}]}
    aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="chat", Body=json.dumps(body).encode(), ContentType="application/json"
    )["Body"].read()


def test_alarms_with_data_pass_in_either_form(aws: LocalAws, look: Look) -> None:
    enrich(aws)
    aws.advance(60)
    chat(aws)
    aws.advance(60)
    found = look(Ttft=TTFT, Waiting=WAITING)
    assert {name: each.status for name, each in found.items()} == {
        "Ttft": Status.PASS,
        "Waiting": Status.PASS,
    }
    assert found["Waiting"].evidence == "finds 0 now"


def test_without_requests_the_metric_is_there_and_nothing_was_measured(
    aws: LocalAws, look: Look
) -> None:
    enrich(aws)
    aws.advance(180)
    found = look(Ttft=TTFT, Waiting=WAITING)
    assert (found["Ttft"].status, found["Waiting"].status) == (Status.WARN, Status.PASS)
    assert "no recent data" in found["Ttft"].evidence
    assert "Send requests" in found["Ttft"].fix


@pytest.mark.parametrize(
    ("seconds", "query", "status", "said"),
    [
        (
            120,
            WAITING.replace("num_requests_waiting", "requests_waiting"),
            Status.FAIL,
            ("has no metric of vllm:requests_waiting, vllm_requests_waiting", "num_requests_wait"),
        ),
        (120, WAITING.replace('"chat"', '"chit"'), Status.FAIL, ("of chat, not of chit",)),
        (0, WAITING, Status.WARN, ("OTel enrichment runs",)),  # before the first scrape
    ],
)
def test_a_query_that_finds_nothing_is_told_why(
    aws: LocalAws, look: Look, seconds: int, query: str, status: Status, said: tuple[str, ...]
) -> None:
    enrich(aws)
    aws.advance(seconds)
    found = look(Alarm=query)["Alarm"]
    assert found.status is status
    assert all(each in found.evidence for each in said)
    assert found.source.endswith("/alarm-promql.html")
    # CloudWatch itself sees nothing wrong with it.
    (state,) = aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert state["StateValue"] == "OK"


def test_all_alarms_are_looked_at_at_one_moment(
    aws: LocalAws, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the account is asked once for the names that it has, however long each query takes."""
    enrich(aws)
    aws.advance(120)
    begun, asked = alarm_checks.account_now(), []
    moments = (begun + timedelta(minutes=number) for number in itertools.count())
    real = alarm_checks.label_values

    def values(*given: Any, **named: Any) -> list[str]:
        asked.append(given[1:])
        return real(*given, **named)

    monkeypatch.setattr(alarm_checks, "account_now", lambda: next(moments))
    monkeypatch.setattr(alarm_checks, "label_values", values)
    wrong = WAITING.replace("num_requests_waiting", "requests_waiting")
    found = look(One=wrong, Two=wrong.replace("requests_waiting", "waiting"))
    assert {each.status for each in found.values()} == {Status.FAIL}
    assert len(asked) == 2
    assert len(set(asked)) == 1


def test_missing_enrichment_is_told_from_a_wrong_name(aws: LocalAws, look: Look) -> None:
    aws.advance(120)
    found = look(Waiting=WAITING)["Waiting"]
    assert found.status is Status.FAIL
    assert "OTel enrichment is stopped" in found.evidence
    first, second = "start-telemetry-enrichment", "start-otel-enrichment"
    assert 0 < found.fix.index(first) < found.fix.index(second)  # CloudWatch takes no other order
    assert "bills" in found.fix
    enrich(aws)
    assert look()["Waiting"].status is Status.PASS


def test_data_of_an_hour_ago_is_no_data_now(aws: LocalAws, look: Look) -> None:
    enrich(aws)
    aws.advance(120)
    look(Waiting=WAITING)
    aws.client("sagemaker").delete_endpoint(EndpointName="chat")
    aws.advance(3600)
    found = look()["Waiting"]
    assert found.status is Status.WARN
    assert "in the last 3 hours, and has none now" in found.evidence


def test_who_may_not_query_is_told_what_is_needed(
    aws: LocalAws, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.httpsession import URLLib3Session

    look(Waiting=WAITING)
    real = URLLib3Session.send

    def send(self: Any, request: Any) -> Any:
        answer = real(self, request)
        if "/api/v1/" in request.url:
            answer.status_code = 403
        return answer

    monkeypatch.setattr(URLLib3Session, "send", send)
    found = look()["Waiting"]
    assert found.status is Status.UNKNOWN
    assert "cloudwatch:GetMetricData and cloudwatch:ListMetrics" in found.fix
