"""The diagnosis for the terminal, at 80 columns as well as at 120."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from ...report.numbers import milliseconds, percent, rate
from ...report.tables import CODE, Cell, Table, link
from .diagnosis import BreakdownRow, Diagnosis, breakdown, split
from .events import Event
from .findings import Evidence, Finding
from .measurements import Measurements, VariantReading
from .onset import ERRORS, Onset, onsets

CLOUDWATCH_LACKS = (
    "CloudWatch has no payload sizes, no percentiles of OverheadLatency and "
    "nothing of the callers' network."
)

_BARS = "▁▂▃▄▅▆▇█"
_VERDICTS = {True: "green", False: "red", None: "yellow"}
_UNJUDGED = {
    "no_requests": "no request in the window.",
    "requests_ended": "no request since {since}; what came before was judged.",
    "no_latency_target": "errors were judged, latency was not: give --target p99=200ms, or alarms.",
    "no_latency_data": "errors were judged, latency was not: CloudWatch has none of its limits' data.",
    "components_not_read": "hosts inference components, whose metrics are not read.",
}
_COLOURS = {"high": "red", "medium": "yellow", "low": "cyan"}
_EVENTS = 12
_ROWS = 5


def report_parts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """The report from top to bottom: verdict, findings, where the time went, what happened."""
    m = diagnosis.measurements
    yield Text.assemble(
        (f"{m.endpoint}", "bold"),
        f" in {m.region}: " if m.region else ": ",
        (m.status, "" if m.status == "InService" else "yellow"),
        f", {window_text(m)}",
    )
    yield Text(verdict(diagnosis), style=f"bold {_VERDICTS[diagnosis.healthy]}")
    for line in began(diagnosis):  # commands stay whole, to be copied
        yield Text(line, no_wrap="`" in line, overflow="ignore" if "`" in line else None)
    for number, finding in enumerate(diagnosis.findings, 1):
        yield _finding(number, finding, m)
    yield from _time_axis(diagnosis)
    for number, finding in enumerate(diagnosis.findings, 1):
        yield _evidence(number, finding, m)
        # Not in the grid: a link stays whole, to be followed.
        yield Text.assemble(
            "   source   ", link(finding.kind.source), no_wrap=True, overflow="ignore"
        )
    yield from _variants(diagnosis)
    yield from _notes(m)


def verdict(diagnosis: Diagnosis) -> str:
    """The outcome in one line."""
    m, found, unjudged = diagnosis.measurements, diagnosis.findings, diagnosis.unjudged
    if found:
        risks = sum(each.risk for each in found)
        faults = len(found) - risks
        parts = [f"{faults} finding{'s' * (faults != 1)}"] if faults else []
        parts += [f"{risks} risk{'s' * (risks != 1)}"] if risks else []
        return f"{' and '.join(parts)}."
    if not any(v.get("Invocations", "Sum").sum for v in m.variants):
        return "Nothing to judge: no request in the window."
    if unjudged:
        return "Nothing found, but not everything could be judged."
    count = len(m.unknown)
    if not count:
        return "Nothing found: the endpoint is healthy."
    return f"Nothing found, but {count} thing{'s are' if count > 1 else ' is'} unknown: see below."


def began(diagnosis: Diagnosis) -> Iterator[str]:
    """When the slow time began; and what could not be judged, with what to look at."""
    m = diagnosis.measurements
    sick = {each.variant for each in diagnosis.findings if not each.risk}
    for onset in onsets(m):
        if onset.variant in sick:
            yield _onset(onset, m)
    quiet = False
    for each in diagnosis.unjudged:
        since = m.clock(each.since) if each.since else ""
        quiet |= each.why in ("no_requests", "requests_ended")
        yield f"{each.variant}: {_UNJUDGED[each.why].format(since=since)}"
    if quiet:
        if m.status != "InService":
            yield f"The endpoint is {m.status}."
        stack = m.plan.stack if m.plan else ""
        yield f"Callers, DNS, security group: `{f'low-latency verify {stack}'.strip()}`"
        if not diagnosis.events:
            yield f"What changed before: `low-latency diagnose {m.endpoint} --since 1d`"


def _onset(onset: Onset, m: Measurements) -> str:
    errors = onset.metric == ERRORS
    form = percent if errors else milliseconds
    what = "share of errors" if errors else f"{onset.metric} {onset.statistic}"
    now, start = form(onset.since), m.clock(onset.start)
    if onset.until:
        told = f"{now} from {start} until {m.clock(onset.until)}"
        told += f", {form(onset.before)} before" if onset.before is not None else ""
    elif onset.before is None:
        told = f"{now} since {start}, the first request of the window"
    else:
        told = f"{form(onset.before)} until {start}, {now} since"
    return f"{onset.variant} {what}: {told} (limit {form(onset.limit)})"


def window_text(m: Measurements) -> str:
    """From when to when."""
    zone = m.start.tzname() or ""
    same = m.start.date() == m.end.date()
    end = f"{m.end:%H:%M}" if same else f"{m.end:%Y-%m-%d %H:%M}"
    return f"{m.start:%Y-%m-%d %H:%M} to {end} {zone}"


def _finding(number: int, finding: Finding, m: Measurements) -> RenderableType:
    rows: list[tuple[str, Text]] = []
    span = finding.span
    when = f"{m.clock(span[0])} to {m.clock(span[1])}, " if span and span[0] < span[1] else ""
    said = f"{'a risk, ' if finding.risk else ''}confidence {finding.confidence}"
    of = f"{finding.variant}, " if finding.variant else ""
    if not when:  # what is so in the account, and not for how long it was
        shown = (" ".join(filter(None, evidence_text(each, m))) for each in finding.evidence)
        rows += [("found", Text(text)) for text in shown]
    rated = Text.assemble(of, when, (said, _COLOURS[finding.confidence]))
    rows.append(("found" if when else "rated", rated))
    for change in finding.changes:
        why = (f"  # {change.why}" if change.why else "", "dim")
        word = "run" if change.command else "change"
        rows.append((word, Text.assemble((change.text, CODE), why)))
    if finding.besides:
        rows.append(("besides", Text(finding.besides)))
    return _block(f"{number}. {finding.id} {finding.kind.title}", rows)


def _evidence(number: int, finding: Finding, m: Measurements) -> RenderableType:
    path = " > ".join((finding.variant, *finding.path) if finding.variant else finding.path)
    rows = [("because", Text(path))]
    for each in finding.evidence:
        text, times = evidence_text(each, m)
        rows.append(("measured", Text.assemble(text, (f" {times}" if times else "", "dim"))))
    return _block(f"Evidence of {number}. {finding.id}", rows)


def _block(head: str, rows: Sequence[tuple[str, Text]]) -> RenderableType:
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style="dim", width=8)
    grid.add_column(overflow="fold", ratio=1)
    for row in rows:
        grid.add_row(*row)
    return Padding(Group(Text(head, style="bold"), Padding(grid, (0, 0, 0, 3))), (1, 0, 0, 0))


def evidence_text(each: Evidence, m: Measurements) -> tuple[str, str]:
    """What was measured, and when."""
    if each.start is None:
        return each.text, ""
    later = f"-{m.clock(each.end)}" if each.end not in (None, each.start) else ""
    return each.text, f"({m.clock(each.start)}{later})"


def _variants(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    m = diagnosis.measurements
    for variant in m.variants:
        if not variant.get("Invocations", "Sum").sum:
            continue
        # Not the table's title, which would be folded at the table's width.
        line = Text(variant_line(variant, m.period), style="bold")
        yield Padding(Group(line, split_table(m, variant)), (1, 0, 0, 0))
        yield _sparklines(variant, m)
        for word, of in (("zone", variant.zones), ("instance", variant.instances)):
            if not of:
                continue
            found = breakdown(of)
            table = breakdown_table(word, found[:_ROWS])
            yield Padding(
                Group(Text(f"{variant.name} by {word}", style="bold"), table), (1, 0, 0, 0)
            )
            if len(found) > _ROWS:
                yield Text(
                    f"the slowest {_ROWS} of {len(found)}; all of them in --json", style="dim"
                )


def variant_line(variant: VariantReading, period: timedelta) -> str:
    """What serves, how it is routed to, and how much it was asked."""
    requests = variant.get("Invocations", "Sum")
    seconds = max(len(requests), 1) * period.total_seconds()
    return (
        f"{variant.name}: {variant.current_instances or '?'} x "
        f"{variant.instance_type or 'unknown type'}, {variant.routing}, "
        f"{requests.sum:,.0f} requests ({rate(requests.sum / seconds)} a second)"
    )


def split_table(m: Measurements, variant: VariantReading) -> Table:
    """Where the time of a variant's requests went."""
    return Table(
        ("part", "p50", "p90", "p99", "average", "worst", "limit"),
        [
            (
                each.part,
                *map(milliseconds, (each.p50, each.p90, each.p99, each.average)),
                f"{milliseconds(each.worst[1])} {m.clock(each.worst[0])}" if each.worst else "-",
                Cell(
                    each.limit or ("not stated" if each.part != "client" else ""),
                    "bad" if each.over else "",
                ),
            )
            for each in split(m, variant)
        ],
        align="lrrrrrl",
    )


