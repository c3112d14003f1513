"""``low-latency diagnose``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import rule
from .options import (
    EndpointName,
    Html,
    Json,
    Markdown,
    OptionalSettings,
    Profile,
    Region,
    grouped,
    option,
)
from .output import print_document, print_json, progress_on_terminal, say
from .process import check_packages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..facts.prices import Price
    from ..operate.diagnose import Diagnosis
    from ..options.latency_target import LatencyTarget

SINCE_FORM = rule(
    "LLD902",
    "the time window is not valid",
    fix="Give 5m to 455d, in m, h or d, such as 30m, 1h or 2d.",
    source="/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html",
)
UNTIL_FORM = rule(
    "LLD903",
    "the end of the time window is not in the past",
    fix="Give a past time, such as 2026-11-20T03:30Z. Without Z or +01:00 the time is local.",
)
PAGE_WRITTEN = rule(
    "LLD906", "the page could not be written", fix="Name a file in a writable folder with --html."
)
_KEPT = timedelta(days=455)  # CloudWatch keeps hourly values for fifteen months
_SHORTEST = timedelta(minutes=5)


@dataclass
class DiagnosisOptions:
    """Which window, against which target, and what is written."""

    since: str = option("Length of the window, at least 5m: 30m, 1h, 2d.", "1h", metavar="TIME")
    until: str | None = option(
        "End of the window, such as 2026-11-20T03:30Z. Default: now.", metavar="TIME"
    )
    target: list[str] | None = option(
        "Latency target, such as p99=200ms. For language models also ttft-p95=500ms (first token) "
        "and itl-p95=50ms (between tokens). Default: the alarm thresholds of the endpoint, the plan "
        "of its stack, or the settings file.",
        metavar="STAT=TIME",
    )
    client_latency: list[str] | None = option(
        "Latency that callers measured, such as p99=240ms.", metavar="STAT=TIME"
    )
    html: Html = None
    json: Json = False
    markdown: Markdown = False
    profile: Profile = None
    region: Region = None


@grouped
def diagnose(
    options: DiagnosisOptions, endpoint: EndpointName = None, settings: OptionalSettings = None
) -> None:
    """Explain why an endpoint is slow or failing. Reads only.

    Splits latency into client, overhead and model, walks AWS's decision tree, and says what to
    change in endpoint.yaml. What the credentials may not read is reported as unknown.

    \b
    Exit codes:
      0  healthy: requests came, errors and latency were judged, nothing was found
      1  findings
      2  usage, or AWS could not be read
      3  nothing found, but not everything could be judged: no or too few requests, or no target

    \b
    Examples:
      low-latency diagnose
      low-latency diagnose sentiment --since 2h --until 2026-11-20T03:30Z
      low-latency diagnose sentiment --target p99=200ms --client-latency p99=240ms
      low-latency diagnose sentiment --html report.html --profile production
    """
    if options.html is not None:
        check_packages("jinja2", "boto3")
        _writable(options.html)
    latency: LatencyTarget | None = None
    prices: Mapping[str, Price] = {}
    if endpoint is None or settings is not None:
        from ..settings import load_settings
        from .chosen_endpoints import stated_key, stated_name, usual_settings

        settings = settings or usual_settings("diagnose", options.profile, options.region)
        stated_file = load_settings(settings)
        latency = stated_file.endpoints[stated_key(stated_file, endpoint, settings)].latency
        prices = stated_file.prices
        endpoint, stated = stated_name(settings, options.profile, options.region, endpoint)
        options.region = options.region or stated
    diagnosis = _diagnose(endpoint, options, latency, prices)
    if options.html is not None:
        with progress_on_terminal("Page"):
            _write_page(diagnosis, options.html)
        say(f"wrote {options.html}", err=True)
    if options.json:
        print_json(diagnosis.to_dict())
    else:
        from ..operate.diagnose.document import document

        print_document(document(diagnosis), markdown=options.markdown)
    raise typer.Exit({True: 0, False: 1, None: 3}[diagnosis.healthy])


def _write_page(diagnosis: Diagnosis, path: Path) -> None:
    from ..operate.diagnose.document import document
    from ..report.pages import page

    text = page(document(diagnosis))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PAGE_WRITTEN.error(
            got=f"{path}: {error.strerror or error}", allowed="a file"
        ) from error


def _diagnose(
    endpoint: str,
    options: DiagnosisOptions,
    latency: LatencyTarget | None,
    prices: Mapping[str, Price],
) -> Diagnosis:
    """What was found; the prices of a settings file say what fewer instances save."""
    from ..account.clock import account_now
    from ..account.queries import PREFIXES
    from ..account.sessions import open_clients
    from ..load_test.search.limit_cautions import targets_by_statistic
    from ..operate.diagnose import diagnose
    from .options import CLIENT_LATENCY_FORM, parse_latencies, parse_targets

    now = account_now()
    start, end = parse_window(options.since, options.until, now)
    targets = parse_targets(options.target or (), PREFIXES)
    measured = parse_latencies(options.client_latency or (), CLIENT_LATENCY_FORM)
    client, region = open_clients(options.profile, options.region)
    with progress_on_terminal(f"Reading {endpoint}") as progress:
        return diagnose(
            client,
            endpoint,
            start=start,
            end=end,
            now=now,
            region=region,
            targets=targets,
            settings_targets=targets_by_statistic(latency) if latency else {},
            overhead_share=latency.overhead_share if latency else None,
            client_latency=measured,
            prices=prices,
            progress=progress,
        )


def _writable(path: Path) -> None:
    """Say before the reading that the page cannot be written."""
    if path.is_dir() or not path.parent.is_dir():
        say(
            f"{path} cannot be written: "
            + ("it is a folder" if path.is_dir() else f"{path.parent} is no folder"),
            err=True,
        )
        raise typer.Exit(2)


def parse_window(since: str, until: str | None, now: datetime) -> tuple[datetime, datetime]:
    """Start and end of the window.

    >>> now = datetime(2026, 11, 20, 3, 30, tzinfo=UTC)
    >>> start, end = parse_window("90m", None, now)
    >>> start.isoformat(), end == now
    ('2026-11-20T02:00:00+00:00', True)
    """
    end = _until(until, now) if until else now
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(m|h|d)", since.strip())
    seconds = float(match[1]) * {"m": 60, "h": 3600, "d": 86_400}[match[2]] if match else 0.0
    if not _SHORTEST.total_seconds() <= seconds <= _KEPT.total_seconds():
        raise SINCE_FORM.error(got=repr(since), allowed="5m to 455d, such as 30m, 1h or 2d")
    start = end - timedelta(seconds=seconds)
    if now - start > _KEPT + timedelta(minutes=1):
        raise SINCE_FORM.error(
            got=f"{since} up to {end:%Y-%m-%d}",
            allowed="at most 455 days ago, as CloudWatch keeps it",
        )
    return start, end


def _until(text: str, now: datetime) -> datetime:
    wrong = UNTIL_FORM.error(got=repr(text), allowed="a time in the past such as 2026-11-20T03:30Z")
    try:
        end = datetime.fromisoformat(text).astimezone(UTC)
    except (OverflowError, ValueError):  # of year 1 or 9999, too
        raise wrong from None
    if end > now + timedelta(minutes=1):
        raise wrong
    return end
