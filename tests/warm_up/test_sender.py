"""The sender alone, against loopback servers that play SageMaker Runtime."""

from __future__ import annotations

import json
import threading
import time

import pytest

from low_latency_endpoint.warm_up.warm_up_function import sender
from low_latency_endpoint.warm_up.warm_up_function.measurements import percentile

from .conftest import Answer, aws_error, model_error


def test_sends_the_payload_to_the_endpoint_as_a_signed_request(new_runtime, run_sender):
    runtime = new_runtime()
    answer = run_sender({"use1-az1": runtime}, requests=3)
    assert answer["settled"]
    assert answer["zones"]["use1-az1"]["sent"] == 3 == len(runtime.requests)
    for seen in runtime.requests:
        assert seen.path == "/endpoints/Sentiment/invocations"
        assert seen.body == b'{"inputs": "secret-words"}'
        assert seen.headers["content-type"] == "application/json"
        assert "/us-east-1/sagemaker/aws4_request" in seen.headers["authorization"]


def test_sends_to_every_zone_by_its_own_name_and_to_all_at_the_same_time(new_runtime, run_sender):
    both_there = threading.Barrier(2, timeout=10)

    def first_waits_for_the_other_zone(number):
        if number == 0:
            both_there.wait()
        return Answer()

    zones = {name: new_runtime(first_waits_for_the_other_zone) for name in ("use1-az1", "use1-az2")}
    answer = run_sender(zones, requests=4)
    assert {name: zone["sent"] for name, zone in answer["zones"].items()} == {
        "use1-az1": 4,
        "use1-az2": 4,
    }
    assert [zone["failed"] for zone in answer["zones"].values()] == [0, 0]
    assert [len(runtime.requests) for runtime in zones.values()] == [4, 4]


def test_the_zonal_name_is_called_over_tls(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"):
        monkeypatch.delenv(name, raising=False)
    host = "vpce-1-a-us-east-1a.runtime.sagemaker.us-east-1.vpce.amazonaws.com"
    assert sender.url_of(host) == f"https://{host}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    assert sender.url_of(host) == "http://localhost:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", "http://localhost:2")
    assert sender.url_of(host) == "http://localhost:2"


@pytest.mark.parametrize("concurrency", [1, 4])
def test_keeps_that_many_requests_in_flight_in_each_zone(new_runtime, run_sender, concurrency):
    def behaviour():
        """The first requests are answered when so many have come, however slow the machine is."""
        together = threading.Barrier(concurrency, timeout=20)

        def answered(number):
            if number < concurrency:
                together.wait()
            return Answer()

        return answered

    zones = {name: new_runtime(behaviour()) for name in ("az1", "az2")}
    run_sender(zones, requests=12, concurrency=concurrency)
    assert [runtime.most_in_flight for runtime in zones.values()] == [concurrency, concurrency]
    assert [len(runtime.requests) for runtime in zones.values()] == [12, 12]


def test_goes_on_until_the_last_requests_meet_the_target(new_runtime, run_sender):
    cold = 15
    runtime = new_runtime(lambda number: Answer(after=0.3 if number < cold else 0))
    answer = run_sender({"az1": runtime}, requests=5, concurrency=3, keep=10, target={"p99": 150.0})
    zone = answer["zones"]["az1"]
    assert answer["settled"]
    assert zone["sent"] >= cold + 10
    assert percentile(zone["first"], 50) >= 300
    assert percentile(zone["last"], 99) <= 150


def test_a_zone_that_is_warm_does_not_wait_for_one_that_is_not(new_runtime, run_sender):
    zones = {"warm": new_runtime(), "cold": new_runtime(lambda number: Answer(after=0.1))}
    answer = run_sender(zones, seconds=2, keep=5, target={"p99": 60.0})
    assert not answer["settled"]
    assert answer["zones"]["cold"]["sent"] > 10
    # A busy machine may make a request of the warm zone slow; it is far from sending for 2 s.
    assert answer["zones"]["warm"]["sent"] < 100


@pytest.mark.realtime
def test_stops_when_the_time_is_over(new_runtime, run_sender):
    runtime = new_runtime(lambda number: Answer(after=0.05))
    began = time.monotonic()
    answer = run_sender({"az1": runtime}, seconds=0.5, keep=5, target={"p99": 0.001})
    assert not answer["settled"]
    assert answer["refused"] == ""
    assert 0.5 <= time.monotonic() - began < 5
    assert answer["zones"]["az1"]["sent"] >= 2


def test_goes_on_from_what_an_earlier_slice_measured(new_runtime, run_sender):
    runtime = new_runtime()
    before = {"az1": {"sent": 7, "failed": 1, "first": [900.0], "last": [1.0], "error": "late"}}
    answer = run_sender({"az1": runtime}, zones=before, requests=10, keep=1)
    zone = answer["zones"]["az1"]
    assert len(runtime.requests) == 3
    assert (zone["sent"], zone["failed"], zone["first"]) == (10, 1, [900.0])


def test_settled_zones_send_nothing_more(new_runtime, run_sender):
    runtime = new_runtime()
    before = {"az1": {"sent": 2, "failed": 0, "first": [9.0, 1.0], "last": [1.0], "error": ""}}
    assert run_sender({"az1": runtime}, zones=before, requests=2, keep=1)["settled"]
    assert runtime.requests == []


@pytest.mark.parametrize("status", [400, 404, 415, 422])
def test_a_payload_the_model_refuses_ends_it_at_once(new_runtime, run_sender, status):
    zones = {
        name: new_runtime(lambda number: model_error(status, "inputs: field required"))
        for name in ("az1", "az2")
    }
    answer = run_sender(zones, requests=1000, concurrency=2)
    assert answer["refused"] == f"the model answered {status}: inputs: field required"
    assert not answer["settled"]
    # At most what was in flight when the first refusal came.
    assert sum(len(runtime.requests) for runtime in zones.values()) <= 2 * 2 + 2


@pytest.mark.parametrize(
    "answer",
    [
        model_error(500, "CUDA out of memory"),
        model_error(503, "loading"),
        model_error(429, "busy"),
        model_error(408, "slow"),
        aws_error(429, "ThrottlingException", "Rate exceeded"),
        aws_error(429, "ModelNotReadyException", "Model is not ready"),
        aws_error(500, "InternalFailure", "again"),
        aws_error(503, "ServiceUnavailable", "again"),
        aws_error(403, "AccessDeniedException", "not yet authorized"),
        aws_error(400, "ValidationError", "Endpoint Sentiment not found"),
    ],
)
def test_what_may_pass_is_tried_again(new_runtime, run_sender, answer):
    runtime = new_runtime(lambda number: answer if number < 3 else Answer())
    result = run_sender({"az1": runtime}, requests=4, keep=2)
    zone = result["zones"]["az1"]
    assert result["settled"]
    assert result["refused"] == ""
    assert zone["failed"] == 3
    assert zone["first"] == [None, None]
    assert None not in zone["last"]
    assert zone["error"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            aws_error(403, "AccessDeniedException", "is not authorized to perform"),
            "AccessDeniedException: is not authorized to perform",
        ),
        (
            aws_error(400, "ValidationError", "Endpoint Sentiment of account not found"),
            "ValidationError: Endpoint Sentiment of account not found",
        ),
    ],
)
def test_aws_s_own_refusal_is_final_when_it_lasts(
    new_runtime, run_sender, monkeypatch, answer, said
):
    monkeypatch.setattr(sender, "GRACE_SECONDS", 0.3)
    runtime = new_runtime(lambda number: answer)
    assert run_sender({"az1": runtime}, requests=5)["refused"] == said
    assert len(runtime.requests) > 1, "it is tried again first"