def breakdown_table(word: str, found: list[BreakdownRow]) -> Table:
    """Instances or zones beside each other."""
    return Table(
        (word, "requests", "share", "model avg", "model p99", "overhead", "CPU"),
        [
            (
                each.name,
                f"{each.requests:,.0f}",
                percent(each.share),
                *map(
                    milliseconds,
                    (each.model_average_ms, each.model_p99_ms, each.overhead_average_ms),
                ),
                f"{each.cpu_percent:.0f} %" if each.cpu_percent is not None else "-",
            )
            for each in found
        ],
    )


def events_table(events: Sequence[Event], clock: str) -> Table:
    """What happened, and when, by a form of time."""
    return Table(
        ("time", "kind", "what"),
        [(f"{each.time:{clock}}", each.kind, each.text) for each in events],
        align="l",
    )


def _sparklines(variant: VariantReading, m: Measurements) -> RenderableType:
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="dim")
    rows = (
        ("requests", "Invocations", "Sum", "{:,.0f}"),
        ("ModelLatency p99", "ModelLatency", "p99", "{} ms"),
        ("overhead average", "OverheadLatency", "Average", "{} ms"),
        ("CPU %", "CPUUtilization", "Average", "{:.0f} %"),
        ("GPU %", "GPUUtilization", "Average", "{:.0f} %"),
        ("5XX errors", "Invocation5XXErrors", "Sum", "{:,.0f}"),
    )
    for label, metric, statistic, form in rows:
        points = variant.get(metric, statistic).points
        if not points or (metric.startswith("Invocation5") and not any(points.values())):
            continue
        low, high = min(points.values()), max(points.values())
        shown = (
            f"{milliseconds(low)} to {milliseconds(high)}"
            if "ms" in form
            else f"{form.format(low)} to {form.format(high)}"
        )
        grid.add_row(label, _bars(points, m.start, m.end, m.period), shown)
    return grid


