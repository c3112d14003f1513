"""What functions print in CloudWatch's embedded metric format becomes metrics, on the runtime's clock."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from alarms_under_test import MINUTE, NOON, dimensions, put_alarm, state
from roles_under_test import HOSTING, allow, give_role
from stacks_under_test import zip_of

from local_sagemaker import LocalAws, RuntimeOptions

PRINTS = """
import json, time
def handler(event, context):
    for line in event["lines"]:
        if isinstance(line, dict) and "_aws" in line:
            line["_aws"].setdefault("Timestamp", int(time.time() * 1000))
        print(line if isinstance(line, str) else json.dumps(line))
"""


@pytest.fixture
def aws() -> Iterator[LocalAws]:
    """A local AWS whose clock stands still in the middle of a minute."""
    options = RuntimeOptions(clock_speed=0, clock_start=(NOON + MINUTE / 2).timestamp())
    with LocalAws.in_process(runtime=options) as running:
        yield running


@pytest.fixture
def prints(aws: LocalAws) -> LocalAws:
    """A local AWS with a function that prints what it is told."""
    make(aws, give_role(aws, "prints", *HOSTING, services=("lambda",)))
    return aws


def make(aws: LocalAws, role: str) -> None:
    aws.client("lambda").create_function(
        FunctionName="prints",
        Runtime="python3.12",
        Handler="index.handler",
        Timeout=60,
        Role=role,
        Code={"ZipFile": zip_of(PRINTS)},
    )


def log(aws: LocalAws, *lines: Any) -> None:
    payload = json.dumps({"lines": lines})
    answer = aws.client("lambda").invoke(FunctionName="prints", Payload=payload)
    assert "FunctionError" not in answer


def document(metric: Any = None, sets: Any = (("Zone",),), **root: Any) -> dict[str, Any]:
    directive = {
        "Namespace": "Test",
        "Dimensions": [*sets],
        "Metrics": [metric or {"Name": "m", "Unit": "Milliseconds"}],
    }
    return {"_aws": {"CloudWatchMetrics": [directive]}, "Zone": "a", "m": 3, **root}


def metrics(aws: LocalAws) -> set[tuple[str, tuple[str, ...]]]:
    found = aws.client("cloudwatch").list_metrics(Namespace="Test")["Metrics"]
    return {(m["MetricName"], tuple(sorted(d["Value"] for d in m["Dimensions"]))) for m in found}


def statistics(aws: LocalAws, period: int = 60, **named: str) -> list[dict[str, Any]]:
    now = aws.runtime_time()
    reach = timedelta(seconds=700 * period)  # 1,440 data points at most
    found = aws.client("cloudwatch").get_metric_statistics(
        Namespace="Test",
        MetricName="m",
        Dimensions=dimensions(**named),
        StartTime=now - reach,
        EndTime=now + reach,
        Period=period,
        Statistics=["Sum", "SampleCount", "Maximum"],
    )
    return sorted(found["Datapoints"], key=lambda point: point["Timestamp"])


def test_each_set_of_dimensions_gets_each_value(prints):
    log(
        prints,
        "a line",
        document(sets=[["Zone"], ["Zone", "From"], []], From="b", m=[1, 2.5, 2.5]),
        # As Lambda's logger writes it.
        f"[INFO]\t2026-03-02T12:00:00.000Z\tid\t{json.dumps(timed(document(m=4)))}",
    )
    assert metrics(prints) == {("m", ("a",)), ("m", ("a", "b")), ("m", ())}
    of_zone, by_both, plain = (
        statistics(prints, **named) for named in ({"Zone": "a"}, {"Zone": "a", "From": "b"}, {})
    )
    assert sum(point["Sum"] for point in of_zone) == 10
    assert {point["Unit"] for point in of_zone} == {"Milliseconds"}
    for (point,) in (by_both, plain):
        assert (point["Sum"], point["SampleCount"], point["Maximum"]) == (6, 3, 2.5)


def timed(made: dict[str, Any], seconds: float = 0.0) -> dict[str, Any]:
    made["_aws"]["Timestamp"] = int((time.time() + seconds) * 1000)
    return made


def test_data_has_the_time_of_its_document_and_its_resolution(prints):
    fine = {"Name": "m", "StorageResolution": 1}
    for metric, zone in ((fine, "fine"), ({"Name": "m"}, "coarse")):
        log(prints, timed(document(metric, Zone=zone), -600))
    (fine_point,), (coarse_point,) = (
        statistics(prints, period=1, Zone=zone) for zone in ("fine", "coarse")
    )
    late = NOON + MINUTE / 2 - 10 * MINUTE - fine_point["Timestamp"]
    assert timedelta(0) <= late <= timedelta(seconds=20)  # what printing and reading take
    assert coarse_point["Timestamp"] == NOON - 10 * MINUTE
    assert {fine_point["Unit"], coarse_point["Unit"]} == {"None"}


INVALID = {
    "no document": "{_aws}",
    "not an object": ["_aws"],
    "no time": json.dumps(document()),
    "seconds": timed(document(), -time.time() * 0.999),
    "too old": timed(document(), -15 * 86_400),
    "too new": timed(document(), 3 * 3_600),
    "a target that is not there": document(sets=[["Nothing"]]),
    "a dimension that is no text": document(Zone=1),
    "a value that is no number": document(m="3"),
    "a value that is true": document(m=True),
    "a value that is not finite": document(m=float("inf")),
    "a metric that is not there": document({"Name": "other"}),
    "too many values": document(m=[1] * 101),
    "no unit": document({"Name": "m", "Unit": "Fortnights"}),
    "no resolution": document({"Name": "m", "StorageResolution": 10}),
    "no set of dimensions": document(sets=[]),
    "too many dimensions": document(sets=[["Zone"] * 31]),
    "no list of dimensions": document(sets=["Zone"]),
}


def test_invalid_documents_are_ignored(prints):
    log(prints, *INVALID.values(), document(Zone="valid"))
    assert metrics(prints) == {("m", ("valid",))}


def test_without_the_right_to_log_there_are_no_metrics(aws):
    make(aws, give_role(aws, "silent", allow("s3:GetObject"), services=("lambda",)))
    log(aws, document())
    assert metrics(aws) == set()


def test_alarms_judge_minutes_that_are_played_by_advancing_the_clock(prints):
    client = prints.client("cloudwatch")
    alarm = {"Dimensions": dimensions(Zone="a"), "EvaluationPeriods": 3, "Threshold": 10}
    put_alarm(client, "slow", **alarm, TreatMissingData="notBreaching")
    for milliseconds, expected in ((3, "OK"), (30, "ALARM")):
        for _ in range(3):
            log(prints, document(m=milliseconds))
            prints.advance(60)
        prints.evaluate_alarms(at=prints.runtime_time())
        assert state(client, "slow") == expected
    points = statistics(prints, Zone="a")
    assert [point["Sum"] for point in points] == [3, 3, 3, 30, 30, 30]
    assert [point["Timestamp"] for point in points] == [NOON + n * MINUTE for n in range(6)]
