"""``low-latency plan --from-canary``: the overhead that the canary measured, in the settings."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from ..account.calls import Account
from ..account.canary import ZoneReading, read_canary
from ..account.clock import account_now
from ..account.endpoints import existing_endpoint
from ..account.metrics import median, read_queries, variant_query
from ..account.sessions import aws_errors_in_words, open_clients
from ..errors import rule
from ..options.canary import canary_bytes
from ..options.latency_target import OVERHEAD_SHARE
from ..options.option import NEEDS_ANOTHER
from ..plan.decisions import Explanation
from ..plan.request_size import request_size, size_difference
from ..report.numbers import milliseconds
from ..settings import explain_variants, load_settings, region_of
from ..settings.adopted_measurement import AdoptedMeasurement
from ..settings.endpoint import EndpointSettings
from ..settings.yaml_editing import checked_edit
from .chosen_endpoints import stated_key, stated_name

CANARY_MEASURED = rule(
    "LLA106",
    "the canary has not measured enough",
    fix="Set `canary` in the settings, deploy, and plan again after an hour.",
)
CANARY_OF_ANOTHER_SIZE = rule(
    "LLA107",
    "the canary's requests are not of the callers' size",
    fix="Send a request like the callers' as canary.payload, deploy, and plan again after an hour.",
)
OVERHEAD_BELOW_ZERO = rule(
    "LLA108",
    "the canary waited less than the model took",
    fix="Compare like with like: send a request like the callers' as canary.payload.",
)
_DAYS, _HOUR = timedelta(days=7), timedelta(hours=1)


def adopt_overhead(settings: Path, endpoint: str | None) -> AdoptedMeasurement:
    """Read what the deployed endpoint's canary measured, and put it into the settings' text."""
    read = load_settings(settings)
    key = stated_key(read, endpoint, settings)
    stated = read.endpoints[key].latency
    tightest = stated.tightest if stated else None
    if tightest is None:
        raise NEEDS_ANOTHER.error(
            got=f"endpoints.{key} without a latency target of the whole call",
            allowed="a target such as latency.p99, of which the overhead is a share",
            where=str(settings),
        )
    _check_size(read.endpoints[key])
    name, _ = stated_name(settings, None, None, endpoint)
    client, region = open_clients(None, region_of(read))
    with aws_errors_in_words():
        zone, overhead = _overhead(Account(client, region), name)
    share = math.ceil(100 * overhead / tightest[1]) / 100
    share = min(max(share, OVERHEAD_SHARE.minimum or 0.0), OVERHEAD_SHARE.maximum or 1.0)
    edit, changed = checked_edit(settings, {("endpoints", key, "latency", "overhead_share"): share})
    how = (
        f"callers in {zone}, the slowest zone, waited {milliseconds(overhead)} longer than the model "
        f"took (medians of a week), of a target of {tightest[0]} {milliseconds(tightest[1])}"
    )
    after = explain_variants(changed)
    after[key] = _noted(after[key], f"measured by the canary of {name}: {how}")
    return AdoptedMeasurement(
        key=key,
        source=f"canary of {name}",
        how=how,
        edit=edit,
        settings_before=read,
        settings_after=changed,
        after=after,
        measured={"overhead_share": share, "overhead_ms": overhead},
    )


def _check_size(endpoint: EndpointSettings) -> None:
    """Raise if the overhead of what the canary sends is not that of the callers' requests."""
    sent = canary_bytes(endpoint.canary, endpoint.warm_up)
    of_warm_up = endpoint.warm_up.largest_bytes if endpoint.warm_up else None
    size = request_size(endpoint.payload_bytes, of_warm_up)
    difference = size_difference(size, sent, "canary")
    if difference:
        raise CANARY_OF_ANOTHER_SIZE.error(
            got=difference, allowed="a payload of the callers' size", where="canary.payload"
        )


def _overhead(account: Account, name: str) -> tuple[str, float]:
    """The zone whose callers wait longest beside the model's time, and these milliseconds."""
    endpoint, end = existing_endpoint(account, name), account_now()
    window = (end - _DAYS, end, _HOUR)
    zones = [each for each in read_canary(account, name, *window) if each.answer]
    queries = [
        variant_query(name, variant, "ModelLatency", "p50", 1000.0) for variant in endpoint.variants
    ]
    measured = read_queries(account, queries, *window).values()
    # The canary's requests are among them, so the model has taken its time whenever it answered.
    model = max((each.median for each in measured if each.median is not None), default=None)
    if not zones or model is None:
        raise CANARY_MEASURED.error(
            got=f"nothing of {name} in a week", allowed="an hour of answers in a zone"
        )

    def waited(reading: ZoneReading) -> float:
        return (median(reading.answer.points.values()) or 0.0) - model

    slowest = max(zones, key=waited)
    overhead = waited(slowest)
    if overhead <= 0:
        raise OVERHEAD_BELOW_ZERO.error(
            got=f"{milliseconds(-overhead)} less than the model took, in {slowest.zone}",
            allowed="more than the model's time: the overhead comes on top of it",
        )
    return slowest.zone, overhead


def _noted(plan: Explanation, note: str) -> Explanation:
    """The plan with the source of the thresholds that the share splits."""
    decisions = tuple(
        replace(each, note=note) if {"share", "target in ms"} <= each.inputs.keys() else each
        for each in plan
    )
    return replace(plan, decisions=decisions)
