"""Verdicts on what the local AWS itself answers to real requests, each as callers meet it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import ModelServer, ServiceTime, SimulatedModelServer
from low_latency_endpoint.cli import app
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.load_testing import StepEvent, load_test
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan
from low_latency_endpoint.load_test.search.verdict_texts import VERDICTS

from .servers import make_endpoint, make_model

pytestmark = pytest.mark.realtime

FULL = "No worker is available. Consider increasing job queue size."


def server(seconds: float = 0.01, concurrency: int = 8, **more: Any) -> SimulatedModelServer:
    return SimulatedModelServer(ServiceTime.constant(seconds), concurrency, **more)


SERVERS = {
    "well": server(),
    "busy": server(failure_share=0.3, failure_status=503, failure_message=FULL),
    "wrong": server(failure_share=0.3, failure_message="KeyError: 'inputs'\n\x1b[2J<i>no</i>"),
    "silent": server(hang_share=0.05),
    "loading": server(hang_share=1.0),
    "full": server(0.04, 2, cpu_busy=400),
    "one-worker": server(0.04, 2, cpu_busy=100),
}
# A minute of the account passes in a second.
FAST = RuntimeOptions(clock_speed=60, invocation_timeout=2)


@pytest.fixture(scope="module")
def answering() -> Iterator[LocalAws]:
    servers: dict[str, ModelServer] = {f"model:{tag}": each for tag, each in SERVERS.items()}
    with LocalAws.start(model_servers=servers, runtime=FAST) as aws:
        for name in SERVERS:
            make_model(aws, name, name)
        make_model(aws, "several", "loading", Mode="MultiModel", ModelDataUrl="s3://bucket/models/")
        for name in (*SERVERS, "several"):
            made = {"ModelName": name, "InitialInstanceCount": 1, "InstanceType": "ml.c7i.xlarge"}
            make_endpoint(aws, name, made)
        yield aws


@pytest.fixture(scope="module")
def throttling() -> Iterator[LocalAws]:
    """An account that takes 100 requests a second, before an instance that answers 4,000."""
    throttled = RuntimeOptions(requests_per_second=100)
    with LocalAws.start(model_servers={"*": server(0.002)}, runtime=throttled) as aws:
        make_model(aws)
        make_endpoint(aws, "well", {"InitialInstanceCount": 1})
        yield aws


def load_tested(aws: LocalAws, line: str, folder: Path) -> tuple[dict[str, Any], str, int]:
    """What ``load-test`` writes and says, and its exit code."""
    result = folder / "result.json"
    more = ["--payload", "{}", "-o", str(result), "--html", str(folder / "page.html")]
    if "--metrics-wait" not in line:
        more += ["--metrics-wait", "0s"]
    done = CliRunner().invoke(app, ["load-test", *line.split(), *more], env=aws.environment())
    assert result.exists(), done.output
    return json.loads(result.read_text()), " ".join(done.output.split()), done.exit_code


STEP = "--tps 50 --duration 2s --alone 0s --target p99=500ms"
METRICS = "--tps 20 --tps {} --duration 4s --alone 4s --metrics-wait 20s --target p99=150ms"


@pytest.mark.parametrize(
    ("line", "kind", "failed", "says"),
    [
        (f"busy {STEP}", "errors", f"424 ModelError 503 ({FULL})", "longer queue"),
        (f"wrong {STEP}", "errors", "424 ModelError 500 (KeyError: 'inputs'", "container's log"),
        (f"silent {STEP}", "errors", "424 ModelError 0 (Your invocation", "time limit"),
        (f"several {STEP}", "refused", "400 ValidationError", "payload"),
        (f"several {STEP} --target-model a.tar.gz", "loading", "429 ModelNotReady", "loaded"),
        (f"well {STEP}", "not-read", "", "what is near its limit is not known"),
        ("full " + METRICS.format(70), "cpu", "", "The CPU is full"),
        ("one-worker " + METRICS.format(60), "queueing", "", "more workers"),
    ],
)
def test_a_verdict_on_what_the_endpoint_answers(
    answering: LocalAws, tmp_path: Path, line: str, kind: str, failed: str, says: str
) -> None:
    for _ in range(3):
        content, said, code = load_tested(answering, line, tmp_path)
        kinds = {verdict["kind"] for verdict in content["verdicts"]}
        if "client-bound" not in kinds:  # else this machine was busy, and the answer says it
            break
    assert kind in kinds <= set(VERDICTS)
    assert says in said
    assert failed in said
    assert code == (kind != "not-read")
    step, page = content["steps"][-1], (tmp_path / "page.html").read_text()
    assert set(step["error_messages"]) == set(step["errors"])
    assert "\x1b" not in said
    assert "<i>" not in page
    assert "KeyError" not in failed or "KeyError" in page


def test_throttles_are_the_accounts_limit(throttling: LocalAws, tmp_path: Path) -> None:
    content, said, code = load_tested(
        throttling, STEP.replace("--tps 50", "well --tps 150"), tmp_path
    )
    assert [each["kind"] for each in content["verdicts"]] == ["throttled"]
    assert "400 ThrottlingException" in said
    assert "container's log" not in said
    assert code == 1


@pytest.mark.parametrize("alone", ["0s", "1s"])
def test_throttles_give_no_limit_of_an_instance(
    throttling: LocalAws, tmp_path: Path, alone: str
) -> None:
    """One caller alone is throttled already; without it the rates are that rise."""
    line = f"well --find-limit --duration 1s --alone {alone} --target p90=200ms --precision 0.5"
    content, said, code = load_tested(throttling, line, tmp_path)
    assert code == 1
    assert "LLT112" not in said
    limit = content["limit"]
    assert "AWS throttled the requests" in limit["problem"]
    assert (limit["tps_per_instance"], limit["rate"], content["throughput"]) == (None, None, None)
    if alone == "0s":
        assert content["verdicts"][0]["severity"] == "invalid"
    file = Path(__file__).resolve().parents[2] / "endpoint.yaml"
    plan = ["plan", "--settings", str(file), "--from-load-test", str(tmp_path / "result.json")]
    assert "LLT114" in str(CliRunner().invoke(app, plan).exception)


def test_an_endpoint_that_is_deleted_ends_the_search(
    answering: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What held before is kept, as a lower bound."""
    for name, value in answering.environment().items():
        monkeypatch.setenv(name, value)
    made = {"ModelName": "well", "InitialInstanceCount": 1, "InstanceType": "ml.c7i.xlarge"}
    make_endpoint(answering, "leaving", made)
    held: list[StepEvent] = []

    def delete(event: StepEvent) -> None:
        """In the middle of the step after two that held."""
        if event.measured is not None and event.measured.judgement.kept and event.step.arrivals:
            held.append(event)
        if event.progress is not None and len(held) == 2:
            held.append(event)
            answering.client("sagemaker").delete_endpoint(EndpointName="leaving")

    report = load_test(
        Target("leaving", "us-east-1"),
        Payloads.of_bytes(b"{}"),
        limit_plan(SearchPlan(LatencyGoal({"p90": 0.4}), 4, 1)),
        metrics_wait=None,
        emit=delete,
    )
    run = report.run
    assert run.interrupted
    assert "LLT143" in run.failure
    assert "not found" in run.failure
    assert ", since " in run.failure
    (refused,) = (verdict for verdict in report.verdicts if verdict.kind == "refused")
    assert "the endpoint does not exist" in refused.title
    assert run.limit is not None
    assert run.limit.lower_bound
    assert run.limit.rate == held[1].measured.offered
