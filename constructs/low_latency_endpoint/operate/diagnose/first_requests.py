"""The first request that an endpoint or its fleet ever got, however long after it was there."""

from __future__ import annotations

from datetime import datetime, timedelta

from ...account.calls import Account
from ...account.endpoints import DeployedEndpoint
from ...account.metrics import period_for, read_queries, statistic_of, variant_query
from .measurements import FirstRequest, ObservedDeployment, VariantReading
from .thresholds import DAY


def first_request(
    account: Account,
    endpoint: DeployedEndpoint,
    deployment: ObservedDeployment | None,
    now: datetime,
    variant: VariantReading,
    start: datetime,
    period: timedelta,
) -> FirstRequest | None:
    """The one to a variant, if it came in the window; ``None`` where an earlier one may have come.

    The first of the window is the first ever where nothing came from the creation on.
    """
    requests = []
    created = endpoint.description.get("CreationTime")
    if created and created >= start - DAY:
        requests += _first_since(variant, created, "", period)
    if deployment and not deployment.first:
        requests += _first_to_fleet(variant, deployment, period)
    for request in requests:
        if request.since >= start or _is_silent(account, endpoint, variant, request, start, now):
            return request
    return None


def _first_since(
    variant: VariantReading, since: datetime, configuration: str, period: timedelta
) -> list[FirstRequest]:
    """The first request of the window that came after a time; none where there is none."""
    counts = variant.get("Invocations", "Sum").points
    times = [time for time, count in counts.items() if count > 0 and time > since - period]
    return [FirstRequest(min(times), since, configuration)] if times else []


def _first_to_fleet(
    variant: VariantReading, deployment: ObservedDeployment, period: timedelta
) -> list[FirstRequest]:
    """The same of a fleet that waited for it; without a pause the deployment dates what is new."""
    requests = _first_since(variant, deployment.done, deployment.configuration, period)
    return [
        request
        for request in requests
        if request.time > request.since + period and _served(variant, deployment, request.time)
    ]


def _served(variant: VariantReading, deployment: ObservedDeployment, first: datetime) -> bool:
    """Whether the new fleet was there by then: by its own metrics, else by the end of the update."""
    fleet = variant.fleets.get(deployment.configuration, {})
    own = statistic_of(fleet, "Invocations", "Sum").points
    times = [time for time, count in own.items() if count > 0]
    return min(times) == first if times else deployment.until is not None


def _is_silent(
    account: Account,
    endpoint: DeployedEndpoint,
    variant: VariantReading,
    request: FirstRequest,
    start: datetime,
    now: datetime,
) -> bool:
    """Whether none came before the window, of which the window's metrics say nothing."""
    query = variant_query(endpoint.name, variant.name, "Invocations", "Sum")
    earlier = account.known(
        "requests before the window",
        read_queries,
        [query],
        request.since,
        start,
        period_for(request.since, start, now),
    )
    return earlier is not None and not earlier[query].sum
