"""``low-latency list``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from .options import Json, Markdown, Profile, Region
from .output import print_document, print_json, progress_on_terminal

if TYPE_CHECKING:
    from ..account.calls import Unknown
    from ..account.deployed_endpoints import ListedEndpoint
    from ..operate.standing import Standing
    from ..report.document import Document, Row


def list_(
    json: Json = False, markdown: Markdown = False, profile: Profile = None, region: Region = None
) -> None:
    """List the endpoints that this library has deployed in a Region: alarms, drift, dashboards.

    Reads only. An endpoint is listed if the template of its stack has a plan of this library. Drift is
    what somebody changed by hand. An alarm may be OK because no request came: see the requests.

    \b
    Exit codes:
      0  listed
      2  usage, or AWS could not be read

    \b
    Examples:
      low-latency list
      low-latency list --region eu-west-1 --json
    """
    from ..account.calls import Account
    from ..account.clock import account_now
    from ..account.deployed_endpoints import deployed_endpoints
    from ..account.sessions import aws_errors_in_words, open_clients
    from ..operate.standing import standing

    client, found_in = open_clients(profile, region)
    account = Account(client, found_in)
    with aws_errors_in_words(), progress_on_terminal(f"Reading {found_in}"):
        found = {
            endpoint: standing(account, endpoint, account_now())
            for endpoint in deployed_endpoints(account)
        }
    if json:
        endpoints = [each.to_dict() | now.to_dict() for each, now in found.items()]
        unknown = [{"what": each.what, "why": each.why} for each in account.unknown]
        print_json({"region": found_in, "endpoints": endpoints, "unknown": unknown})
        return
    if not found:
        typer.echo(f"This library has deployed no endpoint in {found_in}.")
        return
    print_document(_document(found, account.unknown), markdown=markdown)


def _document(found: Mapping[ListedEndpoint, Standing], unknown: Sequence[Unknown]) -> Document:
    from ..report.document import Document, Listed, Section, Sentence, Table

    table = Table(
        ("Endpoint", "Status", "Alarms", "Drift", "Requests in the last hour"),
        [
            (
                each.endpoint,
                each.status,
                _states(now.states),
                "?" if now.drifts is None else f"{len(now.drifts)} by hand" if now.drifts else "no",
                "?" if now.requests is None else f"{now.requests:,.0f}",
            )
            for each, now in found.items()
        ],
        align="llllr",
    )
    first = min(found, key=lambda endpoint: not found[endpoint].firing)
    drifted = dict.fromkeys(each.stack for each, now in found.items() if now.drifts)
    return Document(
        "",
        [
            table,
            *(
                Section(each.endpoint, [Listed(list(_rows(each, now)))])
                for each, now in found.items()
            ),
            *(Sentence(f"unknown: {each.what} ({each.why})") for each in unknown),
            f"Next: `low-latency diagnose {first.endpoint}`",
            *(Sentence(f"What puts it back: `low-latency verify {stack}`") for stack in drifted),
        ],
    )


def _rows(endpoint: ListedEndpoint, now: Standing) -> Iterator[Row]:
    from ..report.document import Row

    for alarm in now.firing:
        since = f" since {alarm.since:%Y-%m-%d %H:%M %Z}" if alarm.since else ""
        yield Row("in ALARM", f"{alarm.title}{since}", tone="bad")
    yield from (Row("drift", drift.words, tone="careful") for drift in now.drifts or ())
    yield from (Row("instances", str(variant)) for variant in endpoint.variants)
    yield Row("stack", endpoint.stack)
    url = endpoint.dashboard_url
    yield Row("dashboard", url or endpoint.dashboard or "none", link=bool(url))


def _states(states: Mapping[str, int] | None) -> str:
    """How many alarms are in which state.

    >>> _states({"ALARM": 1, "OK": 8, "INSUFFICIENT_DATA": 0}), _states({"OK": 0})
    ('1 ALARM, 8 OK', 'none')
    """
    if states is None:
        return "?"
    words = {"INSUFFICIENT_DATA": "no data"}
    said = [f"{count} {words.get(state, state)}" for state, count in states.items() if count]
    return ", ".join(said) or "none"
