"""The metrics that a canary publishes for each client zone, and what it takes to publish them."""

from __future__ import annotations

from collections.abc import Iterator

NAMESPACE = "LowLatencyEndpoint"
DIMENSIONS = ("EndpointName", "Zone")

CONNECT = "CanaryConnectTime"
"""Milliseconds to open a TCP connection, the shortest of three: a round trip of the path, in which no
model has a part."""
ANSWER = "CanaryAnswerTime"
"""Milliseconds from the request to the end of the answer, on an open connection: what callers see."""
UNREACHABLE = "CanaryUnreachable"
"""1 where a caller got nothing to use, else 0: no answer, or a refusal. A model's error is an answer."""
REFUSED = "CanaryRefused"
"""1 where an answer came that no caller could use, else 0: AWS refused the call, such as by the interface
endpoint's policy, or something else on the path answered. A ValidationError is of the payload alone."""
OUT_OF_ZONE = "CanaryOutOfZone"
"""1 where the name that callers use had an address of another zone among its answers, else 0."""

PUBLISHED = {
    "connect": CONNECT,
    "answer": ANSWER,
    "unreachable": UNREACHABLE,
    "refused": REFUSED,
    "out_of_zone": OUT_OF_ZONE,
}

CANARY_MIB = 512
"""Memory of the function in each zone: a third of a vCPU, enough for one request at a time."""
RUNS_PER_HOUR = 60

LONGEST_CONNECT_MS = 10.0
"""By default: AWS calls the latency between zones of a Region single-digit milliseconds
(https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/availability-zones.html),
and a path within a zone is shorter."""
UNREACHABLE_MINUTES = 5
"""So many minutes in a row without an answer, or without a canary, are an alarm. Metrics that are
printed reach CloudWatch a minute or two later, which is no silence."""
PATH_MINUTES = 2
OUT_OF_ZONE_MINUTES = (5, 3)  # of five, three are an alarm
DIFFERENCE_MINUTES = 5  # of one median
DIFFERENCE_PERIODS = 3


def alarm_metrics(zones: int, *, compares_names: bool, difference: bool) -> Iterator[int]:
    """The alarms of a canary, each by its number of metrics."""
    yield from [1] * zones * (2 + compares_names)
    if difference:
        yield zones
