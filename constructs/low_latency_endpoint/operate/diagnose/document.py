"""The diagnosis as a document: for the terminal, a page and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from ...account.metrics import MetricSeries, Series, statistic_of
from ...errors.shell_words import shell_word
from ...report.charts import PALETTE, Chart, Line, Panel
from ...report.document import (
    Cell,
    Document,
    EvidencePart,
    FindingPart,
    Listed,
    Part,
    Row,
    Section,
    Sentence,
    Table,
    Tone,
)
from ...report.numbers import milliseconds, percent, rate, readable
from .diagnosis import (
    ERRORS,
    BreakdownRow,
    Diagnosis,
    Onset,
    Split,
    State,
    breakdown,
    onsets,
    split,
)
from .events import Event
from .findings import Evidence, Finding
from .measurements import Measurements, ObservedUpdate, VariantReading
from .short_slowness import short_slowness
from .thresholds import NOTABLE
from .underused import little_use
from .view import VariantView

CLOUDWATCH_LACKS = (
    "CloudWatch has no payload sizes and no percentiles of OverheadLatency, and of the callers' "
    "network only what a canary measures."
)
OF_PERIODS = (
    "Percentiles are means over the periods, weighted by requests, or from low to high where one "
    "doubled; CloudWatch has no percentiles for OverheadLatency."
)

_VERDICTS: dict[State, tuple[str, Tone]] = {
    "healthy": ("Healthy", "good"),
    "at_risk": ("At risk", "careful"),
    "faulty": ("Faulty", "bad"),
    "not_judged": ("Not judged", "careful"),
}
_UNJUDGED = {
    "no_requests": "no request in the window.",
    "requests_ended": "no request since {since}; earlier requests were judged.",
    "no_latency_target": "errors were judged, latency was not: add --target p99=200ms, or alarms.",
    "no_latency_data": "errors were judged, latency was not: CloudWatch has no data for its limits.",
    "too_few_periods": "latency was not judged: {words}. Send requests for longer, or give --since.",
    "slow_too_shortly": "latency was not judged: {words}. Send requests for longer.",
    "components_not_read": "hosts inference components, whose metrics are not read.",
}
_CONFIDENCE: dict[str, Tone] = {"high": "bad", "medium": "careful", "low": "soft"}
_EVENT_COLOURS = {"deployment": "purple", "scaling": "green", "alarm": "red"}
_EVENTS = 12  # that a terminal shows
_ROWS = 5  # of zones and instances in a terminal
_LINES = 12  # of one panel that can still be told apart
#: Colour and, where a terminal draws the line too, its name there.
_PERCENTILES = {"p99": ("red", "ModelLatency p99"), "p90": ("orange",), "p50": ("blue",)}
_UTILIZATION = {
    ("CPU", "CPUUtilization", "Average"): ("blue", "CPU"),
    ("CPU, fullest", "CPUUtilization", "Maximum"): ("sky",),
    ("GPU", "GPUUtilization", "Average"): ("green", "GPU"),
    ("memory", "MemoryUtilization", "Average"): ("purple",),
    ("disk", "DiskUtilization", "Average"): ("grey",),
}
_ERRORS = {
    ("4XX", "Invocation4XXErrors"): ("orange",),
    ("5XX", "Invocation5XXErrors"): ("red", "5XX errors"),
    ("model", "InvocationModelErrors"): ("purple",),
}


def document(diagnosis: Diagnosis) -> Document:
    """The report from top to bottom: verdict, findings, what happened, where the time went."""
    m = diagnosis.measurements
    parts: list[Part] = [Sentence(text, whole="`" in text) for text in began(diagnosis)]
    if not diagnosis.findings:
        for view in [VariantView(m, variant) for variant in m.variants]:
            notes = short_slowness(view), little_use(view)
            parts += [Sentence(note, whole="`" in note) for note in notes if note]
    if diagnosis.findings:
        parts.append(Section("Findings", [_finding(finding, m) for finding in diagnosis.findings]))
    if diagnosis.events:
        parts.append(Section("What happened", [_events_table(diagnosis.events, m)]))
    parts += [EvidencePart(), *(_variant(diagnosis, variant) for variant in m.variants)]
    looked_at = Listed([*alarms_text(m), *_planned(m)], "soft")
    unknown = Listed(
        [Row("unknown", f"{each.what} ({each.why})", tone="careful") for each in m.unknown]
    )
    absent = Listed([*(f"no data: {text}" for text in m.absent), CLOUDWATCH_LACKS], "soft")
    parts.append(Section("What was looked at", [unknown, looked_at, absent]))
    minutes = readable(m.period.total_seconds() / 60)
    told = (m.region, m.status, window_text(m), f"periods of {minutes} min")
    return Document(
        m.endpoint,
        parts,
        ", ".join(filter(None, told)),
        verdict(diagnosis),
        _VERDICTS[diagnosis.state][1],
    )


def verdict(diagnosis: Diagnosis) -> str:
    """The outcome in one line."""
    m, found, unjudged = diagnosis.measurements, diagnosis.findings, diagnosis.unjudged
    if found:
        risks = sum(each.risk for each in found)
        faults = len(found) - risks
        parts = [f"{faults} finding{'s' * (faults != 1)}"] if faults else []
        parts += [f"{risks} risk{'s' * (risks != 1)}"] if risks else []
        return f"{_VERDICTS[diagnosis.state][0]}: {' and '.join(parts)}."
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
    if m.update:
        yield update_text(m.update, m)
    sick = {finding.variant for finding in diagnosis.findings if not finding.risk}
    for onset in onsets(m):
        if onset.variant in sick:
            yield _onset(onset, m)
    quiet = False
    for unjudged in diagnosis.unjudged:
        since = m.clock(unjudged.since) if unjudged.since else ""
        quiet |= unjudged.why in ("no_requests", "requests_ended")
        yield f"{unjudged.variant}: {_UNJUDGED[unjudged.why].format(since=since, words=unjudged.words)}"
    if quiet:
        if m.status != "InService":
            yield f"The endpoint is {m.status}."
        if m.status not in ("Creating", "Failed"):  # nobody can reach it then
            # Without a stack of this library there is nothing to verify.
            check = (
                f": `low-latency verify {shell_word(m.plan.stack)}`"
                if m.plan
                else " are not seen from here."
            )
            yield f"Callers, DNS, security group{check}"
        if not diagnosis.events:
            yield f"What changed before: `low-latency diagnose {shell_word(m.endpoint)} --since 1d`"


def update_text(update: ObservedUpdate, m: Measurements) -> str:
    """The update under way, and what it changes, in one sentence."""
    since = f" since {m.clock(update.begun)}" if update.begun else ""
    stage = f" ({update.update.stage})" if update.update.stage else ""
    changes = f" Changed: {'; '.join(update.changes)}." if update.changes else ""
    either = f"until it ends, {update.serving} or the new fleet may answer"
    fleets = [variant.fleets.get(update.configuration, {}) for variant in m.variants]
    requests = sum((statistic_of(fleet, "Invocations", "Sum").sum for fleet in fleets), 0.0)
    answered = ""
    if update.configuration not in ("", update.serving) and requests:
        answered = f" {update.configuration} answered {requests:,.0f} requests of this window."
    return f"The endpoint is {update.update.verb}{since}{stage}: {either}.{answered}{changes}"


def _onset(onset: Onset, m: Measurements) -> str:
    errors = onset.metric == ERRORS
    form = percent if errors else milliseconds
    what = "share of errors" if errors else f"{onset.metric} {onset.statistic}"
    now, start = form(onset.since), m.clock(onset.start)
    if onset.until:
        text = f"{now} from {start} until {m.clock(onset.until)}"
        text += f", {form(onset.before)} before" if onset.before is not None else ""
    elif onset.before is None:
        text = f"{now} since {start}"
        if onset.start <= _first_period_with_requests(onset.variant, m):
            text += ", the first request of the window"
    else:
        text = f"{form(onset.before)} until {start}, {now} since"
    return f"{onset.variant} {what}: {text} (limit {form(onset.limit)})"


def _first_period_with_requests(variant: str, m: Measurements) -> datetime:
    """The first period in which requests came to a variant."""
    (counts,) = (v.get("Invocations", "Sum") for v in m.variants if v.name == variant)
    return min((time for time, count in counts.points.items() if count > 0), default=m.start)


def window_text(m: Measurements) -> str:
    zone = m.start.tzname() or ""
    same = m.start.date() == m.end.date()
    end = f"{m.end:%H:%M}" if same else f"{m.end:%Y-%m-%d %H:%M}"
    return f"{m.start:%Y-%m-%d %H:%M} to {end} {zone}"


def _finding(finding: Finding, m: Measurements) -> FindingPart:
    span = finding.span
    when = f"{m.clock(span[0])} to {m.clock(span[1])}, " if span and span[0] < span[1] else ""
    shown = [_evidence_text(each, m) for each in finding.evidence]
    rows: list[Row] = []
    if not when:  # what is so in the account, and not for how long it was
        rows += [Row("found", " ".join(filter(None, each))) for each in shown]
    of = f"{finding.variant}, " if finding.variant else ""
    said = f"{'a risk, ' if finding.risk else ''}confidence {finding.confidence}"
    rated = said, _CONFIDENCE[finding.confidence]
    rows.append(Row("found" if when else "rated", of + when, rated))
    rows += [
        Row("run" if change.command else "change", change.text, (change.why, ""), code=True)
        for change in finding.changes
    ]
    if finding.besides:
        rows.append(Row("besides", finding.besides))
    path = (finding.variant, *finding.path) if finding.variant else finding.path
    details = [
        Row("because", " > ".join(path)),
        *(Row("measured", text, (f" {times}" if times else "", "soft")) for text, times in shown),
    ]
    return FindingPart(
        f"{finding.id} {finding.kind.title}",
        finding.id,
        "careful" if finding.risk else "bad",
        rows,
        details,
        finding.kind.source,
    )


def _evidence_text(evidence: Evidence, m: Measurements) -> tuple[str, str]:
    if evidence.start is None:
        return evidence.text, ""
    later = f"-{m.clock(evidence.end)}" if evidence.end not in (None, evidence.start) else ""
    return evidence.text, f"({m.clock(evidence.start)}{later})"


def _variant(diagnosis: Diagnosis, variant: VariantReading) -> Section:
    m = diagnosis.measurements
    parts: list[Part] = ["No request in the window."]
    if variant.get("Invocations", "Sum").sum:
        parts = [_split_table(m, variant), Sentence(OF_PERIODS, "soft")]
        view = VariantView(m, variant)
        failed = view.refused_share(view.requests.times)
        if failed >= NOTABLE:
            doubt = f"The model's latency may hold the {percent(failed)} of the calls that failed."
            parts.append(Sentence(doubt, "careful"))
        parts += [
            _breakdown_table(f"{variant.name} by {word}", word, breakdown(of))
            for word, of in (("zone", variant.zones), ("instance", variant.instances))
            if of
        ]
    chart = _chart(diagnosis, variant)
    return Section(_variant_line(variant, m.period), [*parts, *([chart] if chart else [])])


def _variant_line(variant: VariantReading, period: timedelta) -> str:
    requests = variant.get("Invocations", "Sum")
    times = requests.times
    asked = times[-1] - times[0] + period if times else period
    return (
        f"{variant.name}: {variant.current_instances or '?'} x "
        f"{variant.instance_type or 'unknown type'}, {variant.routing}, "
        f"{requests.sum:,.0f} requests ({rate(requests.sum / asked.total_seconds())} a second)"
    )


def _split_table(m: Measurements, variant: VariantReading) -> Table:
    return Table(
        ("part", "p50", "p90", "p99", "average", "worst", "limit"),
        [
            (
                each.part,
                *(_percentile(each, name) for name in ("p50", "p90", "p99")),
                milliseconds(each.average),
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


def _percentile(part: Split, name: str) -> str:
    """One number, or the two between which the periods' are, without the first one's unit."""
    if name not in part.ranges:
        return milliseconds(getattr(part, name))
    low, high = map(milliseconds, part.ranges[name])
    if low == high:
        return high
    unit = high.rpartition(" ")[2]
    return f"{low.removesuffix(f' {unit}')}-{high}"


def _breakdown_table(title: str, word: str, found: list[BreakdownRow]) -> Table:
    return Table(
        (word, "requests", "share", "model avg", "model p99", "overhead", "CPU"),
        [
            (
                row.name,
                f"{row.requests:,.0f}",
                percent(row.share),
                *map(
                    milliseconds, (row.model_average_ms, row.model_p99_ms, row.overhead_average_ms)
                ),
                f"{row.cpu_percent:.0f} %" if row.cpu_percent is not None else "-",
            )
            for row in found
        ],
        title,
        most=_ROWS,
        order="slowest",
    )


def _events_table(events: Sequence[Event], m: Measurements) -> Table:
    return Table(
        ("time", "kind", "what"),
        [(m.clock(event.time), event.kind, event.text) for event in events],
        align="l",
        most=-_EVENTS,
        order="last",
    )


def _chart(diagnosis: Diagnosis, variant: VariantReading) -> Chart:
    """All panels of one variant that have data; findings are shaded, events are vertical lines."""
    m = diagnosis.measurements
    spans = dict.fromkeys(
        finding.span
        for finding in diagnosis.findings
        if finding.span is not None and finding.variant in ("", variant.name)
    )
    return Chart(
        variant.name,
        [panel for panel in _panels(diagnosis, variant) if any(line.y for line in panel.lines)],
        "time",
        ends=(m.start, m.end),
        step=m.period.total_seconds(),
        spans=[(start, end, "red") for start, end in spans],
        events=[
            (event.time, _EVENT_COLOURS[event.kind], f"{m.clock(event.time)} {event.text}")
            for event in diagnosis.events
        ],
    )


def _panels(diagnosis: Diagnosis, variant: VariantReading) -> list[Panel]:
    view, get = VariantView(diagnosis.measurements, variant), variant.get
    scaling = variant.scaling

    def thresholds(metric: str) -> list[tuple[str, float]]:
        return [
            (f"{statistic} {milliseconds(limit.value, 6)}", limit.value)
            for (name, statistic), limit in variant.thresholds.items()
            if name == metric
        ]

    def target(name: str, value: float | None) -> list[tuple[str, float]]:
        return [(name, value)] if value else []

    def line(name: str, series: Series, sketch: str = "", kind: str = "line") -> list[Line]:
        return [_line(name, series, "blue", sketch, kind)]

    latency = [_line(each, get("ModelLatency", each), *of) for each, of in _PERCENTILES.items()]
    utilization = [_line(name, get(*of), *look) for (name, *of), look in _UTILIZATION.items()]
    errors = [
        _line(name, get(metric, "Sum"), *look)
        for (name, metric), look in _ERRORS.items()
        if get(metric, "Sum").sum
    ]
    overhead = line("average", get("OverheadLatency", "Average"), "overhead average")
    serving = [_line("instances", view.instances, "green", kind="steps")]
    loaded = line("share", get("ModelCacheHit", "Average"))
    most = target("maximum", scaling.maximum if scaling else None)
    load, flight = (
        target("scaling target", at) for at in (view.load_target, view.concurrency_target)
    )
    return [
        Panel("Requests a second", line("requests", view.tps, "requests a second", "area")),
        Panel("ModelLatency", latency, " ms", thresholds("ModelLatency")),
        Panel("ModelLatency by instance, average", _slowest(variant.instances), " ms"),
        Panel("ModelLatency by Availability Zone, average", _slowest(variant.zones), " ms"),
        Panel("OverheadLatency", overhead, " ms", thresholds("OverheadLatency")),
        Panel("Utilization of the whole instance", utilization, " %"),
        Panel("Instances that serve", serving, limits=most),
        Panel("Invocations per instance and minute", line("invocations", view.load), limits=load),
        Panel("Requests in flight on an instance", line("maximum", view.in_flight), limits=flight),
        Panel("Errors", errors),
        Panel("Multi-model: requests whose model was loaded", loaded),
    ]


def _line(name: str, series: Series, colour: str, sketch: str = "", kind: str = "line") -> Line:
    return Line(
        name,
        series.times,
        list(map(series.points.get, series.times)),
        colour,
        kind,
        dash=name.endswith("fullest"),
        sketch=sketch,
    )


def _slowest(parts: Mapping[str, MetricSeries]) -> list[Line]:
    """A line for each part; for the slowest parts where there are many."""
    found = [(name, statistic_of(part, "ModelLatency", "Average")) for name, part in parts.items()]
    slowest = sorted(found, key=lambda item: -(item[1].max or 0))[:_LINES]
    colours = ("red", *(each for each in PALETTE if each != "red"))
    return [
        _line(name, series, colours[number % len(colours)])
        for number, (name, series) in enumerate(slowest)
    ]


def alarms_text(m: Measurements) -> Iterator[str]:
    """Which alarms watch the endpoint, and which of them fire."""
    if m.alarms is None:
        return
    watching = [alarm for alarm in m.alarms if not alarm.of_scaling]
    if not watching:
        yield "no alarm watches this endpoint"
    for state in ("ALARM", "INSUFFICIENT_DATA"):
        for each in watching:
            if each.state == state:
                yield f"in {state} now: {each.title}"
                yield f"  {each.name}"  # to be copied


def _planned(m: Measurements) -> Iterator[str]:
    if m.plan:
        peak = f" for {m.plan.peak_tps:,.0f} requests a second" if m.plan.peak_tps else ""
        yield f"Planned by stack {m.plan.stack}{peak}"
