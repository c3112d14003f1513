"""The comparison as one self-contained HTML page.

Needs Jinja2, of the ``load-test`` extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...plan.capacity import counted_instances
from ...report.charts import Chart, Line, Panel, nines
from ...report.pages import Listed, Part, Section, page
from ...report.tables import Table
from ..engine.latencies import LatencyHistogram
from ..engine.steps import StepResult
from ..search.result_file import write_text
from .comparison import CACHED
from .published import PublishedComparison
from .report import RoutingComparison, named

_COLOURS = ("red", "blue")


def comparison_page(report: RoutingComparison) -> str:
    """The page of one comparison; it loads nothing from anywhere."""
    plan = report.plan
    parts: list[Part] = []
    if report.changes:
        charts = [
            (f"{report.sides.labels[1]} against {report.sides.labels[0]}", _changes(report)),
            (f"{named(report.headline)}, block by block", _pairs(report)),
        ]
        if CACHED in report.changes:
            charts.append(
                ("Prompt tokens found in a prefix cache, block by block", _cached(report))
            )
        charts += _percentiles(report)
        parts = [Section(title, [chart]) for title, chart in charts]
    sides = Table(
        ["", "Variant", "Instances", "Type", "Routing"],
        [
            [
                label,
                side.name,
                str(side.fleet.instances or "?"),
                side.fleet.instance_type or "?",
                side.routing or "?",
            ]
            for label, side in zip(report.sides.labels, report.sides, strict=True)
        ],
        align="l",
    )
    parts += [
        Section("All blocks of each side together", [report.table()]),
        Section("Sides", [sides]),
        Section(
            "Assumed",
            [
                Listed(
                    [
                        f"{len(report.pairs)} pairs of blocks of {plan['block_seconds']:g} s, each after "
                        f"{plan['settle_seconds']:g} s that do not count; the order turns from pair to pair",
                        f"{report.load}; payload: {report.payload or 'unknown'}",
                        *_tokens_assumed(report),
                        "neighbouring blocks are independent: they are much longer than requests queue",
                        f"each interval holds with {plan['confidence'] * 100:g} % on its own (Student's law "
                        "over the pairs, each left out once)",
                        "would have seen: a difference of this size is found in four of five such tests",
                        *(f"unknown: {each}" for each in report.sides.unknown),
                    ],
                    soft=True,
                )
            ],
        ),
    ]
    return _page(
        f"Routing of {' and '.join(dict.fromkeys(s.endpoint for s in report.sides))}", report, parts
    )


def published_page(report: PublishedComparison) -> str:
    """The page of the published sizes."""
    parts: list[Part] = [Section("By size", [report.table()])]
    parts += [
        Section(f"{counted_instances(size)} on each side", [one.table()])
        for size, one in report.rows
    ]
    parts.append(
        Section(
            "Assumed",
            [
                Listed(
                    [
                        "four users for each instance, as published",
                        "the published figures are AWS's, of CodeGen2-7B on ml.g5.24xlarge",
                    ],
                    soft=True,
                )
            ],
        )
    )
    return _page("The published comparison of routing strategies, measured", report, parts)


def write_page(report: RoutingComparison | PublishedComparison, path: Path) -> None:
    """Write the page.

    Raises
    ------
    ConfigurationError
        ``LLT115`` when the file cannot be written.
    """
    write_text(
        path,
        published_page(report)
        if isinstance(report, PublishedComparison)
        else comparison_page(report),
    )


def _page(title: str, report: RoutingComparison | PublishedComparison, parts: list[Part]) -> str:
    return page(
        title,
        [*(f"Careful: {each}" for each in report.warnings), *parts],
        verdict=report.sentence,
        tone="none" if report.valid else "bad",
    )


def _changes(report: RoutingComparison) -> Chart:
    """Each statistic's change with its interval, beside no change at all."""
    names = [name for name in report.statistics if name != CACHED]  # of points, not percent
    found = [report.changes[name] for name in names]
    said = [report.row_name(name) for name in names] if report.of_tokens else names
    return Chart(
        "changes",
        [
            Panel(
                "Change",
                [
                    Line(
                        "change",
                        said,
                        [100 * each.change for each in found],
                        "blue",
                        "marks",
                        marks=["●" if each.found else "○" for each in found],
                        notes=[
                            f"{name}: {100 * each.change:+.1f} %"
                            for name, each in zip(said, found, strict=True)
                        ],
                        low=[100 * each.low for each in found],
                        high=[100 * each.high for each in found],
                    )
                ],
                " %",
                [("", 0.0)],
            )
        ],
        "names",
        "A ring: no difference that this test can tell",
        240,
    )


