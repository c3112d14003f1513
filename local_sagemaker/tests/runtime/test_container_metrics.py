"""What containers tell at their `/metrics`, as PromQL finds it."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from alarms_under_test import state
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local_sagemaker import LocalAws
from local_sagemaker.cloudwatch.state import state_at
from local_sagemaker.model_servers import LanguageModelServer, SimulatedModelServer, UrlModelServer
from local_sagemaker.runtime.http_server import Connection, Request, listening

TTFT = "vllm:time_to_first_token_seconds"
ENDPOINT = "aws.sagemaker.endpoint.name"
WAITING = f'max(avg_over_time({{{{"vllm:num_requests_waiting", "{ENDPOINT}"="{{}}"}}}}[300s]))'
DETAILED_OFF = {"MetricsConfig": {"EnableDetailedObservability": False}}

PAGE = "# TYPE own_gauge gauge\nown_gauge{} 7\n"


@contextlib.contextmanager
def container(path: str = "/metrics") -> Iterator[tuple[UrlModelServer, list[str]]]:
    """A container on loopback with a page of metrics; gives it and the paths it was asked for."""
    asked: list[str] = []

    async def answer(request: Request, connection: Connection) -> None:
        asked.append(request.target)
        known = {"/ping": "", path: PAGE}
        found = request.target in known
        connection.send(200 if found else 404, (), known.get(request.target, "").encode())

    with listening(answer) as listener:
        yield UrlModelServer(f"http://127.0.0.1:{listener.port}"), asked


@pytest.fixture
def models(site):
    """An endpoint of two instances of a language model in a local AWS with enrichment."""

    def start(**options: Any):
        fast = LanguageModelServer(gap_seconds=0.001, seconds_per_prompt_token=0.0, output_tokens=4)
        here = site({"model": fast}, **options)
        enrich(here.aws)
        return here

    return start


@pytest.fixture(autouse=True)
def nothing_stays(shared):
    yield
    shared.client("cloudwatch").stop_otel_enrichment()
    shared.client("observabilityadmin").stop_telemetry_enrichment()


def enrich(aws: Any) -> None:
    """Switch both on, in the one order that CloudWatch takes."""
    aws.client("observabilityadmin").start_telemetry_enrichment()
    aws.client("cloudwatch").start_otel_enrichment()


def chat(here: Any, name: str) -> None:
    body = {"messages": [{"role": "user", "content": "count to four"}], "stream": True}
    here.invoke(name, json.dumps(body).encode(), ContentType="application/json")


@pytest.mark.parametrize(
    ("options", "query"),
    [
        (
            {"metric_histograms": "exponential"},
            'histogram_quantile(0.5, sum(rate({{"{0}", "aws.sagemaker.endpoint.name"="{1}"}}[300s])))',
        ),
        (
            {"metric_names": "underscores", "metric_histograms": "explicit"},
            "histogram_quantile(0.5, sum by (le) "
            '(rate({{"{0}_bucket", "aws.sagemaker.endpoint.name"="{1}"}}[300s])))',
        ),
    ],
    ids=["c", "b"],
)
def test_the_time_to_the_first_token_in_either_form(models, options, query):
    here = models(**options)
    name = here.endpoint({"InitialInstanceCount": 2})
    here.to_full_minute()
    for _ in range(8):
        chat(here, name)
    here.to_full_minute()
    metric = TTFT.replace(":", "_") if "metric_names" in options else TTFT
    at = str(here.aws.runtime_time().timestamp())
    (median,) = values(here.aws, query.format(metric, name), time=at)
    # An iteration takes 1 ms at least; how much longer is the machine's affair.
    assert 0.001 / 1.1 <= median < 60
    other = query.format(metric.replace(":", "_") if ":" in metric else TTFT, name)
    assert values(here.aws, other, time=at) == []


def test_the_labels_are_sagemakers_and_the_metrics_own(models):
    here = models()
    name = here.endpoint({"InitialInstanceCount": 2, "InstanceType": "ml.g5.xlarge"})
    here.to_full_minute()

    def told(label: str) -> list[str]:
        match = {"match[]": f'{{"vllm:num_requests_waiting", "{ENDPOINT}"="{name}"}}'}
        return prometheus(here.aws, f"label/{label}/values", "GET", **match)[1]["data"]

    assert len(told("@resource.host.id")) == 2
    assert told("@resource.cloud.availability_zone") == ["us-east-1a", "us-east-1b"]
    assert told("aws.sagemaker.variant.name") == ["primary"]
    assert told("@resource.host.type") == ["ml.g5.xlarge"]
    assert told("model_name") == ["language-model"]


@pytest.mark.parametrize(("needed", "found"), [(True, []), (False, [0])])
def test_nothing_is_found_until_enrichment_that_is_needed_is_started(models, needed, found):
    here = models(queries_need_enrichment=needed)
    cloudwatch = here.aws.client("cloudwatch")
    cloudwatch.stop_otel_enrichment()
    name = here.endpoint()
    here.to_full_minute()
    assert values(here.aws, WAITING.format(name)) == found
    names = prometheus(here.aws, "label/__name__/values", "GET")[1]["data"]
    assert bool(names) is bool(found)
    assert cloudwatch.get_otel_enrichment()["Status"] == "Stopped"
    cloudwatch.start_otel_enrichment()
    assert values(here.aws, WAITING.format(name)) == [0]
    assert cloudwatch.get_otel_enrichment()["Status"] == "Running"


def test_detailed_observability_can_be_turned_off(models):
    here = models()
    on, off = here.endpoint(), here.endpoint(**DETAILED_OFF)
    here.to_full_minute()
    assert values(here.aws, WAITING.format(on)) == [0]
    assert values(here.aws, WAITING.format(off)) == []


def test_it_is_published_as_often_as_the_configuration_says(models):
    here = models()
    often = here.endpoint(MetricsConfig={"MetricPublishFrequencyInSeconds": 30})
    default = here.endpoint()
    here.to_full_minute()
    here.aws.advance(600)
    # Those of the last 290 s, the moment before included: each full minute, each half of it.
    now = here.aws.runtime_time().timestamp()
    kept = state_at(("123456789012", "us-east-1")).series.named("vllm:num_requests_waiting")
    points = {one.labels[ENDPOINT]: len(one.between(now - 290, now)) for one in kept}
    assert (points[often], points[default]) == (10, 5)


def test_a_container_names_its_own_page(site):
    here = site()
    enrich(here.aws)
    with container("/server/metrics") as (server, _):
        here.aws.set_model_servers({"model": server})
        own = {"MetricsEndpoints": [{"MetricsEndpointPath": "/server/metrics"}]}
        named = here.endpoint({"ModelName": here.model(ContainerMetricsConfig=own)})
        default = here.endpoint()
        here.to_full_minute()
        query = WAITING.replace("vllm:num_requests_waiting", "own_gauge")
        assert values(here.aws, query.format(named)) == [7]
        assert values(here.aws, query.format(default)) == []


def test_a_container_without_a_page_has_no_series_and_is_asked_once(site):
    here = site()
    enrich(here.aws)
    with container("/elsewhere") as (server, asked):
        here.aws.set_model_servers({"model": server})
        name = here.endpoint()
        here.aws.advance(600)
        assert asked.count("/metrics") == 1
    here.aws.set_model_servers({"model": SimulatedModelServer()})
    simulated = here.endpoint()
    here.to_full_minute()
    _, names = prometheus(here.aws, "label/aws.sagemaker.endpoint.name/values", "GET")
    assert not {name, simulated} & set(names["data"])


def test_an_alarm_follows_the_runtimes_clock_at_its_own_interval(site):
    here = site()
    enrich(here.aws)
    cloudwatch = here.aws.client("cloudwatch")
    with container() as (server, _):
        here.aws.set_model_servers({"model": server})
        name = here.endpoint(MetricsConfig={"MetricPublishFrequencyInSeconds": 10})
        query = f"({WAITING.replace('vllm:num_requests_waiting', 'own_gauge').format(name)}) > 6"
        here.to_full_minute()
        cloudwatch.put_metric_alarm(
            AlarmName="waiting",
            EvaluationCriteria={"PromQLCriteria": {"Query": query, "PendingPeriod": 40}},
            EvaluationInterval=20,
        )
        found = [state(cloudwatch, "waiting")]
        for seconds in (40, 10):
            here.aws.advance(seconds)
            found.append(state(cloudwatch, "waiting"))
        cloudwatch.delete_alarms(AlarmNames=["waiting"])
    # Judged at 10, 30 and 50 s: 40 s after it breached first.
    assert found == ["OK", "OK", "ALARM"]


def test_another_region_has_series_of_its_own(models):
    here = models()
    name = here.endpoint()
    here.to_full_minute()
    query = WAITING.format(name)
    _, found = prometheus(here.aws, "query", region="eu-west-1", query=query)
    assert found["data"]["result"] == []


def test_without_a_key_of_the_local_aws_nothing_is_answered(site):
    aws = site().aws
    wrong = type(aws.credentials)("AKIAWRONG", "x", "y")
    stranger = SimpleNamespace(url=aws.url, credentials=wrong)
    assert prometheus(stranger, "query", "GET", query=WAITING.format("any"))[0] == 403


def prometheus(
    aws: LocalAws, path: str, method: str = "POST", region: str = "us-east-1", **fields: str
) -> tuple[int, dict[str, Any]]:
    """Ask `/api/v1/<path>`; gives the status and the document."""
    url, form = f"{aws.url}/api/v1/{path}", urllib.parse.urlencode(fields)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if method == "GET":
        request = AWSRequest("GET", f"{url}?{form}" if form else url)
    else:
        request = AWSRequest("POST", url, data=form, headers=headers)
    keys = Credentials(aws.credentials.access_key, aws.credentials.secret_key)
    SigV4Auth(keys, "monitoring", region).add_auth(request)
    prepared = request.prepare()
    body = form.encode() if method == "POST" else None
    sent = urllib.request.Request(prepared.url, body, dict(prepared.headers), method=method)
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def values(aws: LocalAws, query: str, **more: str) -> list[float]:
    """The values of an instant vector."""
    status, document = prometheus(aws, "query", query=query, **more)
    assert status == 200, document
    return [float(row["value"][1]) for row in document["data"]["result"]]
