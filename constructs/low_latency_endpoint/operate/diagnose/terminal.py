"""The diagnosis for the terminal, at 80 columns as well as at 120."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from ...report.numbers import milliseconds, percent, rate
from ...report.tables import Cell, Table
from .diagnosis import BreakdownRow, Diagnosis, breakdown, split
from .events import Event
from .findings import Evidence, Finding
from .measurements import Measurements, VariantReading

CLOUDWATCH_LACKS = (
    "CloudWatch has no payload sizes, no percentiles of OverheadLatency and "
    "nothing of the callers' network."
)

_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = {"high": "red", "medium": "yellow", "low": "cyan"}
_EVENTS = 12
_ROWS = 5


def print_report(console: Console, diagnosis: Diagnosis) -> None:
    """Print the report; links stay whole where they are wider than the console."""
    for part in report_parts(diagnosis):
        if isinstance(part, Text):  # the console forgets what a text itself says
            console.print(part, no_wrap=part.no_wrap, overflow=part.overflow, crop=False)
        else:
            console.print(part, crop=False)


def report_parts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """The report from top to bottom: verdict, findings, where the time went, what happened."""
    m = diagnosis.measurements
    yield Text.assemble(
        (f"{m.endpoint}", "bold"),
        f" in {m.region}: " if m.region else ": ",
        (m.status, "" if m.status == "InService" else "yellow"),
        f", {window_text(m)}",
    )
    yield Text(verdict(diagnosis), style="bold green" if diagnosis.healthy else "bold red")
    for number, finding in enumerate(diagnosis.findings, 1):
        yield _finding(number, finding, m)
        # Not in the grid: a link stays whole, to be followed.
        yield Text(
            f"   source   {finding.kind.source}", style="dim", no_wrap=True, overflow="ignore"
        )
    yield from _variants(diagnosis)
    yield from _time_axis(diagnosis)
    yield from _notes(m)


def verdict(diagnosis: Diagnosis) -> str:
    """The outcome in one line."""
    m, found = diagnosis.measurements, diagnosis.findings
    if found:
        risks = sum(each.risk for each in found)
        faults = len(found) - risks
        parts = [f"{faults} finding{'s' * (faults != 1)}"] if faults else []
        parts += [f"{risks} risk{'s' * (risks != 1)}"] if risks else []
        return f"{' and '.join(parts)}."
    requests = sum(v.get("Invocations", "Sum").sum for v in m.variants)
    if not requests:
        return "No request in the window: nothing to judge."
    judged = any(metric == "ModelLatency" for v in m.variants for metric, _ in v.thresholds)
    text = (
        "Nothing found"
        if judged
        else "Nothing found; without a latency target (--target p99=200ms) no latency was judged"
    )
    count = len(m.unknown)
    if not count:
        return f"{text}."
    return f"{text}, but {count} thing{'s are' if count > 1 else ' is'} unknown: see below."


def window_text(m: Measurements) -> str:
    """From when to when."""
    zone = m.start.tzname() or ""
    same = m.start.date() == m.end.date()
    end = f"{m.end:%H:%M}" if same else f"{m.end:%Y-%m-%d %H:%M}"
    return f"{m.start:%Y-%m-%d %H:%M} to {end} {zone}"


def _finding(number: int, finding: Finding, m: Measurements) -> RenderableType:
    head = Text.assemble((f"{number}. {finding.id} ", "bold"), (finding.kind.title, "bold"))
    if finding.risk:
        head.append("  risk", style="cyan")
    head.append(f"  confidence {finding.confidence}", style=_COLOURS[finding.confidence])
    parts: list[RenderableType] = [head]
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold", ratio=1)
    path = " > ".join((finding.variant, *finding.path) if finding.variant else finding.path)
    grid.add_row("because", Text(path))
    for each in finding.evidence:
        text, times = evidence_text(each, m)
        grid.add_row("measured", Text.assemble(text, (f" {times}" if times else "", "dim")))
    for change in finding.changes:
        line = Text(change.text, style="bold cyan")
        if change.why:
            line.append(f"  # {change.why}", style="dim not bold")
        grid.add_row("change", line)
    if finding.besides:
        grid.add_row("besides", Text(finding.besides))
    parts.append(Padding(grid, (0, 0, 0, 3)))
    return Padding(Group(*parts), (1, 0, 0, 0))


def evidence_text(each: Evidence, m: Measurements) -> tuple[str, str]:
    """What was measured, and when."""
    if each.start is None:
        return each.text, ""
    later = f"-{m.clock(each.end)}" if each.end not in (None, each.start) else ""
    return each.text, f"({m.clock(each.start)}{later})"


def _variants(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    m = diagnosis.measurements
    for variant in m.variants:
        if not variant.get("Invocations", "Sum"):
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
        ("part", "p50", "p90", "p99", "average", "worst", "may take"),
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
    lines += [Text(text, style="dim") for text in alarms_text(m)]
    lines += [Text(f"no data: {text}", style="dim") for text in m.absent]
    lines.append(Text(CLOUDWATCH_LACKS, style="dim"))
    yield Padding(Group(*lines), (1, 0, 0, 0))


def alarms_text(m: Measurements) -> Iterator[str]:
    """Which alarms watch the endpoint, and which of them fire."""
    if m.alarms is None:
        return
    # Application Auto Scaling's own watch no latency, and are on whenever it may scale in.
    watching = [each for each in m.alarms if not each.name.startswith("TargetTracking-")]
    if not watching:
        yield "no alarm watches this endpoint"
    firing = [each.name for each in watching if each.state == "ALARM"]
    if firing:
        yield f"in ALARM now: {', '.join(firing)}"
