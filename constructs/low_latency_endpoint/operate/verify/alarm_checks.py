"""The alarms: all there, with the plan's thresholds, and with data to watch, by queries too."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

from ...account.alarms import (
    Alarm,
    alarm_metrics,
    alarm_query,
    alarm_reading,
    alarms_named,
    alarms_on_queries,
    dimension_values,
)
from ...account.calls import Account
from ...account.clock import account_now
from ...account.drift import ALARM, COMPOSITE, REVERTED, alarm_drifts
from ...account.metrics import dimensions_of, metric_data
from ...account.queries import START_ENRICHMENT, enrichment_status, label_values, query_samples
from ...account.sessions import Unreadable
from ...account.stacks import keep_owner
from ...errors import ConfigurationError
from ...errors.shell_words import shell_word
from ...facts.container_metrics import ENDPOINT_LABEL, data_part, label_in, metric_names_in
from ...report.numbers import milliseconds, readable
from ..checking.checks import Outcome, check, endpoint_check, failed, passed, unknown, warned
from ..diagnose.reading import diagnose
from .context import VerificationContext, VerifiedEndpoint
from .fleet_checks import by_hand

WINDOW = timedelta(hours=3)
PERIOD_SECONDS = 300

_ALARMS = "/AmazonCloudWatch/latest/monitoring/AlarmThatSendsEmail.html"
_METRICS = "/sagemaker/latest/dg/monitoring-cloudwatch.html"


@check(
    "LLV501",
    "The stack's alarms match the template",
    how="Finds deleted, changed or silenced alarms. A silenced one fails if it has actions of its own.",
    source=_ALARMS,
)
def as_stated(context: VerificationContext) -> Iterator[Outcome]:
    count = sum(len(context.ids(kind)) for kind in (ALARM, COMPOSITE))
    drifted = list(alarm_drifts(context.account, context.stack_name))
    yield from by_hand(drifted)
    right = count - len({drift.named for drift in drifted})
    if right:
        yield passed(f"{right} of {count} alarms as stated")


def _planned(context: VerifiedEndpoint) -> Iterator[tuple[str, str, float, dict[str, Alarm]]]:
    """What the plan wants watched, twice, above which threshold, and the stack's alarms by name."""
    if not context.stated.plan:
        raise Unreadable("the template has no plan to compare with")
    alarms = alarms_named(context.account, context.stack.ids(ALARM).values())
    wanted = context.stated.plan.get("alarms", {})
    return ((about, about, threshold, alarms) for about, threshold in wanted.items())


@endpoint_check(
    "LLV502",
    "The alarms have the plan's thresholds",
    how="Thresholds of your own win, and are named.",
    source=_METRICS,
    each=_planned,
)
def planned_thresholds(
    context: VerifiedEndpoint, about: str, wanted: float, alarms: dict[str, Alarm]
) -> Outcome:
    resources = context.stack.resources
    watched, _, statistic = about.rpartition(" ")
    if " " in watched:  # words, not a metric's name: an alarm on a query, in seconds
        meaning = re.sub("[ -]", "_", watched)
        thresholds = sorted(
            1000 * metric.threshold
            for _, metric in alarms_on_queries(alarms.values(), context.stated.name)
            if (metric.meaning, metric.percentile) == (meaning, statistic)
        )
        return _compared(thresholds, wanted)
    found = [
        (alarm["Threshold"] / 1000, resources.get(logical_id, {}).get("Properties", {}))
        for logical_id, name in context.stack.ids(ALARM).items()
        if (alarm := alarms.get(name, {})).get("MetricName") == watched
        and statistic in (alarm.get("Statistic"), alarm.get("ExtendedStatistic"))
        and context.stated.name in dimension_values(alarm, "EndpointName")
        and not _new_fleet_only(alarm)
    ]
    stated = [each["Threshold"] / 1000 for _, each in found if "Threshold" in each]
    return _compared([value for value, _ in found], wanted, stated)


def _compared(found: Sequence[float], wanted: float, stated: Collection[float] = ()) -> Outcome:
    """Compare alarm thresholds with the plan's and the template's, in milliseconds."""
    if not found:
        fix = "Turned off in the settings, or deleted: see LLV501."
        return warned("no alarm watches it", fix)
    shown = "above " + ", ".join(milliseconds(value, 6) for value in found)
    if any(math.isclose(value, wanted) for value in found):
        return passed(shown)
    says = f"the plan says {milliseconds(wanted, 6)}"
    if set(found) <= set(stated):
        return passed(f"{shown}, stated in the settings; {says}")
    return failed(f"{shown}, {says}", REVERTED)