@pytest.mark.parametrize(
    ("status", "said"),
    [(0, "the model gave no answer: it hung up"), (500, "the model answered 500: it hung up")],
)
def test_a_container_that_hangs_up_answers_nothing(new_runtime, run_sender, status, said):
    """SageMaker calls the status of an answer that never came 0."""
    runtime = new_runtime(lambda number: model_error(status, "it hung up"))
    answer = run_sender({"az1": runtime}, seconds=0.3)
    assert answer["zones"]["az1"]["error"] == said
    assert answer["refused"] == "", "another request may be answered"


def test_throttling_is_never_final(new_runtime, run_sender, monkeypatch):
    monkeypatch.setattr(sender, "GRACE_SECONDS", 0.0)
    runtime = new_runtime(lambda number: aws_error(429, "ThrottlingException", "Rate exceeded"))
    answer = run_sender({"az1": runtime}, seconds=0.5, requests=5)
    assert (answer["refused"], answer["settled"]) == ("", False)


def test_an_endpoint_that_nobody_answers_for_is_a_failure_and_no_crash(new_runtime, run_sender):
    runtime = new_runtime()
    runtime.host = "127.0.0.1:1"
    answer = run_sender({"az1": runtime}, seconds=0.3)
    zone = answer["zones"]["az1"]
    assert not answer["settled"]
    assert zone["failed"] == zone["sent"] >= 1
    assert "EndpointConnectionError" in zone["error"]


def test_after_a_failure_it_pauses(new_runtime, run_sender, monkeypatch):
    monkeypatch.setattr(sender, "PAUSE_SECONDS", 0.2)
    runtime = new_runtime(lambda number: aws_error(503, "ServiceUnavailable", "starting"))
    run_sender({"az1": runtime}, seconds=1.0, requests=100)
    assert 2 <= len(runtime.requests) <= 6


def test_a_request_is_not_repeated_by_the_sdk(new_runtime, run_sender):
    runtime = new_runtime(lambda number: Answer(500) if number == 0 else Answer())
    answer = run_sender({"az1": runtime}, requests=2, keep=1)
    assert len(runtime.requests) == answer["zones"]["az1"]["sent"] == 2


def test_sends_several_payloads_in_turn_each_with_its_headers(new_runtime, run_sender):
    runtime = new_runtime()
    payloads = (
        ({"ContentType": "application/x-npy", "TargetModel": "a.tar.gz"}, bytes(range(256))),
        ({"ContentType": "text/csv", "TargetModel": "b.tar.gz", "Accept": "text/csv"}, b"1,2"),
    )
    run_sender({"az1": runtime}, payloads=payloads, requests=4)
    assert [
        (seen.headers["x-amzn-sagemaker-target-model"], seen.headers["content-type"], seen.body)
        for seen in runtime.requests
    ] == [
        ("a.tar.gz", "application/x-npy", bytes(range(256))),
        ("b.tar.gz", "text/csv", b"1,2"),
    ] * 2
    assert runtime.requests[1].headers["accept"] == "text/csv"


def test_reuses_connections(new_runtime, run_sender):
    # A connection has to be as warm as callers' are, or the target measures handshakes.
    runtime = new_runtime()
    answer = run_sender({"az1": runtime}, requests=50, concurrency=2, keep=50)
    assert answer["zones"]["az1"]["sent"] == 50
    assert runtime.connections <= 2


def test_logs_one_line_of_json_and_neither_payload_nor_keys(new_runtime, run_sender, capsys):
    run_sender({"az1": new_runtime()}, requests=2)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["zones"]["az1"]["requests"] == 2
    assert "secret-words" not in line
    assert "testing" not in line
