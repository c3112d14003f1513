"""The controller alone: CloudFormation's requests, deployments, the keep-warm schedule."""

from __future__ import annotations

import http.server
import json
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from low_latency_endpoint.warm_up.warm_up_function import controller, sender
from low_latency_endpoint.warm_up.warm_up_function.measurements import Zone

CONTEXT = SimpleNamespace(log_group_name="Logs", log_stream_name="stream")

PROPERTIES = {  # CloudFormation makes every scalar a text
    "EndpointName": "sentiment",
    "EndpointConfigName": "configuration-2",
    "RequestsPerZone": "10",
    "ConcurrencyPerZone": "2",
    "Last": "5",
    "Target": {"p99": "200"},
    "TimeoutSeconds": "60",
    "OnMiss": "FAIL",
    "Payload": "digest",
}


def zone(*times: float | None, error: str = "") -> dict[str, Any]:
    made = Zone()
    for taken in times:
        made.add(taken, 50, error)
    return made.to_dict()


WARM = {"zones": {"az1": zone(900, 12, 11)}, "settled": True, "refused": ""}
COLD = {"zones": {"az1": zone(900, 800, 700)}, "settled": False, "refused": ""}
REFUSED = {
    "zones": {"az1": zone(None, error="no")},
    "settled": False,
    "refused": "the model answered 400: inputs missing",
}


@dataclass
class CloudFormation:
    """What it got, and how to ask."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    refuse: int = 0
    status: str = "UPDATE_IN_PROGRESS"

    @property
    def answer(self) -> dict[str, Any]:
        (body,) = self.bodies
        return json.loads(body)

    def request(self, kind: str, physical_id: str = "", **properties: Any) -> dict[str, Any]:
        return {
            "RequestType": kind,
            "ResponseURL": self.url,
            "RequestId": "request-1",
            "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/Serving/1",
            "LogicalResourceId": "WarmUp",
            "ResourceType": "Custom::WarmUp",
            "ResourceProperties": {**PROPERTIES, **properties},
            **({"PhysicalResourceId": physical_id} if physical_id else {}),
        }


@pytest.fixture
def cloudformation(monkeypatch):
    """A listener for the answer, and the stack's status."""
    state = CloudFormation()

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            # S3 refuses a content type that was not signed.
            assert self.headers["Content-Type"] == ""
            refused, state.refuse = state.refuse > 0, max(0, state.refuse - 1)
            if not refused:
                state.bodies.append(body)
            self.send_response(503 if refused else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}/signature-of-the-url"
    monkeypatch.setattr(
        controller,
        "boto3",
        SimpleNamespace(
            client=lambda name: SimpleNamespace(
                describe_stacks=lambda StackName: {"Stacks": [{"StackStatus": state.status}]}
            )
        ),
    )
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def sender_answers(monkeypatch):
    """Give the sender's answers in order, each after its slice; collects what it was asked."""
    asked: list[dict[str, Any]] = []
    clock = [0.0]

    def passes(seconds):
        clock[0] += seconds

    monkeypatch.setattr(
        controller,
        "time",
        SimpleNamespace(monotonic=lambda: clock[0], sleep=passes, time=lambda: 1_800_000_000.5),
    )

    def prepare(*answers: Any) -> list[dict[str, Any]]:
        left = list(answers)

        def call(event):
            asked.append(event)
            answer = left.pop(0)
            passes(0 if isinstance(answer, Exception) else event["run"]["seconds"])
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(controller, "call_sender", call)
        return asked

    return prepare


def run(cloudformation, kind, **more):
    controller.handler(cloudformation.request(kind, **more), CONTEXT)
    return cloudformation.answer


# ---------------------------------------------------------------------------------- CloudFormation


def test_a_create_that_meets_the_target_succeeds_with_the_numbers(
    cloudformation, sender_answers, capsys
):
    asked = sender_answers(WARM)
    answer = run(cloudformation, "Create")
    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] == "WarmUp"
    assert (answer["StackId"], answer["RequestId"], answer["LogicalResourceId"]) == (
        "arn:aws:cloudformation:us-east-1:123456789012:stack/Serving/1",
        "request-1",
        "WarmUp",
    )
    assert {name: answer["Data"][name] for name in ("Outcome", "Requests", "FailedRequests")} == {
        "Outcome": "met",
        "Requests": "3",
        "FailedRequests": "0",
    }
    assert json.loads(answer["Data"]["Zones"])["az1"]["first"] == {"p50": 12, "p99": 900}
    (event,) = asked
    assert {**event["run"], "seconds": 0} == {
        "seconds": 0,
        "requests": 10,
        "concurrency": 2,
        "keep": 5,
        "target": {"p99": 200.0},
    }
    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert report["zones"]["az1"]["last"] == {"p50": 12, "p90": 900, "p99": 900}
    assert report["configuration"] == "configuration-2"


