"""The load test as one self-contained HTML page.

Needs the ``load-test`` extra (Jinja2, plotly).
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...operations.diagnosis.page import chart_html
from ..latencies import LatencyHistogram, milliseconds
from ..limit_search import Limit, SearchPlan
from ..measured_steps import MeasuredStep
from ..result_file import LoadTestReport, write_text

__all__ = ["page", "verdict", "write_page"]

_PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)


def page(report: LoadTestReport) -> str:
    """The page's text; it loads nothing from anywhere."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    from . import charts

    environment = Environment(loader=PackageLoader(__package__, "templates"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made = {name: chart_html(figure, name) for name, figure in (
        ("throughput", charts.throughput_and_latency(report)),
        ("time", charts.over_time(report)),
        ("percentiles", charts.percentiles(report)),
        ("lag", charts.send_lag(report))) if figure is not None}
    return environment.get_template("report.html.jinja").render(
        report=report, run=report.run, target=report.target, verdict=verdict(report),
        good=report.run.held and not report.invalid, charts=made,
        rows=[_row(report, each) for each in report.run.steps], percents=_PERCENTS,
        streams=any(each.result.first_byte is not None for each in report.run.steps),
        started=_clock(report.run.started_at, "%Y-%m-%d %H:%M:%S"),
        ended=_clock(report.run.ended_at, "%H:%M:%S %Z"),
        plotly=get_plotlyjs(),
    )


def write_page(report: LoadTestReport, path: Path) -> None:
    """Write the page.

    Raises
    ------
    ConfigurationError
        ``LLE957`` when the file cannot be written.
    """
    write_text(path, page(report))


def verdict(report: LoadTestReport) -> str:
    """The run in one sentence."""
    run = report.run
    invalid = next((each for each in report.verdicts if each.severity == "invalid"), None)
    if run.interrupted:
        whole = f"{len(run.steps)} whole step" + ("s" if len(run.steps) != 1 else "")
        return f"Ended after {whole}: {run.failure}" if run.failure else \
            f"Interrupted after {whole}"
    if invalid is not None:
        return invalid.title
    if run.limit is not None:
        return _limit(run.limit, run.plan.search)
    broken = [each for each in run.loads if each.judgement.outcome == "broken"]
    if broken:
        return f"{broken[0].result.step.name} does not hold"
    if not run.loads:
        return "Nothing was sent"
    if not run.goal.targets:
        return "No errors; there was no latency target to judge by"
    highest = max(run.loads, key=lambda each: each.offered or each.result.step.users or 0)
    name = highest.result.step.name
    if highest.judgement.outcome == "unclear":
        few = any(math.isinf(each.high) for each in highest.judgement.bounds.values())
        return f"{name}: too few requests to say" if few else f"{name}: too near the target to say"
    return f"{name} hold" if name.endswith("users") else f"{name} holds"


def _limit(limit: Limit, search: SearchPlan | None) -> str:
    if not limit.found:
        return f"No limit found: {limit.problem}"
    if not limit.lower_bound:
        return f"One instance holds {limit.tps_per_instance:,g} requests a second"
    asked = f" (--up-to {search.highest_rate:,g})" if search is not None else ""
    return (f"One instance holds at least {limit.tps_per_instance:,g} requests a second; the limit "
            f"was not reached{asked}")


def _row(report: LoadTestReport, each: MeasuredStep) -> dict[str, Any]:
    result = each.result
    return {
        "step": each, "result": result,
        "window": report.metrics.of(result),
        "latencies": [milliseconds(value) for value in
                      result.latency.quantiles(percent / 100 for percent in _PERCENTS)],
        "lag": milliseconds(result.send_lag.percentile(99)),
        "beyond": {one.percent: one.samples_beyond for one in result.latency.percentiles()},
        "weak": {one.percent for one in result.latency.percentiles() if not one.reliable},
        "first_byte": milliseconds((result.first_byte or LatencyHistogram()).percentile(99)),
        "offered": f"{each.offered:,.4g}" if each.offered is not None
        else f"{result.step.users} at once",
    }


def _clock(seconds: float, form: str) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):{form}}"