@endpoint_check(
    "LLV503",
    "The alarms have data, none is in alarm, and measurements fit the alarms and scaling",
    how="Reads the last three hours. Includes LLD109, LLD110, LLD145, LLD401 and LLD604 of "
    "`low-latency diagnose`.",
    source=_METRICS,
)
def have_data(context: VerifiedEndpoint) -> Iterator[Outcome]:
    alarms = alarms_named(context.account, context.stack.ids(ALARM).values())
    mine = {
        name: alarm
        for name, alarm in alarms.items()
        if context.stated.name in dimension_values(alarm, "EndpointName")
    }
    titles = {name: alarm_reading(alarm).title for name, alarm in mine.items()}
    for name, alarm in mine.items():
        if alarm.get("StateValue") == "ALARM" and not _tells_of_deployments(alarm):
            yield warned(
                f"{titles[name]} is in alarm: {alarm.get('StateReason', '')} ({name})",
                f"`low-latency diagnose {shell_word(context.stated.name)}`.",
                about="state",
            )
    # AWS names no data of those on the new fleet before an update.
    watched = [name for name, alarm in mine.items() if not _new_fleet_only(alarm)]
    silent = _without_data(context.account, watched, mine)
    if not watched:
        yield warned(
            "the stack has no alarms on this endpoint",
            "Set latencies and thresholds in the settings.",
        )
    elif len(silent) == len(watched):
        yield warned(
            f"none of the {len(watched)} alarms has had data in the last 3 hours",
            "Send requests to the endpoint, then verify again.",
        )
    elif silent:
        yield warned(
            f"{len(watched) - len(silent)} of {len(watched)} alarms have data; not "
            f"{', '.join(titles[name] for name in silent)}",
            "Send requests, then verify again; a metric that stays silent is not "
            "published for this endpoint.",
        )
    else:
        blind = sum(mine[name].get("StateValue") == "INSUFFICIENT_DATA" for name in watched)
        yield passed(
            f"all {len(watched)} alarms have had data in the last 3 hours"
            + (f"; {blind} have judged nothing yet (INSUFFICIENT_DATA)" if blind else "")
        )
    if context.read() is not None:
        yield from _fits(context)


def _fits(context: VerifiedEndpoint) -> Iterator[Outcome]:
    """Findings of the diagnosis about numbers that a user stated."""
    account, end = context.account, account_now()
    name, start = context.stated.name, end - WINDOW
    keep_owner(*context.where)
    try:
        made = diagnose(account, name, start=start, end=end, now=end, region=account.region)
    except ConfigurationError as refusal:
        raise Unreadable(str(refusal)) from refusal
    for finding in made.findings:
        if finding.id in ("LLD109", "LLD110", "LLD145", "LLD401", "LLD604"):
            words = "; ".join(text.text for text in finding.evidence)
            yield failed(f"{finding.kind.title}: {words}", finding.besides, about=finding.id)
    for missing in made.measurements.unknown:
        yield unknown(f"{missing.what}: {missing.why}", about=missing.what)


