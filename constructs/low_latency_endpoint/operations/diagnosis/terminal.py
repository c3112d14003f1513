"""The diagnosis for the terminal, at 80 columns as well as at 120."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .diagnosis import Diagnosis, Split, split
from .findings import Evidence, Finding
from .measurements import Measurements, VariantReading
from .members import Member, members
from .view import milliseconds, percent

__all__ = ["print_report", "verdict"]

_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = {"high": "red", "medium": "yellow", "low": "cyan"}
_EVENTS = 12
_MEMBERS = 5


def print_report(console: Console, diagnosis: Diagnosis) -> None:
    """Print the report; links stay whole where they are wider than the console."""
    for part in _parts(diagnosis):
        if isinstance(part, Text):  # the console forgets what a text itself says
            console.print(part, no_wrap=part.no_wrap, overflow=part.overflow, crop=False)
        else:
            console.print(part, crop=False)


def _parts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """The report from top to bottom: verdict, findings, where the time went, what happened."""
    m = diagnosis.measurements
    yield Text.assemble((f"{m.endpoint}", "bold"), f" in {m.region}: " if m.region else ": ",
                        (m.status, "" if m.status == "InService" else "yellow"),
                        f", {_window(m)}")
    yield Text(verdict(diagnosis), style="bold green" if diagnosis.healthy else "bold red")
    for number, finding in enumerate(diagnosis.findings, 1):
        yield _finding(number, finding, m)
        # Not in the grid: a link stays whole, to be followed.
        yield Text(f"   source   {finding.kind.source}", style="dim", no_wrap=True,
                   overflow="ignore")
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
    text = "Nothing found" if judged else \
        "Nothing found; without a latency target (--target p99=200ms) no latency was judged"
    count = len(m.unknown)
    if not count:
        return f"{text}."
    return f"{text}, but {count} thing{'s are' if count > 1 else ' is'} unknown: see below."


def _window(m: Measurements) -> str:
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
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold", ratio=1)
    path = " > ".join((finding.variant, *finding.path) if finding.variant else finding.path)
    grid.add_row("because", Text(path))
    for each in finding.evidence:
        grid.add_row("measured", _evidence(each, m))
    for change in finding.changes:
        line = Text(change.text, style="bold cyan")
        if change.why:
            line.append(f"  # {change.why}", style="dim not bold")
        grid.add_row("change", line)
    if finding.besides:
        grid.add_row("besides", Text(finding.besides))
    parts.append(Padding(grid, (0, 0, 0, 3)))
    return Padding(Group(*parts), (1, 0, 0, 0))


def _evidence(each: Evidence, m: Measurements) -> Text:
    text = Text(each.text)
    if each.start is not None:
        text.append(f"  {m.clock(each.start)}", style="dim")
        if each.end is not None and each.end != each.start:
            text.append(f"-{m.clock(each.end)}", style="dim")
    return text


def _variants(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    m = diagnosis.measurements
    for variant in m.variants:
        if not variant.get("Invocations", "Sum"):
            continue
        # Not the table's title, which would be folded at the table's width.
        line = Text(_variant_line(variant, m.period), style="bold")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("part", "p50", "p90", "p99", "average"):
            table.add_column(name, justify="left" if name == "part" else "right", no_wrap=True)
        table.add_column("worst", no_wrap=True, justify="right")
        table.add_column("may take", overflow="fold")
        for each in split(m, variant):
            table.add_row(*_split_row(each, m))
        yield Padding(Group(line, table), (1, 0, 0, 0))
        yield _sparklines(variant, m)
        for word, of in (("zone", variant.zones), ("instance", variant.instances)):
            if of:
                yield _members(f"{variant.name} by {word}", word, members(of))


def _variant_line(variant: VariantReading, period: timedelta) -> str:
    requests = variant.get("Invocations", "Sum")
    seconds = max(len(requests), 1) * period.total_seconds()
    return (f"{variant.name}: {variant.current_instances or '?'} x "
            f"{variant.instance_type or 'unknown type'}, {variant.routing}, "
            f"{requests.sum:,.0f} requests ({_rate(requests.sum / seconds)} a second)")


def _split_row(each: Split, m: Measurements) -> list[Text]:
    def cell(value: float | None) -> Text:
        return Text(milliseconds(value)) if value is not None else Text("-", style="dim")

    worst = Text("-", style="dim")
    if each.worst:
        worst = Text(f"{milliseconds(each.worst[1])} {m.clock(each.worst[0])}")
    return [Text(each.part), cell(each.p50), cell(each.p90), cell(each.p99), cell(each.average),
            worst, Text(each.limit or ("not stated" if each.part != "client" else ""),
                        style="red" if each.over else "")]


def _members(title: str, word: str, found: list[Member]) -> RenderableType:
    """Instances or zones beside each other, the slowest of many."""
    shown = found[:_MEMBERS]
    rows = {
        "requests": [f"{each.requests:,.0f}" for each in shown],
        "share": [percent(each.share) if each.share is not None else "" for each in shown],
        "model avg": [_time(each.model_average) for each in shown],
        "model p99": [_time(each.model_p99) for each in shown],
        "overhead": [_time(each.overhead_average) for each in shown],
        "CPU": [f"{each.cpu:.0f} %" if each.cpu is not None else "" for each in shown],
    }
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(word, overflow="fold")
    for name in rows:
        table.add_column(name, justify="right", overflow="fold")
    for index, each in enumerate(shown):
        table.add_row(Text(each.name), *(values[index] or "-" for values in rows.values()))
    parts: list[RenderableType] = [Text(title, style="bold"), table]
    if len(found) > len(shown):
        parts.append(Text(f"the slowest {len(shown)} of {len(found)}; all of them in --json",
                          style="dim"))
    return Padding(Group(*parts), (1, 0, 0, 0))


def _time(value: float | None) -> str:
    return milliseconds(value) if value is not None else ""


def _sparklines(variant: VariantReading, m: Measurements) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="dim")
    rows = (("requests", "Invocations", "Sum", "{:,.0f}"),
            ("ModelLatency p99", "ModelLatency", "p99", "{} ms"),
            ("overhead average", "OverheadLatency", "Average", "{} ms"),
            ("CPU %", "CPUUtilization", "Average", "{:.0f} %"),
            ("GPU %", "GPUUtilization", "Average", "{:.0f} %"),
            ("5XX errors", "Invocation5XXErrors", "Sum", "{:,.0f}"))
    for label, metric, statistic, form in rows:
        points = variant.get(metric, statistic).points
        if not points or (metric.startswith("Invocation5") and not any(points.values())):
            continue
        low, high = min(points.values()), max(points.values())
        shown = f"{milliseconds(low)} to {milliseconds(high)}" if "ms" in form \
            else f"{form.format(low)} to {form.format(high)}"
        grid.add_row(label, _bars(points, m.start, m.end, m.period), shown)
    return grid


def _bars(points: Mapping[datetime, float], start: datetime, end: datetime,
          period: timedelta) -> str:
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
    found, m = diagnosis.events, diagnosis.measurements
    if not found:
        return
    table = Table(title=Text("What happened", style="bold"), title_justify="left",
                  box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("time", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("what", overflow="fold")
    for event in found[-_EVENTS:]:
        table.add_row(m.clock(event.time), event.kind, Text(event.text))
    yield Padding(table, (1, 0, 0, 0))
    if len(found) > _EVENTS:
        yield Text(f"and {len(found) - _EVENTS} before; all of them in --json and --html",
                   style="dim")


def _notes(m: Measurements) -> Iterator[RenderableType]:
    lines = [Text.assemble(("unknown: ", "yellow"), f"{u.what} ({u.why})") for u in m.unknown]
    if m.alarms is not None and not m.alarms:
        lines.append(Text("no alarm watches this endpoint", style="dim"))
    firing = [a.name for a in m.alarms or () if a.state == "ALARM"]
    if firing:
        lines.append(Text.assemble(("in ALARM now: ", "red"), ", ".join(firing)))
    lines += [Text(f"no data: {text}", style="dim") for text in m.absent]
    lines.append(Text("CloudWatch has no payload sizes, no percentiles of OverheadLatency and "
                      "nothing of the callers' network.", style="dim"))
    yield Padding(Group(*lines), (1, 0, 0, 0))


def _rate(tps: float) -> str:
    """Requests per second for people.

    >>> _rate(1358.3), _rate(0.0333)
    ('1,358', '0.033')
    """
    return f"{tps:,.0f}" if tps >= 10 else f"{tps:.2g}"
