"""How an endpoint is warmed up and kept warm, and what is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from ..errors.findings import Finding, Place, breaches, finding
from ..errors.frozen import dataclass
from ..errors.given_files import bytes_of
from ..facts import warm_up_rules as rules
from ..facts.limit_kinds import Range
from ..facts.token_values import is_token
from .argument_kinds import checked_arguments
from .option import EXCLUDES_ANOTHER, NEEDS_ANOTHER, Option, Options

if TYPE_CHECKING:
    from aws_cdk import Duration

_MINUTE = timedelta(minutes=1)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class WarmUpPayload(Options):
    """The request body: exactly one of data, text, file. It ships with the function, so do not include secrets.

    Send what callers send: a body of their size, on the path their requests take.

    Raises:
        ConfigurationError: LLE545 when the body is too large, LLE546 when the file cannot be read,
            LLE547 for a CDK token, LLE557 for what JSON or a header cannot carry, LLE927 for
            several bodies or none, LLE928 for a file without its content type.

    Examples:
        >>> from low_latency_endpoint import WarmUpPayload
        >>> WarmUpPayload(data={"inputs": "I like you."}).body
        b'{"inputs":"I like you."}'
    """

    exactly_one_of: ClassVar[tuple[str, ...]] = ("data", "text", "file")

    data: Annotated[Any, Option(example={"inputs": "I like you."})] = field(
        default=None, repr=False
    )
    """A body as YAML, sent as JSON.

    In Python, any data that JSON takes.
    """
    text: Annotated[str | None, Option(example="5.1,3.5,1.4,0.2")] = field(default=None, repr=False)
    """A body as text."""
    file: Annotated[str | Path | None, Option(example="payloads/typical.json")] = None
    """A file whose content is the body, relative to this file.

    In Python, the path is relative to the app's working folder.
    """
    content_type: Annotated[str | None, Option(example="application/json")] = None
    """Content type. Default: application/json for data, text/plain for text; needed for a file."""
    accept: Annotated[str | None, Option(example="application/json")] = None
    """Content type of the response. Default: the model's own."""
    target_model: Annotated[str | None, Option(example="model-a.tar.gz")] = None
    """Multi-model: the archive to load, relative to the prefix."""
    target_container: Annotated[str | None, Option(example="second")] = None
    """Hostname of the container, if callers choose one."""

    @property
    def body(self) -> bytes:
        """What is sent."""
        if self.file is None:
            return _known("a body", self._text).encode()
        limit = rules.PAYLOAD_BYTES
        most = int(cast(float, limit.maximum))
        return bytes_of(self.file, rules.PAYLOAD_READABLE, most, limit.rule)

    @property
    def size(self) -> int | None:
        """Bytes of the body; None if its file does not exist or CDK fills it in later."""
        if self.file is not None:
            file = Path(self.file)
            return file.stat().st_size if file.is_file() else None
        text = self._text
        return None if is_token(text) else len(text.encode())

    @property
    def headers(self) -> dict[str, str]:
        """Parameters of InvokeEndpoint."""
        by_default = "text/plain; charset=utf-8" if self.data is None else "application/json"
        given = {
            "ContentType": self.content_type or by_default,
            **{header: getattr(self, name) for name, header in _HEADERS.items()},
        }
        return {name: _known(name, value) for name, value in given.items() if value is not None}

    @property
    def _text(self) -> str:
        try:
            text = self.text or ""
            if self.data is not None:
                text = json.dumps(
                    self.data, separators=(",", ":"), ensure_ascii=False, allow_nan=False
                )
            text.encode()
            return text
        except (TypeError, ValueError) as problem:
            raise rules.PAYLOAD_TEXT.error(
                got=str(problem), allowed="JSON-safe data, or text"
            ) from problem

    def _check(self) -> None:
        rules.PAYLOAD_BYTES.check(len(self._text.encode()))

    def _rules_of_bodies(self) -> Iterator[Finding]:
        place = "text" if self.data is None else "data"
        yield from breaches((place,), self._check)

    def _rules_of_files(self) -> Iterator[Finding]:
        """A file does not say what it holds."""
        yield from self._needs(
            "file", "content_type", "a payload from a file needs its content type"
        )

    def _rules(self) -> Iterator[Finding]:
        """Headers are what HTTP can carry."""
        for name, header in {"content_type": "ContentType", **_HEADERS}.items():
            value = getattr(self, name)
            if value is not None and not is_token(value):
                yield from breaches((name,), rules.check_header, header, value)