def _pairs(report: RoutingComparison) -> Chart:
    """p99 of each block in the order of time: what drifted, and what one pair says."""

    def p99(result: StepResult) -> float | None:
        of = result.tokens.first_token if report.of_tokens and result.tokens else result.latency
        return 1000 * of.percentile(99) if of.count else None

    panel = Panel(named(report.headline), _by_block(report, p99), " ms")
    return Chart("pairs", [panel], title="minutes", height=240)


def _cached(report: RoutingComparison) -> Chart:
    """Whether caches had filled before the first pair, and what each side finds in them."""

    def share(result: StepResult) -> float | None:
        tokens = result.tokens
        if tokens is None or not tokens.prompt_tokens:
            return None
        return 100 * tokens.cached_tokens / tokens.prompt_tokens

    panel = Panel("Prompt cached", _by_block(report, share), " %")
    return Chart("cached", [panel], title="minutes", height=240)


def _by_block(report: RoutingComparison, value: Callable[[StepResult], float | None]) -> list[Line]:
    start = min(each.started_at for pair in report.pairs for each in pair.results)
    lines = []
    for at, label in enumerate(report.sides.labels):
        results = [pair.results[at] for pair in report.pairs]
        lines.append(
            Line(
                label,
                [((each.started_at + each.ended_at) / 2 - start) / 60 for each in results],
                [value(each) for each in results],
                _COLOURS[at],
                marks=["●"] * len(results),
            )
        )
    return lines


def _percentiles(report: RoutingComparison) -> Iterator[tuple[str, Chart]]:
    """Latency by percentile, the rarer the wider."""
    tokens = [report.pooled_tokens(at) for at in (0, 1)]
    first = [each.first_token for each in tokens if each is not None]
    gaps = [each.inter_token for each in tokens if each is not None]
    if first:
        yield "Time to first token by percentile", _by_percentile(report, "ttft", "TTFT", first)
    if all(each.count for each in gaps) and gaps:  # answers of one token have none
        yield "Gaps between tokens by percentile", _by_percentile(report, "itl", "ITL", gaps)
    whole = "Latency of whole answers by percentile" if first else "Latency by percentile"
    yield (
        whole,
        _by_percentile(report, "percentiles", "Latency", [report.pooled(at) for at in (0, 1)]),
    )


def _by_percentile(
    report: RoutingComparison, key: str, title: str, sides: Sequence[LatencyHistogram]
) -> Chart:
    lines = []
    for label, colour, latencies in zip(report.sides.labels, _COLOURS, sides, strict=True):
        ranks = nines(latencies.count, 4.0)
        values = latencies.quantiles([1 - 10**-each for each in ranks])
        lines.append(Line(label, ranks, [1000 * each for each in values], colour))
    return Chart(key, [Panel(title, lines, " ms")], "nines", "Percentile", 240)


def _tokens_assumed(report: RoutingComparison) -> Iterator[str]:
    if not report.of_tokens:
        return
    yield (
        "TTFT: from the intended start to the first chunk with content; ITL: all gaps between "
        "chunks with content, of all streams together"
    )
    if warm := report.plan.get("warm_seconds"):
        yield (
            f"each side got {warm:g} s of requests before the first pair, so that its prefix "
            "caches fill; they keep what they hold while the other side is loaded"
        )
