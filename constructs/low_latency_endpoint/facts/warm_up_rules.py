"""Limits and rules of the warm-up."""

from __future__ import annotations

import re

from ..errors import rule
from ..report.numbers import plain_number
from .limit_kinds import USE_AN_ALLOWED_VALUE, Range, number_range
from .limits import LARGEST_BODY_BYTES

_HEADER_VALUE = re.compile(r"[\x20-\x7e]+")
_LAMBDA = "/lambda/latest/dg/gettingstarted-limits.html"
_INVOKE = "/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"
_RATE = "/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html"

LAMBDA_SECONDS = 900
"""The longest run of a function by Lambda's guide; its API model in botocore 1.44.8 says 1,800."""
SENDER_MIB = 1769
"""Memory of the function that sends: one vCPU, so that it measures the endpoint, not itself."""
CONTROLLER_MIB = 256
"""Memory of the function that decides."""
MARGIN_SECONDS = 90
"""What a warm-up needs after its time: a last request of 70 s, and the report."""

TIMEOUT_SECONDS = number_range(
    "LLE540",
    "the warm-up's timeout",
    10,
    LAMBDA_SECONDS - MARGIN_SECONDS,
    unit="seconds",
    source=_LAMBDA,
)
WARM_UP_REQUESTS = number_range(
    "LLE822", "the number of warm-up requests", 0, 1_000_000, unit="requests", source=""
)
REQUESTS = number_range(
    "LLE541",
    "the number of warm-up requests",
    1,
    1_000_000,
    unit="requests",
    fix="Count all zones. The plan's warm_up_requests reaches every worker. For no "
    "requests, leave the warm-up out.",
)
CONCURRENCY_PER_ZONE = Range(
    rule(
        "LLE542",
        "the warm-up's requests in flight per zone are out of range",
        fix=USE_AN_ALLOWED_VALUE,
    ),
    "the requests in flight per zone",
    1,
    50,
    "requests",
)
LAST = number_range(
    "LLE543",
    "the number of last requests",
    1,
    1000,
    unit="requests",
    fix="Give the last requests per zone that must meet the target: at least 100 for a p99.",
)
PAYLOAD_COUNT = number_range("LLE544", "the number of warm-up payloads", 1, 100)
PAYLOAD_BYTES = Range(
    rule("LLE545", "the warm-up payload is too large", fix=USE_AN_ALLOWED_VALUE, source=_INVOKE),
    "the payload",
    0,
    LARGEST_BODY_BYTES,
    "bytes",
)
PAYLOAD_READABLE = rule(
    "LLE546",
    "the warm-up payload cannot be read",
    fix="Name an existing file, relative to the app's working folder, or give data or text.",
)
PAYLOAD_KNOWN = rule(
    "LLE547",
    "the warm-up payload is not known at synth",
    fix="Give text without CDK tokens.",
    source="/cdk/v2/guide/tokens.html",
)
RESERVED_EXECUTIONS = 2
"""The fewest that make sense: one for the warm-up and one for what happens beside it."""
LEAST_UNRESERVED = 100
"""Executions that AWS keeps unreserved: PutFunctionConcurrency takes a reservation "as long as you
leave at least 100 simultaneous executions unreserved" (Lambda API reference)."""


def least_unreserved(quota: int) -> int:
    """Executions that an account must leave unreserved.

    That is 100, and in an account that has fewer all of them: users of new accounts, whose quota
    is 10, report a "minimum value of [10]".
    """
    return min(LEAST_UNRESERVED, quota)


RESERVED_CONCURRENCY = number_range(
    "LLE548",
    "the warm-up's reserved concurrency",
    RESERVED_EXECUTIONS,
    100,
    unit="executions",
    source="/lambda/latest/dg/configuration-concurrency.html",
    fix="Pass None to reserve nothing. 100 executions stay unreserved: a new account with "
    "10 can reserve none.",
)
KEEP_WARM_EVERY = number_range(
    "LLE549",
    "the keep-warm period",
    60,
    86_400,
    unit="seconds",
    source=_RATE,
    fix="Give whole minutes.",
)
KEEP_WARM_REQUESTS = number_range(
    "LLE550", "the number of keep-warm requests per zone", 1, 100, unit="requests"
)
BELOW_TPS = number_range(
    "LLE551",
    "the traffic below which the endpoint is kept warm",
    1e-6,
    None,
    unit="requests per second",
    whole=False,
)
KEEP_WARM_WINDOW = number_range(
    "LLE552",
    "the time over which traffic is measured",
    60,
    86_400,
    unit="seconds",
    source="/sagemaker/latest/dg/monitoring-cloudwatch.html",
    fix="Give whole minutes.",
)
OWN_TRAFFIC = rule(
    "LLE553",
    "keep-warm requests would count as traffic",
    fix="Raise below_tps above the keep-warm rate: zones x requests_per_zone / every.",
)
KEEP_WARM_TWICE = rule("LLE554", "the endpoint is already kept warm", fix="Call keep_warm once.")
WHOLE_MINUTES = rule(
    "LLE555", "a duration is not in whole minutes", fix="Give whole minutes.", source=_RATE
)
PAYLOAD_TEXT = rule(
    "LLE557",
    "the warm-up payload has a value that HTTP or JSON cannot carry",
    fix="Give JSON-safe data, and header values (content type, target model) in printable ASCII.",
)


def check_whole_minutes(limit: Range, seconds: float, where: str = "") -> int:
    """Return seconds that are whole minutes within a limit."""
    limit.check(seconds, where)
    if seconds % 60:
        raise WHOLE_MINUTES.error(
            got=f"{plain_number(seconds)} seconds", allowed="whole minutes", where=where
        )
    return int(seconds)


def keep_warm_threshold(
    *,
    zones: int,
    requests_per_zone: int,
    every_seconds: float,
    below_tps: float | None,
    where: str = "",
) -> float:
    """The traffic, in requests per second, below which an endpoint is kept warm."""
    own = zones * requests_per_zone / every_seconds
    threshold = max(1.0, 2 * own) if below_tps is None else BELOW_TPS.check(below_tps, where)
    if threshold <= own:
        raise OWN_TRAFFIC.error(
            got=f"below_tps={plain_number(threshold)}, keep-warm sends {plain_number(own)} per second",
            allowed=f"more than {plain_number(own)}",
            where=where,
        )
    return float(threshold)


def check_header(name: str, value: str, where: str = "") -> None:
    """Raise for a value that a header of HTTP cannot carry."""
    if not _HEADER_VALUE.fullmatch(value):
        raise PAYLOAD_TEXT.error(got=f"{name} {value!r}", allowed="printable ASCII", where=where)