def rules_of_targets(
    payloads: Mapping[Place, WarmUpPayload], *, multi_model: bool, direct: bool
) -> Iterator[Finding]:
    """Payloads name the model or the container that the endpoint lets callers choose, and no other.

    SageMaker refuses a request to a multi-model endpoint without TargetModel, and one to another
    endpoint with it. ``direct`` is whether callers choose a container by its hostname.
    """
    for place, payload in payloads.items():
        if multi_model and payload.target_model is None:
            yield finding(
                NEEDS_ANOTHER,
                *place,
                got="a payload without target_model",
                allowed="target_model, beside multi_model",
                what="a request to a multi-model endpoint names its model; SageMaker refuses others",
                fix="Add target_model: the archive's name below the prefix.",
            )
        if not multi_model and payload.target_model is not None:
            yield finding(
                EXCLUDES_ANOTHER,
                *place,
                "target_model",
                got="target_model without multi_model",
                allowed="one of the two",
                what="SageMaker refuses requests that name a model where an endpoint has one",
                fix="Remove target_model, or set multi_model of the container.",
            )
        if direct and payload.target_container is None:
            yield finding(
                NEEDS_ANOTHER,
                *place,
                got="a payload without target_container",
                allowed="target_container, beside inference_mode Direct",
                what="with direct invocation a request names the container that answers",
                fix="Add target_container: the container's hostname.",
            )


def _known(what: str, value: str) -> str:
    if is_token(value):
        raise rules.PAYLOAD_KNOWN.error(got=f"{what} with a CDK token", allowed="plain text")
    return value


_HEADERS = {
    "accept": "Accept",
    "target_model": "TargetModel",
    "target_container": "TargetContainerHostname",
}


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class KeepWarmOptions(Options):
    """A few requests per zone on a schedule, while callers send few.

    Raises:
        ConfigurationError: LLE549 to LLE552 for values out of range, LLE555 for fractions of
            minutes, LLE801 and LLE807 for values of another kind.
    """

    every: Annotated[
        Duration | timedelta | str, Option(rules.KEEP_WARM_EVERY, "1m", known=True)
    ] = _MINUTE
    """How often, in whole minutes. Default: 1m."""
    requests_per_zone: Annotated[int, Option(rules.KEEP_WARM_REQUESTS, 1, known=True)] = 1
    """Requests per zone each time. Each reaches one instance: give about as many as a zone has.
    Default: 1."""
    below_tps: Annotated[float | None, Option(rules.BELOW_TPS, 1, known=True)] = None
    """Only while all callers together send fewer requests per second. Default: 1, or twice what
    keep-warm itself sends."""
    window: Annotated[
        Duration | timedelta | str, Option(rules.KEEP_WARM_WINDOW, "5m", known=True)
    ] = 5 * _MINUTE
    """Time over which traffic is measured, in whole minutes. Default: 5m."""

    def _rules_of_every(self) -> Iterator[Finding]:
        """EventBridge counts in minutes."""
        yield from _whole_minutes("every", self.every, rules.KEEP_WARM_EVERY)

    def _rules_of_window(self) -> Iterator[Finding]:
        """SageMaker's metrics count in minutes."""
        yield from _whole_minutes("window", self.window, rules.KEEP_WARM_WINDOW)