def test_without_a_target_it_is_sent_not_met(cloudformation, sender_answers):
    asked = sender_answers(WARM)
    assert run(cloudformation, "Create", Target={})["Data"]["Outcome"] == "sent"
    assert asked[0]["run"]["target"] == {}


def test_an_update_keeps_the_physical_id(cloudformation, sender_answers):
    sender_answers(WARM)
    assert run(cloudformation, "Update", physical_id="first")["PhysicalResourceId"] == "first"


def test_a_miss_fails_the_deployment_and_says_by_how_much(cloudformation, sender_answers):
    sender_answers(COLD)
    answer = run(cloudformation, "Create")
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith("Warm-up missed: within 60 s the last 5 requests of each")
    assert "p99 200 ms" in answer["Reason"]
    assert "az1 p50 800 ms, p90 900 ms, p99 900 ms" in answer["Reason"]
    assert "(log: Logs stream)" in answer["Reason"]
    assert answer["PhysicalResourceId"] == "WarmUp"


def test_a_miss_only_warns_when_asked_to(cloudformation, sender_answers):
    sender_answers(COLD)
    answer = run(cloudformation, "Create", OnMiss="WARN")
    assert (answer["Status"], answer["Data"]["Outcome"]) == ("SUCCESS", "missed")


@pytest.mark.parametrize(("on_miss", "status"), [("FAIL", "FAILED"), ("WARN", "SUCCESS")])
def test_a_refusal_ends_it_with_the_models_message(cloudformation, sender_answers, on_miss, status):
    asked = sender_answers(REFUSED)
    answer = run(cloudformation, "Create", OnMiss=on_miss)
    assert (answer["Status"], answer["Data"]["Outcome"]) == (status, "refused")
    assert "Warm-up refused: the model answered 400: inputs missing" in answer["Reason"]
    assert len(asked) == 1


@pytest.mark.parametrize("properties", [{}, {"RequestsPerZone": "nonsense", "Target": None}])
def test_a_delete_succeeds_at_once_whatever_it_is_given(cloudformation, sender_answers, properties):
    asked = sender_answers()
    answer = run(cloudformation, "Delete", physical_id="first", **properties)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "first")
    assert asked == []


def test_a_rollback_sends_without_a_target_and_cannot_fail(cloudformation, sender_answers):
    cloudformation.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    asked = sender_answers(COLD)
    answer = run(cloudformation, "Update", physical_id="first")
    assert (answer["Status"], answer["Data"]["Outcome"]) == ("SUCCESS", "missed")
    assert asked[0]["run"]["target"] == {}


def test_a_rollback_cannot_fail_for_a_broken_sender_either(cloudformation, sender_answers):
    cloudformation.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    sender_answers(RuntimeError("the sender failed"))
    answer = run(cloudformation, "Update", physical_id="first")
    assert answer["Status"] == "SUCCESS"
    assert "the sender failed" in answer["Reason"]


def test_the_same_miss_in_an_ordinary_update_fails(cloudformation, sender_answers):
    sender_answers(COLD)
    assert run(cloudformation, "Update")["Status"] == "FAILED"


def test_an_unknown_stack_status_is_taken_for_an_ordinary_update(
    cloudformation, sender_answers, monkeypatch
):
    def client(name):
        raise RuntimeError("AccessDenied")

    monkeypatch.setattr(controller, "boto3", SimpleNamespace(client=client))
    asked = sender_answers(WARM)
    assert run(cloudformation, "Update")["Status"] == "SUCCESS"
    assert asked[0]["run"]["target"] == {"p99": 200.0}


def test_a_sender_that_breaks_fails_the_deployment_with_its_error(
    cloudformation, sender_answers, capsys
):
    sender_answers(RuntimeError("the sender failed: No module named 'nothing'"))
    answer = run(cloudformation, "Create")
    assert answer["Status"] == "FAILED"
    assert "No module named 'nothing'" in answer["Reason"]
    assert "signature-of-the-url" not in capsys.readouterr().out


@pytest.mark.parametrize("before", [[], [COLD] * 4], ids=["not there yet", "lost late"])
def test_a_sender_that_cannot_be_called_is_waited_for(cloudformation, sender_answers, before):
    sender_answers(*before, controller.SenderUnavailable("throttled"), WARM)
    assert run(cloudformation, "Create", TimeoutSeconds="600")["Status"] == "SUCCESS"