def _bars(
    points: Mapping[datetime, float], start: datetime, end: datetime, period: timedelta
) -> str:
    """Up to forty bars from nothing to the largest value, each the highest of its share of time.

    >>> from datetime import UTC
    >>> begin = datetime(2026, 11, 20, tzinfo=UTC)
    >>> _bars({begin: 1.0, begin + timedelta(minutes=2): 8.0}, begin,
    ...       begin + timedelta(minutes=4), timedelta(minutes=1))
    '▂ █ '
    """
    width = max(1, min(40, round((end - start) / period)))
    highest: list[float | None] = [None] * width
    for time, value in points.items():
        index = min(int((time - start) / (end - start) * width), width - 1)
        highest[index] = max(value, highest[index] or 0.0)
    top = max((v for v in highest if v is not None), default=0.0) or 1.0
    return "".join(" " if v is None else _BARS[min(int(v / top * 8), 7)] for v in highest)


def _time_axis(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    found = diagnosis.events
    if not found:
        return
    table = replace(events_table(found[-_EVENTS:], "%H:%M"), title="What happened")
    yield Padding(Group(table), (1, 0, 0, 0))
    if len(found) > _EVENTS:
        yield Text(
            f"and {len(found) - _EVENTS} before; all of them in --json and --html", style="dim"
        )


def _notes(m: Measurements) -> Iterator[RenderableType]:
    lines = [Text.assemble(("unknown: ", "yellow"), f"{u.what} ({u.why})") for u in m.unknown]
    lines += [Text(text, style="dim", no_wrap=True, overflow="ignore") for text in alarms_text(m)]
    lines += [Text(f"no data: {text}", style="dim") for text in m.absent]
    lines.append(Text(CLOUDWATCH_LACKS, style="dim"))
    yield Text("")
    yield from lines


def alarms_text(m: Measurements) -> Iterator[str]:
    """Which alarms watch the endpoint, and which of them fire."""
    if m.alarms is None:
        return
    watching = [each for each in m.alarms if not each.of_scaling]
    if not watching:
        yield "no alarm watches this endpoint"
    for state in ("ALARM", "INSUFFICIENT_DATA"):
        for each in watching:
            if each.state == state:
                yield f"in {state} now: {each.title}"
                yield f"  {each.name}"  # to be copied
