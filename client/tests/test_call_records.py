"""What ``on_call`` is told of each call: its answer, its error, its time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from low_latency_client import CallRecord, GenerationFailedError, Hedging

from .callers import Caller
from .loopback_runtime import LoopbackRuntime

Make = Callable[..., Caller]


@pytest.fixture
def records() -> list[CallRecord]:
    return []


@pytest.fixture
def recording(make: Make, records: list[CallRecord]) -> Make:
    """Make clients whose records are kept."""

    def caller(**options: Any) -> Caller:
        return make(on_call=records.append, **options)

    return caller


def test_a_good_answer(recording: Make, records: list[CallRecord]) -> None:
    recording().invoke("plain")
    (record,) = records
    assert record == CallRecord(
        operation="InvokeEndpoint",
        endpoint_name="plain",
        seconds=record.seconds,
        retries=0,
        status=200,
        variant=record.variant,
    )
    assert 0 < record.seconds < 20


def test_the_variant_that_answered(recording: Make, records: list[CallRecord]) -> None:
    answer = recording().invoke("headers")
    assert records[0].variant == answer["InvokedProductionVariant"]


def test_retries_are_counted_and_their_time_is_included(
    recording: Make, records: list[CallRecord]
) -> None:
    recording().invoke("once-503")
    assert (records[0].status, records[0].retries, records[0].error) == (200, 1, None)


def test_the_time_is_the_callers(recording: Make, records: list[CallRecord]) -> None:
    recording().invoke("slow-20")
    assert records[0].seconds >= 0.02


def test_a_closed_connection_is_told_by_botocores_class(
    recording: Make, records: list[CallRecord]
) -> None:
    with pytest.raises(ConnectionClosedError):
        recording().invoke("drop")
    assert records[0].error == "ConnectionClosedError"


@pytest.mark.parametrize(("status", "code"), [(400, "ValidationError"), (424, "ModelError")])
def test_an_error_of_awss_has_its_code(
    recording: Make, records: list[CallRecord], status: int, code: str
) -> None:
    with pytest.raises(ClientError):
        recording().invoke(f"status-{status}")
    assert (records[0].status, records[0].error) == (status, code)


def test_an_error_without_an_answer_has_its_class(
    recording: Make, records: list[CallRecord]
) -> None:
    with pytest.raises(ReadTimeoutError):
        recording(read_timeout=timedelta(milliseconds=50), retries=0).invoke("slow-2000")
    assert (records[0].status, records[0].error) == (None, "ReadTimeoutError")


def test_a_response_stream_is_told_with_the_head_of_its_answer(
    recording: Make, records: list[CallRecord]
) -> None:
    caller = recording()
    stream = caller.stream("stream-3")["Body"]
    assert [record.operation for record in records] == ["InvokeEndpointWithResponseStream"]
    assert len(list(caller.each(stream))) == 3
    assert len(records) == 1


def test_a_generation_that_fails_is_told_once(recording: Make, records: list[CallRecord]) -> None:
    with pytest.raises(GenerationFailedError):
        recording().call("stream", EndpointName="stream-3", Body=b"{}")
    assert [record.error for record in records] == ["NoChunk"]  # its code


def test_a_hedged_call_is_one_call(recording: Make, records: list[CallRecord]) -> None:
    caller = recording(hedging=Hedging(delay=timedelta(milliseconds=1), budget=0.5))
    caller.invoke("slow-20")
    assert caller.client.counts.hedges == 1
    assert len(records) == 1


def test_an_error_of_the_hook_fails_no_call(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    def broken(record: CallRecord) -> None:
        raise ZeroDivisionError

    caller = make(on_call=broken)
    with caplog.at_level(logging.ERROR):
        assert caller.invoke("plain")["Body"]
        with pytest.raises(ClientError):
            caller.invoke("status-400")
    assert caplog.text.count("on_call failed for a call of endpoint") == 2


def test_what_is_refused_before_a_call_is_told_too(
    server: LoopbackRuntime, recording: Make, records: list[CallRecord]
) -> None:
    with pytest.raises(Exception, match="Body"):
        recording().ask(EndpointName="plain")
    assert [record.error for record in records] == ["ParamValidationError"]
    assert not server.runtime.requests