def test_gives_up_on_a_sender_that_stays_away(cloudformation, sender_answers):
    refusal = controller.SenderUnavailable("not authorized to perform lambda:InvokeFunction")
    asked = sender_answers(*[refusal] * 100)
    answer = run(cloudformation, "Create", TimeoutSeconds="600")
    assert len(asked) * controller.RETRY_SECONDS == pytest.approx(180, abs=4)
    assert answer["Status"] == "FAILED"
    assert "not authorized to perform lambda:InvokeFunction" in answer["Reason"]


def test_a_time_that_is_over_before_the_sender_is_there_is_a_miss_with_the_reason(
    cloudformation, sender_answers
):
    sender_answers(*[controller.SenderUnavailable("ResourceConflictException")] * 100)
    answer = run(cloudformation, "Create", TimeoutSeconds="30")
    assert answer["Status"] == "FAILED"
    assert "last: nothing was sent" in answer["Reason"]
    assert "the sender could not be called: ResourceConflictException" in answer["Reason"]


def test_sends_in_slices_and_hands_each_what_the_last_one_measured(sender_answers):
    asked = sender_answers(COLD, COLD, WARM)
    report = controller.warm_up({**PROPERTIES, "TimeoutSeconds": "300"})
    assert report["outcome"] == "met"
    assert [event["zones"] for event in asked] == [{}, COLD["zones"], COLD["zones"]]
    assert {event["run"]["seconds"] for event in asked} == {controller.SLICE_SECONDS}
    assert report["seconds"] == 180


def test_the_last_slice_ends_with_the_time(sender_answers):
    asked = sender_answers(COLD, COLD, COLD)
    report = controller.warm_up({**PROPERTIES, "TimeoutSeconds": "130"})
    assert [event["run"]["seconds"] for event in asked] == [60, 60, 10]
    assert (report["outcome"], report["seconds"]) == ("missed", 130)


def test_asks_again_when_the_answer_is_not_taken(cloudformation, sender_answers):
    cloudformation.refuse = 2
    sender_answers(WARM)
    assert run(cloudformation, "Create")["Status"] == "SUCCESS"


def test_an_answer_that_is_never_taken_is_an_error(cloudformation, sender_answers):
    cloudformation.refuse = 9
    sender_answers(WARM)
    with pytest.raises(RuntimeError, match="did not take the answer"):
        controller.handler(cloudformation.request("Create"), CONTEXT)
    assert cloudformation.bodies == []


@pytest.mark.parametrize("letter", ["x", '"', "\n", "é", "漢", "\N{GRINNING FACE}"])
@pytest.mark.parametrize("answer", [WARM, COLD, REFUSED])
def test_the_answer_of_sixteen_zones_fits_cloudformation(
    cloudformation, sender_answers, answer, letter
):
    times = [123456.789] * 40 + [None] * 10
    zones = {f"use1-az{number}": zone(*times, error=letter * 500) for number in range(16)}
    sender_answers({**answer, "zones": zones, "refused": answer["refused"] and letter * 9000})
    found = run(cloudformation, "Create")
    (body,) = cloudformation.bodies
    assert len(body) <= 4096
    assert found["Data"]["Requests"] == str(16 * 50)


def test_zones_that_do_not_fit_are_left_to_the_log(cloudformation, sender_answers, capsys):
    zones = {f"{number:060}": zone(*[123456.7] * 50) for number in range(40)}
    sender_answers({**WARM, "zones": zones})
    answer = run(cloudformation, "Create")
    assert len(cloudformation.bodies[0]) <= 4096
    assert (answer["Status"], answer["Data"]["Requests"]) == ("SUCCESS", "2000")
    assert answer["Data"]["Zones"] == "{}"
    assert set(json.loads(capsys.readouterr().out)["zones"]) == set(zones)


def test_four_zones_are_all_among_the_attributes(cloudformation, sender_answers):
    zones = {f"use1-az{number}": zone(*[12345.6] * 50) for number in range(4)}
    sender_answers({**WARM, "zones": zones})
    assert set(json.loads(run(cloudformation, "Create")["Data"]["Zones"])) == set(zones)


