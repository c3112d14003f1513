"""The size of the callers' requests: one fact, for limits, cost, overhead, warm-up and load test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..facts.limits import MODEL_BODY_BYTES
from ..report.numbers import milliseconds, readable
from .decisions import PlanWarning

FAR_APART = 10
"""How many times smaller a payload must be to exercise another path than the callers' requests.
Our judgement: sizes differ, but by an order of magnitude they are other requests."""
LARGE_REQUEST_BYTES = 100_000
FAST_TRANSFER_MBIT = 50.0
"""Bytes of a request, and megabits a second that it may need, without a warning. Our judgement: AWS
publishes no bandwidth of a call."""


class RequestSize(NamedTuple):
    """The size of a caller's request."""

    size: int  # bytes
    assumed: bool  # whether it is the warm-up's, because payload_bytes states none

    @property
    def text(self) -> str:
        """The size in words, with what it is assumed from."""
        unit = "byte" if self.size == 1 else "bytes"
        if not self.assumed:
            return f"{self.size:,} {unit}"
        return f"{self.size:,} {unit} ({self.source})"

    @property
    def source(self) -> str:
        """Where the size stands."""
        if not self.assumed:
            return "payload_bytes"
        return "the warm-up's largest: payload_bytes states the callers'"


def request_size(stated: int | None, of_warm_up: int | None) -> RequestSize | None:
    """The stated size, or as an assumption that of the warm-up's payload; None without both."""
    if stated is not None:
        return RequestSize(stated, assumed=False)
    return None if of_warm_up is None else RequestSize(of_warm_up, assumed=True)


def size_difference(size: RequestSize | None, sent: int | None, sender: str) -> str:
    """That what is sent is no request of the callers' size; empty if it may be one."""
    if size is None or sent is None:
        return ""
    if sent > size.size:
        return (
            f"the {sender} sends {sent:,} bytes, and the largest request has {size.size:,} "
            f"({size.source}): one of the two is wrong"
        )
    if sent * FAR_APART <= size.size:
        return (
            f"the {sender} sends {sent:,} bytes, and callers send {size.size:,} ({size.source}): "
            "upload and decoding of their requests are not exercised. Send a payload of that size"
        )
    return ""


def size_warnings(
    size: RequestSize | None, sent_by: Mapping[str, int | None], overhead_ms: float | None
) -> Iterator[PlanWarning]:
    """Warnings about a request's size: SageMaker's limit, who sends another, the alarm on overhead."""
    if size is None:
        return
    if not size.assumed and size.size > MODEL_BODY_BYTES:
        yield PlanWarning(
            "payload-above-api-model",
            f"a payload of {size.size:,} bytes is larger than the {MODEL_BODY_BYTES:,} that "
            "the API's model allows; the developer guide says 25 MB: try it before you rely on it",
        )
    for sender, sent in sent_by.items():
        text = size_difference(size, sent, sender)
        if text:
            yield PlanWarning(f"{sender}-of-another-size", text)
    if overhead_ms is None or size.size < LARGE_REQUEST_BYTES:
        return
    mbit = size.size * 8 / 1000 / overhead_ms
    if mbit > FAST_TRANSFER_MBIT:
        yield PlanWarning(
            "payload-in-overhead",
            f"a request of {size.text} takes {milliseconds(overhead_ms)}, at which the alarm on "
            f"OverheadLatency stands, at {readable(mbit)} Mbit/s. SageMaker names the sizes of request and "
            "response among what this metric depends on, and says neither how much nor whether the "
            "upload counts: measure it with such requests, and set latency.overhead_share to the "
            "result",
        )