def _whole_minutes(
    name: str, lasting: Duration | timedelta | str, limit: Range
) -> Iterator[Finding]:
    if isinstance(lasting, timedelta) and limit.holds(lasting.total_seconds()):
        seconds = lasting.total_seconds()
        yield from breaches((name,), rules.check_whole_minutes, limit, seconds)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class WarmUpOptions(Options):
    """Test requests after each deployment, until the endpoint meets the target.

    Raises:
        ConfigurationError: LLE540, LLE542 to LLE544, LLE548, LLE822 for values out of range,
            LLE801 and LLE807 for values of another kind, LLE360 for a mapping, LLE929 for
            ``keep_warm`` without a warm-up.

    Examples:
        >>> from low_latency_endpoint import KeepWarmOptions, WarmUpOptions, WarmUpPayload
        >>> WarmUpOptions(payload=WarmUpPayload(data={"inputs": "I like you."}),
        ...               keep_warm=KeepWarmOptions(requests_per_zone=2)).on_miss
        'fail'
    """

    payload: Annotated[
        WarmUpPayload | Sequence[WarmUpPayload], Option(example={"data": {"inputs": "I like you."}})
    ]
    """A request like those of your callers. Several take turns, for example one for each model of a
    multi-model endpoint."""
    requests: Annotated[int | None, Option(rules.WARM_UP_REQUESTS, 500)] = None
    """Minimum number of requests, in all zones together; 0 for no warm-up. Default: the plan's,
    enough to reach every worker.

    A :class:`WarmUp` by itself sends 100.
    """
    concurrency_per_zone: Annotated[int, Option(rules.CONCURRENCY_PER_ZONE, 4)] = 4
    """Requests in flight in each zone. Default: 4."""
    last: Annotated[int, Option(rules.LAST, 50)] = 50
    """How many of the last requests of each zone must meet the latency target. Default: 50."""
    timeout: Annotated[
        Duration | timedelta | str, Option(rules.TIMEOUT_SECONDS, "10m", known=True)
    ] = 10 * _MINUTE
    """How long to send requests, up to 13m30s. Default: 10m."""
    on_miss: Annotated[Literal["fail", "warn"], Option()] = "fail"
    """If the target is missed: fail rolls the deployment back, warn only reports it. Default: fail.
    """
    during_deployments: Annotated[bool, Option()] = True
    """Also send while a deployment's new fleet bakes, one request at a time in each zone. Default:
    true."""
    metrics: Annotated[bool, Option()] = False
    """Also publish the report as custom metrics, in the namespace LowLatencyEndpoint. Default:
    false."""
    reserved_concurrency: Annotated[int | None, Option(rules.RESERVED_CONCURRENCY, 2)] = None
    """Concurrent executions that each of the two functions reserves and cannot exceed. AWS keeps at
    least 100 of an account's unreserved, so a new account may refuse any reservation. Default:
    none."""
    keep_warm: Annotated[KeepWarmOptions | None, Option(example={"every": "1m"})] = None
    """Keep the endpoint warm while traffic is low. Default: off."""

    @property
    def payloads(self) -> tuple[WarmUpPayload, ...]:
        """All that is sent."""
        stated = self.payload
        return (stated,) if isinstance(stated, WarmUpPayload) else tuple(stated)

    @property
    def largest_bytes(self) -> int | None:
        """Bytes of the largest payload; None if none is known."""
        sizes = [payload.size for payload in self.payloads]
        return max((size for size in sizes if size is not None), default=None)

    def _rules(self) -> Iterator[Finding]:
        """Something is sent."""
        yield from breaches(("payload",), rules.PAYLOAD_COUNT.check, len(self.payloads))
        if self.requests == 0 and self.keep_warm is not None:
            yield finding(
                EXCLUDES_ANOTHER,
                "keep_warm",
                got="keep_warm beside requests of 0",
                allowed="requests of 1 or more, or no requests",
                what="keep-warm is a part of the warm-up, which requests of 0 turn off",
                fix="Remove requests or keep_warm.",
            )