def test_metrics_are_in_cloudwatchs_embedded_format(cloudformation, sender_answers, capsys):
    sender_answers(WARM)
    run(cloudformation, "Create", Metrics="true")
    entry = json.loads(capsys.readouterr().out)
    (directive,) = entry["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["EndpointName"]]
    assert entry["EndpointName"] == "sentiment"
    values = {metric["Name"]: entry[metric["Name"]] for metric in directive["Metrics"]}
    assert values == {
        "WarmUpDuration": 60,
        "WarmUpRequests": 3,
        "WarmUpFailedRequests": 0,
        "WarmUpMissed": 0,
        "WarmUpFirstP99": 900,
        "WarmUpLastP99": 900,
    }
    assert entry["_aws"]["Timestamp"] == 1_800_000_000_500  # milliseconds


# ------------------------------------------------------------------------ deployments and keep-warm


@pytest.fixture
def started(monkeypatch):
    """What the sender was started with."""
    runs: list[dict[str, Any]] = []
    monkeypatch.setattr(controller, "start_sender", runs.append)
    monkeypatch.setenv(
        "WARM_UP",
        json.dumps({"endpoint": "Sentiment", "variants": ["a", "b"], "requests_per_zone": 40}),
    )
    return runs


def deployment_event(*statuses):
    """The event as AWS documents it, shortened."""
    detail: dict[str, Any] = {"EndpointName": "Sentiment", "EndpointStatus": "UPDATING"}
    if statuses:
        detail["PendingDeploymentSummary"] = {
            "EndpointConfigName": "configuration-2",
            "ProductionVariants": [
                {"VariantName": "primary", "VariantStatus": [{"Status": status}]}
                for status in statuses
            ],
        }
    return {
        "source": "aws.sagemaker",
        "detail": detail,
        "detail-type": "SageMaker Endpoint Deployment State Change",
    }


def test_sends_while_a_deployment_bakes(started):
    assert controller.handler(deployment_event("Baking"), CONTEXT) == "sent"
    assert started == [{"seconds": 60, "requests": 40}]
    assert sender.Run(**started[0]).concurrency == 1  # most of it reaches the serving fleet


@pytest.mark.parametrize(
    "statuses", [(), ("Creating",), ("ActivatingTraffic",), ("Deleting",), ("Updating", "Creating")]
)
def test_sends_nothing_while_no_traffic_is_on_the_new_fleet(started, statuses):
    assert controller.handler(deployment_event(*statuses), CONTEXT) == "skipped"
    assert started == []


class FakeCloudWatch:
    def __init__(self, sums):
        self.sums, self.asked = sums, []

    def get_metric_statistics(self, **given):
        self.asked.append(given)
        variant = {d["Name"]: d["Value"] for d in given["Dimensions"]}["VariantName"]
        return {"Datapoints": [{"Sum": value} for value in self.sums.get(variant, [])]}


def keep_warm(monkeypatch, sums, below=1.0):
    cloudwatch = FakeCloudWatch(sums)
    monkeypatch.setattr(
        controller, "boto3", SimpleNamespace(client={"cloudwatch": cloudwatch}.__getitem__)
    )
    order = {"requests_per_zone": 3, "below_tps": below, "window_seconds": 300}
    return controller.handler({"keep_warm": order}, CONTEXT), cloudwatch


def test_keeps_warm_while_there_is_no_traffic(monkeypatch, started):
    outcome, cloudwatch = keep_warm(monkeypatch, {})
    assert outcome == "sent"
    assert started == [{"seconds": 10, "requests": 3}]
    for asked in cloudwatch.asked:
        assert (asked["Namespace"], asked["MetricName"]) == ("AWS/SageMaker", "Invocations")
        assert {"Name": "EndpointName", "Value": "Sentiment"} in asked["Dimensions"]
        assert asked["EndTime"] - asked["StartTime"] == timedelta(minutes=5)
        assert asked["EndTime"].second == 0


@pytest.mark.parametrize(
    ("sums", "outcome"),
    [
        ({"a": [100.0, 100.0], "b": [99.0]}, "sent"),  # 299 in 300 s
        ({"a": [100.0, 100.0], "b": [100.0]}, "skipped"),  # 1 per second, of both variants together
        ({"a": [9000.0]}, "skipped"),
    ],
)
def test_leaves_it_to_callers_from_the_threshold_on(monkeypatch, started, sums, outcome):
    assert keep_warm(monkeypatch, sums)[0] == outcome
    assert len(started) == (outcome == "sent")


def test_refuses_an_event_that_it_does_not_know():
    with pytest.raises(ValueError, match="neither"):
        controller.handler({"source": "aws.ec2"}, CONTEXT)


def test_the_sender_has_time_for_a_slice_and_a_last_request():
    assert controller.SENDER_SECONDS > controller.SLICE_SECONDS + sender.READ_TIMEOUT