def _without_data(
    account: Account, watched: Iterable[str], alarms: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The alarms of which no metric has had data."""
    queries = [
        (name, {"Metric": metric["Metric"], "Period": PERIOD_SECONDS, "Stat": "SampleCount"})
        for name in watched
        for metric in alarm_metrics(alarms[name])
    ]
    end = account_now().replace(second=0, microsecond=0)
    found = metric_data(
        account,
        [
            {"Id": f"m{number}", "ReturnData": True, "MetricStat": query}
            for number, (_, query) in enumerate(queries)
        ],
        end - WINDOW,
        end + timedelta(minutes=1),
    )
    seen = {queries[int(each["Id"][1:])][0] for each in found if each.get("Values")}
    return sorted(set(watched) - seen)


def _new_fleet_only(alarm: Mapping[str, Any]) -> bool:
    return bool(dimension_values(alarm, "EndpointConfigName"))


def _tells_of_deployments(alarm: Mapping[str, Any]) -> bool:
    """Whether it compares the new fleet with the whole endpoint: no fault when it is on."""
    named = {
        "EndpointConfigName" in dimensions_of(watched["Metric"]) for watched in alarm_metrics(alarm)
    }
    return named == {True, False}


_PROMQL_ALARMS = "/AmazonCloudWatch/latest/monitoring/alarm-promql.html"
_SERVERS = ("vllm", "sglang")
_SEND = "Send requests to the endpoint, then verify again."


def _on_queries(context: VerificationContext) -> Iterator[tuple[str, Alarm, datetime]]:
    """Logical ID and alarm, all at one moment; one that is gone is LLV501's affair."""
    resources, now = context.resources, account_now()
    stated = {
        logical_id: name
        for logical_id, name in context.ids(ALARM).items()
        if "EvaluationCriteria" in (resources.get(logical_id, {}).get("Properties") or {})
    }
    found = alarms_named(context.account, stated.values()) if stated else {}
    return ((each, found[name], now) for each, name in sorted(stated.items()) if name in found)


@check(
    "LLV504",
    "The alarms on queries find data",
    how="Runs each query now, without its threshold. A query that finds nothing never alarms.",
    source=_PROMQL_ALARMS,
    each=_on_queries,
)
def find_data(context: VerificationContext, alarm: Alarm, now: datetime) -> Outcome:
    account, query = context.account, alarm_query(alarm)
    if not query:
        return unknown("this boto3 does not return its query", "Upgrade boto3.")
    data = data_part(query)
    if data is None:
        return unknown(
            f"which part of its query is data and which a threshold cannot be told: {query[:120]}",
            "Run it without the threshold in CloudWatch's Query Studio.",
        )
    values = [sample.value for sample in query_samples(account, data, now)]
    measured = [value for value in values if not math.isnan(value)]
    if measured:
        many = f" ({len(measured)} series)" if len(measured) > 1 else ""
        return passed(f"finds {readable(max(measured), 4)} now{many}")
    if values:
        return warned("its metric exists but has no recent data", _SEND)
    return _nothing_found(account, query, data, now)


def _nothing_found(account: Account, query: str, data: str, now: datetime) -> Outcome:
    """Distinguish a wrong name, no recent data and missing enrichment where CloudWatch shows it."""
    metric_names = metric_names_in(data)
    known = label_values(account, "__name__", now - WINDOW, now)
    there = [name for name in metric_names if name in known]
    if there:
        return _not_now(account, there, label_in(query, ENDPOINT_LABEL), now)
    if any(name.startswith(_SERVERS) for name in known):
        return failed(
            f"CloudWatch has no metric of {_listed(metric_names) or 'its names'}, so it never alarms; "
            f"it has {_listed(_alike(metric_names, known))}",
            "Use an existing name, for example of another server or version. If there is none, "
            "tell us: AWS's pages contradict each other on the names.",
        )
    return _no_metrics_at_all(account)


def _not_now(account: Account, there: Sequence[str], endpoint: str, now: datetime) -> Outcome:
    if not endpoint:
        return warned(f"{_listed(there)} had data in the last 3 hours, not now", _SEND)
    owners = {
        owner
        for name in there
        for owner in label_values(account, ENDPOINT_LABEL, now - WINDOW, now, metric=name)
    }
    if endpoint in owners:
        return warned(
            f"{endpoint} had {_listed(there)} in the last 3 hours, and has none now",
            f"Is an instance in service? `low-latency diagnose {shell_word(endpoint)}`. {_SEND}",
        )
    return failed(
        f"CloudWatch has {_listed(there)} of {_listed(sorted(owners)) or 'no endpoint'}, not of "
        f"{endpoint}, so it never alarms",
        "Some minutes after the deploy, verify again. Else: MetricsConfig."
        "EnableDetailedObservability, and the server's own metrics (SGLang: "
        "SM_SGLANG_ENABLE_METRICS=true).",
    )


def _no_metrics_at_all(account: Account) -> Outcome:
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
        )
    return warned(
        f"{none}{'; OTel enrichment runs' if status else ''}",
        "Some minutes after the deploy, verify again. Else: MetricsConfig."
        "EnableDetailedObservability, and whether the server answers /metrics (SGLang: "
        "SM_SGLANG_ENABLE_METRICS=true).",
    )


def _alike(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """The names there are that look most like the wanted, else some of the servers'."""
    near = [name for each in wanted for name in get_close_matches(each, known, n=2)]
    others = [name for name in known if name.startswith(_SERVERS)]
    return list(dict.fromkeys(near or others))[:4]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
