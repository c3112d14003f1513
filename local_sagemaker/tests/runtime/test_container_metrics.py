"""What containers tell at their `/metrics`, as PromQL finds it."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from prometheus_requests import prometheus, values

from local_sagemaker.model_servers import LanguageModelServer, SimulatedModelServer, UrlModelServer

TTFT = "vllm:time_to_first_token_seconds"
WAITING = '{{"vllm:num_requests_waiting", "aws.sagemaker.endpoint.name"="{}"}}'
DETAILED_OFF = {"MetricsConfig": {"EnableDetailedObservability": False}}

PAGE = "# TYPE own_gauge gauge\nown_gauge{} 7\n"


@contextlib.contextmanager
def container(path: str = "/metrics") -> Iterator[tuple[UrlModelServer, list[str]]]:
    """A container on loopback with a page of metrics; gives it and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            known = {"/ping": "", path: PAGE}
            body = known.get(self.path, "").encode()
            self.send_response(200 if self.path in known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield UrlModelServer(f"http://127.0.0.1:{server.server_port}"), asked
    finally:
        server.shutdown()
        server.server_close()


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


def scraped(here: Any) -> None:
    """To the next full minute, at which containers are scraped."""
    here.to_full_minute()


@pytest.mark.parametrize(
    ("options", "query"),
    [
        (
            {"metric_histograms": "exponential"},
            'histogram_quantile(0.5, sum(rate({{"{0}", "aws.sagemaker.endpoint.name"="{1}"}}[5m])))',
        ),
        (
            {"metric_names": "underscores", "metric_histograms": "explicit"},
            "histogram_quantile(0.5, sum by (le) "
            "(rate({0}_bucket{{'aws.sagemaker.endpoint.name'=\"{1}\"}}[5m])))",
        ),
    ],
    ids=["c", "b"],
)
def test_the_time_to_the_first_token_in_either_form(models, options, query):
    here = models(**options)
    name = here.endpoint({"InitialInstanceCount": 2})
    scraped(here)
    for _ in range(8):
        chat(here, name)
    scraped(here)
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
    scraped(here)
    _, found = prometheus(here.aws, "query", query=WAITING.format(name))
    rows = [row["metric"] for row in found["data"]["result"]]
    assert len({row["@resource.host.id"] for row in rows}) == 2
    assert {row["@resource.cloud.availability_zone"] for row in rows} == {
        "us-east-1a",
        "us-east-1b",
    }
    for row in rows:
        assert row["aws.sagemaker.variant.name"] == "primary"
        assert row["@resource.host.type"] == "ml.g5.xlarge"
        assert row["model_name"] == "language-model"


def test_nothing_is_found_until_enrichment_is_started(models):
    here = models()
    cloudwatch = here.aws.client("cloudwatch")
    cloudwatch.stop_otel_enrichment()
    name = here.endpoint()
    scraped(here)
    assert values(here.aws, WAITING.format(name)) == []
    assert prometheus(here.aws, "labels")[1]["data"] == []
    assert cloudwatch.get_otel_enrichment()["Status"] == "Stopped"
    cloudwatch.start_otel_enrichment()
    assert values(here.aws, WAITING.format(name)) == [0]
    assert cloudwatch.get_otel_enrichment()["Status"] == "Running"


def test_enrichment_need_not_be_started_where_that_is_chosen(models):
    here = models(queries_need_enrichment=False)
    here.aws.client("cloudwatch").stop_otel_enrichment()
    name = here.endpoint()
    scraped(here)
    assert values(here.aws, WAITING.format(name)) == [0]


def test_detailed_observability_can_be_turned_off(models):
    here = models()
    on, off = here.endpoint(), here.endpoint(**DETAILED_OFF)
    scraped(here)
    assert values(here.aws, WAITING.format(on)) == [0]
    assert values(here.aws, WAITING.format(off)) == []


def test_it_is_published_as_often_as_the_configuration_says(models):
    here = models()
    often = here.endpoint(MetricsConfig={"MetricPublishFrequencyInSeconds": 30})
    default = here.endpoint()
    here.to_full_minute()
    here.aws.advance(600)
    # Those of the last 290 s, the moment before included: each full minute, each half of it.
    points = "count_over_time({}[290s])"
    assert values(here.aws, points.format(WAITING.format(often))) == [10]
    assert values(here.aws, points.format(WAITING.format(default))) == [5]


def test_a_container_names_its_own_page(site):
    here = site()
    enrich(here.aws)
    with container("/server/metrics") as (server, _):
        here.aws.set_model_servers({"model": server})
        own = {"MetricsEndpoints": [{"MetricsEndpointPath": "/server/metrics"}]}
        named = here.endpoint({"ModelName": here.model(ContainerMetricsConfig=own)})
        default = here.endpoint()
        scraped(here)
        query = '{{"own_gauge", "aws.sagemaker.endpoint.name"="{}"}}'
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
    scraped(here)
    _, names = prometheus(here.aws, "label/aws.sagemaker.endpoint.name/values", "GET")
    assert not {name, simulated} & set(names["data"])


def test_an_alarm_follows_the_runtimes_clock_at_its_own_interval(models):
    here = models()
    name = here.endpoint(MetricsConfig={"MetricPublishFrequencyInSeconds": 10})
    cloudwatch = here.aws.client("cloudwatch")
    query = f"sum({WAITING.format(name)}) >= 0"
    here.to_full_minute()
    cloudwatch.put_metric_alarm(
        AlarmName="waiting",
        EvaluationCriteria={"PromQLCriteria": {"Query": query, "PendingPeriod": 40}},
        EvaluationInterval=20,
    )
    try:

        def state() -> str:
            (found,) = cloudwatch.describe_alarms(AlarmNames=["waiting"])["MetricAlarms"]
            return str(found["StateValue"])

        # Judged at 10, 30 and 50 s: 40 s after it breached first.
        assert state() == "OK"
        here.aws.advance(40)
        assert state() == "OK"
        here.aws.advance(10)
        assert state() == "ALARM"
    finally:
        cloudwatch.delete_alarms(AlarmNames=["waiting"])


def test_another_region_has_series_of_its_own(models):
    here = models()
    name = here.endpoint()
    scraped(here)
    query = WAITING.format(name)
    _, found = prometheus(here.aws, "query", region="eu-west-1", query=query)
    assert found["data"]["result"] == []


def test_without_a_key_of_the_local_aws_nothing_is_answered(site):
    here = site()
    aws = here.aws
    keys, aws.credentials = aws.credentials, type(aws.credentials)("AKIAWRONG", "x", "y")
    try:
        status, _ = prometheus(aws, "query", "GET", query="vector(1)")
    finally:
        aws.credentials = keys
    assert status == 403


def test_get_and_post_answer_the_same(shared):
    for method, _ in itertools.product(("GET", "POST"), range(2)):
        status, found = prometheus(shared, "query", method, query="vector(0.5)", time="60")
        assert (status, found["data"]["result"]) == (200, [{"metric": {}, "value": [60, "0.5"]}])
    assert prometheus(shared, "query", query="topk(1, x)") == (
        400,
        {"status": "error", "errorType": "bad_data", "error": "topk is not known to the local AWS"},
    )
