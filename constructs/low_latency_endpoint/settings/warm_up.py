"""Settings of the warm-up after each deployment, and of keep-warm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ..errors.findings import Finding, breaches, finding
from ..options.rules import NEEDS_ANOTHER
from ..plan import warm_up_rules as rules
from ..plan.endpoint_request import WARM_UP_REQUESTS
from .fields import Asset, Limited, duration_of
from .model_base import SettingsModel, optional


class WarmUpPayloadSettings(SettingsModel):
    """What is sent: exactly one of data, text, file. Ships with the function, so no secrets."""

    exactly_one_of: ClassVar[tuple[str, ...]] = ("data", "text", "file")

    data: Any = optional("A body as YAML, sent as JSON.", example={"inputs": "I like you."})
    text: str | None = optional("A body as text.", example="5.1,3.5,1.4,0.2")
    file: Asset | None = optional(
        "A file whose content is the body, relative to this file.", example="payloads/typical.json"
    )
    content_type: str | None = optional(
        "Content type. Default: application/json for data, text/plain for text; needed for a file.",
        example="application/json",
    )
    target_model: str | None = optional(
        "Multi-model: the archive to load, relative to the prefix.", example="model-a.tar.gz"
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """A file does not say what it holds; headers are what HTTP can carry."""
        for name, header in (("content_type", "ContentType"), ("target_model", "TargetModel")):
            if isinstance(given.get(name), str):
                yield from breaches((name,), rules.check_header, header, given[name])
        text = given.get("text")
        if isinstance(text, str):
            yield from breaches(("text",), rules.PAYLOAD_BYTES.check, len(text.encode()))
        if "file" in given and "content_type" not in given:
            yield finding(
                NEEDS_ANOTHER,
                "file",
                got="file without content_type",
                allowed="content_type beside file",
                what="a payload from a file needs its content type",
                fix="Add content_type: application/json, or what the file holds.",
            )


class KeepWarmSettings(SettingsModel):
    """A few requests per zone on a schedule, while callers send hardly any."""

    every: Annotated[timedelta, Limited(rules.KEEP_WARM_EVERY)] = optional(
        "How often, in whole minutes. Default: 1m.", example="1m", default=timedelta(minutes=1)
    )
    requests_per_zone: Annotated[int, Limited(rules.KEEP_WARM_REQUESTS)] = optional(
        "Requests per zone each time. Default: 1.", example=1, default=1
    )
    below_tps: Annotated[float, Limited(rules.BELOW_TPS)] | None = optional(
        "Only while all callers send fewer requests per second. Default: 1, or twice "
        "what keep-warm itself sends.",
        example=1,
    )
    window: Annotated[timedelta, Limited(rules.KEEP_WARM_WINDOW)] = optional(
        "Time over which traffic is measured, in whole minutes. Default: 5m.",
        example="5m",
        default=timedelta(minutes=5),
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """EventBridge and SageMaker's metrics count in minutes."""
        for name, limit in (("every", rules.KEEP_WARM_EVERY), ("window", rules.KEEP_WARM_WINDOW)):
            lasting = duration_of(given.get(name))
            if lasting is not None and limit.holds(lasting.total_seconds()):
                yield from breaches(
                    (name,), rules.check_whole_minutes, limit, lasting.total_seconds()
                )


class WarmUpSettings(SettingsModel):
    """Test requests after each deployment, until the endpoint is as fast as it should be."""

    payload: WarmUpPayloadSettings = Field(
        examples=[{"data": {"inputs": "I like you."}}],
        description="A request like those of the callers.",
    )
    requests: Annotated[int, Limited(WARM_UP_REQUESTS)] | None = optional(
        "Fewest requests to send; 0 for no warm-up. Default: the plan's, which reach every worker.",
        example=500,
    )
    concurrency_per_zone: Annotated[int, Limited(rules.CONCURRENCY_PER_ZONE)] = optional(
        "Requests in flight in each zone. Default: 4.", example=4, default=4
    )
    last: Annotated[int, Limited(rules.LAST)] = optional(
        "How many of the last requests of each zone must meet the latency target. Default: 50.",
        example=50,
        default=50,
    )
    timeout: Annotated[timedelta, Limited(rules.TIMEOUT_SECONDS)] = optional(
        "How long requests are sent, up to 13m30s. Default: 10m.",
        example="10m",
        default=timedelta(minutes=10),
    )
    on_miss: Literal["fail", "warn"] = optional(
        "What a missed target does: fail rolls the deployment back, warn only says so. Default: "
        "fail.",
        default="fail",
    )
    during_deployments: bool = optional(
        "Also send while a deployment's new fleet bakes. Default: true.", default=True
    )
    metrics: bool = optional(
        "Also publish the report as custom metrics. Default: false.", default=False
    )
    reserve_concurrency: bool = optional(
        "Reserve two executions for each of the two functions; an account that is too new refuses "
        "that. Default: false.",
        default=False,
    )
    keep_warm: KeepWarmSettings | None = optional(
        "Keep the endpoint warm while traffic is low. Default: off.", example={"every": "1m"}
    )
