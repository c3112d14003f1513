"""What a load test takes from the settings file: target, peak, payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import rule
from ...facts.prices import Price
from ...options.latency_target import LatencyTarget
from ...options.load import TokenTraffic
from ...options.warm_up import WarmUpPayload
from ...settings import Settings, load_settings, planned_variants
from ..engine.payloads import Payloads
from .judging import FIRST_TOKEN, INTER_TOKEN

SETTINGS_ENDPOINT = rule(
    "LLT111",
    "the settings file does not say which endpoint is meant",
    fix="State endpoint_name in it, or name the endpoint by its key.",
)


@dataclass(frozen=True)
class StatedEndpoint:
    """One endpoint as its settings state it; ``None`` for what they do not."""

    key: str  # under ``endpoints``
    endpoint_name: str | None  # at AWS
    region: str | None
    targets: dict[str, float]  # seconds by statistic
    peak_tps: float | None
    safety_factor: float | None
    payloads: Payloads | None  # the warm-up's
    content_type: str | None  # the warm-up's
    target_model: str | None
    # that hold the peak by the plan; ``None`` without a throughput
    planned_instances: int | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)  # by item
    streaming: bool = False  # whether answers are streamed
    tokens: TokenTraffic | None = None  # of a language model's requests


def endpoint_key(settings: Settings, name: str) -> str:
    """The key of an endpoint, by its name at AWS or its key; a lone one without a name is meant."""
    (key, first), *others = settings.endpoints.items()
    return key if not others and first.endpoint_name is None else settings.key_of(name)


def stated_endpoint(path: Path, name: str) -> StatedEndpoint:
    """Read what the settings file states about an endpoint."""
    settings = load_settings(path)
    key = endpoint_key(settings, name)
    one = settings.endpoints[key]
    payload = one.warm_up.payloads[0] if one.warm_up else None
    throughput = one.throughput
    return StatedEndpoint(
        key=key,
        endpoint_name=one.endpoint_name,
        region=settings.region,
        targets=_targets(one.latency) if one.latency else {},
        peak_tps=throughput.peak_tps if throughput else None,
        safety_factor=throughput.safety_factor if throughput else None,
        payloads=None if payload is None else _payloads(payload),
        content_type=payload.headers["ContentType"] if payload else None,
        target_model=None if payload is None else payload.target_model,
        planned_instances=sum(
            each.plan.fleet.at_peak for each in planned_variants(settings, key) if not each.shadow
        )
        if throughput
        else None,
        prices=settings.prices,
        streaming=bool(one.streaming)
        or one.tokens is not None
        or (one.latency is not None and one.latency.of_tokens),
        tokens=one.tokens,
    )


def _targets(target: LatencyTarget) -> dict[str, float]:
    """Seconds by statistic, as a load test calls them."""
    kinds = (
        ("", target.milliseconds),
        (FIRST_TOKEN, target.ttft_milliseconds),
        (INTER_TOKEN, target.itl_milliseconds),
    )
    return {prefix + name: value / 1000 for prefix, found in kinds for name, value in found.items()}


def _payloads(payload: WarmUpPayload) -> Payloads:
    if payload.file is not None:
        return Payloads.of_file(Path(payload.file))
    return Payloads.of_bytes(payload.body)
