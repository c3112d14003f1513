"""The alarms on PromQL queries: each finds data, since one that finds none never alarms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

from ...account.alarms import alarm_query, alarms_named
from ...account.calls import Account
from ...account.clock import account_now
from ...account.queries import START_ENRICHMENT, enrichment_status, label_values, query_samples
from ...account.sessions import Unreadable
from ...account.stacks import stack_ids, template_resources
from ...plan.container_metrics import ENDPOINT_LABEL
from ...plan.query_reading import data_part, label_in, metric_names_in
from ..checking.checks import Outcome, check, failed, guarded, passed, unknown, warned
from .context import VerificationContext

ALARM = "AWS::CloudWatch::Alarm"
LATELY = timedelta(hours=3)

_PROMQL_ALARMS = "/AmazonCloudWatch/latest/monitoring/alarm-promql.html"
_SERVERS = ("vllm", "sglang")
_SEND = "Send requests to the endpoint, then verify again."


@check(
    "LLV504",
    "The alarms on queries find data",
    how="Each query without its threshold, now; one that finds nothing never alarms.",
    source=_PROMQL_ALARMS,
)
def find_data(context: VerificationContext) -> Iterator[Outcome]:
    account = context.account
    resources = template_resources(account, context.stack_name)
    stated = {
        logical_id: name
        for logical_id, name in stack_ids(account, context.stack_name, ALARM).items()
        if "EvaluationCriteria" in (resources.get(logical_id, {}).get("Properties") or {})
    }
    found = alarms_named(account, stated.values()) if stated else {}
    now = account_now()
    for logical_id, name in sorted(stated.items()):
        alarm = found.get(name)
        if alarm is not None:  # one that is gone is LLV501's affair
            yield from guarded(_looked_at, account, logical_id, alarm, now, about=logical_id)


def _looked_at(
    account: Account, about: str, alarm: Mapping[str, Any], now: datetime
) -> Iterator[Outcome]:
    query = alarm_query(alarm)
    if not query:
        yield unknown("this boto3 does not tell its query", "Upgrade boto3.", about=about)
        return
    data = data_part(query)
    if data is None:
        yield unknown(
            f"which part of its query is data and which a threshold cannot be told: {query[:120]}",
            "Run it without the threshold in CloudWatch's Query Studio.",
            about=about,
        )
        return
    values = [each.value for each in query_samples(account, data, now)]
    measured = [value for value in values if not math.isnan(value)]
    if measured:
        many = f" ({len(measured)} series)" if len(measured) > 1 else ""
        yield passed(f"finds {max(measured):.4g} now{many}", about=about)
    elif values:
        yield warned("its metric is there, but nothing was measured lately", _SEND, about=about)
    else:
        yield from _nothing_found(account, about, query, data, now)


def _nothing_found(
    account: Account, about: str, query: str, data: str, now: datetime
) -> Iterator[Outcome]:
    """Tell a wrong name, no data of late, and missing enrichment apart, as far as can be."""
    wanted = metric_names_in(data)
    known = label_values(account, "__name__", now - LATELY, now)
    there = [name for name in wanted if name in known]
    if there:
        yield _not_now(account, about, there, label_in(query, ENDPOINT_LABEL), now)
    elif any(name.startswith(_SERVERS) for name in known):
        yield failed(
            f"CloudWatch has no metric of {_listed(wanted) or 'its names'}, so it never alarms; "
            f"it has {_listed(_alike(wanted, known))}",
            "Use a name that is there, for instance that of another server or version; without "
            "one, tell us: AWS's pages contradict each other on the names.",
            about=about,
        )
    else:
        yield _no_metrics_at_all(account, about)


def _not_now(
    account: Account, about: str, there: Sequence[str], endpoint: str, now: datetime
) -> Outcome:
    if not endpoint:
        return warned(f"{_listed(there)} had data in the last 3 hours, not now", _SEND, about=about)
    owners = {
        owner
        for name in there
        for owner in label_values(account, ENDPOINT_LABEL, now - LATELY, now, metric=name)
    }
    if endpoint in owners:
        return warned(
            f"{endpoint} had {_listed(there)} in the last 3 hours, and has none now",
            f"Is an instance in service? `low-latency diagnose {endpoint}`. {_SEND}",
            about=about,
        )
    return failed(
        f"CloudWatch has {_listed(there)} of {_listed(sorted(owners)) or 'no endpoint'}, not of "
        f"{endpoint}, so it never alarms",
        "Some minutes after the deploy, verify again. Else: MetricsConfig."
        "EnableDetailedObservability, and the server's own metrics (SGLang: "
        "SM_SGLANG_ENABLE_METRICS=true).",
        about=about,
    )


def _no_metrics_at_all(account: Account, about: str) -> Outcome:
    none = "CloudWatch has no metrics of any language model's server, so it never alarms"
    try:
        status = enrichment_status(account)
    except Unreadable as refusal:
        status = ""
        none += f"; whether OTel enrichment runs is not known ({refusal.evidence})"
    if status == "Stopped":
        return failed(
            f"{none}; OTel enrichment is stopped, which SageMaker's guide calls required",
            START_ENRICHMENT,
            about=about,
        )
    return warned(
        f"{none}{'; OTel enrichment runs' if status else ''}",
        "Some minutes after the deploy, verify again. Else: MetricsConfig."
        "EnableDetailedObservability, and whether the server answers /metrics (SGLang: "
        "SM_SGLANG_ENABLE_METRICS=true).",
        about=about,
    )


def _alike(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """The names there are that look most like the wanted, else some of the servers'."""
    near = [name for each in wanted for name in get_close_matches(each, known, n=2)]
    others = [name for name in known if name.startswith(_SERVERS)]
    return list(dict.fromkeys(near or others))[:4]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
