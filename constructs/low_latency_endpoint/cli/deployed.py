"""``low-latency list``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from ..errors.shell_words import shell_word
from .options import Json, Markdown, Profile, Region
from .output import print_document, print_json, progress_on_terminal, say

if TYPE_CHECKING:
    from ..account.calls import Unknown
    from ..account.deployed_endpoints import ListedEndpoint
    from ..account.drift import Drift
    from ..operate.standing import Standing
    from ..report.document import Document, Row

    Found = Sequence[tuple[ListedEndpoint, Standing]]

_MOST = 3  # endpoints that each tell what could not be read of them; of more one line tells it


#: The exit code of a list that is not whole, as of a diagnosis that could not judge all.
NOT_ALL_KNOWN = 3


def list_(
    json: Json = False, markdown: Markdown = False, profile: Profile = None, region: Region = None
) -> None:
    """List the endpoints that this library has deployed in a Region: alarms, drift, dashboards.

    Reads only. An endpoint is listed if the template of its stack has a plan of this library. Drift is
    what somebody changed by hand of configuration, weights, scaling and alarms, and a configuration or
    model that is deleted while it serves; of the network and of tags it says nothing. An alarm may be
    OK because no request came: see the requests. Failed requests are those that ended in a 5XX.

    \b
    Exit codes:
      0  listed
      2  usage, or AWS could not be read
      3  listed, but something could not be read: a question mark, and why below

    \b
    Examples:
      low-latency list
      low-latency list --region eu-west-1 --json
    """
    from ..account.calls import Account
    from ..account.clock import account_now
    from ..account.deployed_endpoints import deployed_endpoints
    from ..account.sessions import aws_errors_in_words, open_clients
    from ..operate.standing import standings

    client, found_in = open_clients(profile, region)
    account = Account(client, found_in)
    with aws_errors_in_words(), progress_on_terminal(f"Reading {found_in}"):
        endpoints = deployed_endpoints(account)
        found = list(zip(endpoints, standings(account, endpoints, account_now()), strict=True))
    unknown = _unknown(found)
    if json:
        told = [each.to_dict() | now.to_dict() for each, now in found]
        missing = [asdict(each) for each in unknown]
        print_json({"region": found_in, "endpoints": told, "unknown": missing})
    elif not found:
        say(f"This library has deployed no endpoint in {found_in}.")
    else:
        print_document(_document(found), markdown=markdown)
    if unknown:
        raise typer.Exit(NOT_ALL_KNOWN)


def _unknown(found: Found) -> dict[Unknown, list[str]]:
    """What could not be read, and of which endpoints."""
    unknown: dict[Unknown, list[str]] = {}
    for endpoint, now in found:
        for each in now.unknown:
            unknown.setdefault(each, []).append(endpoint.endpoint)
    return unknown


def _document(found: Found) -> Document:
    from ..report.document import Document, Listed, Section, Sentence, Table

    table = Table(
        ("Endpoint", "Status", "Alarms", "Drift", "Requests", "Failed"),
        [_cells(endpoint, now) for endpoint, now in found],
        align="llllrr",
    )
    first, _ = min(found, key=lambda each: (not each[1].firing, -each[1].failed))
    of_many = {each: len(of) for each, of in _unknown(found).items() if len(of) > _MOST}
    drifted = dict.fromkeys(each.stack for each, now in found if now.drifts and each.stack)
    return Document(
        "",
        [
            table,
            Sentence("Requests, and the share of them that failed: in the last hour."),
            *(
                Section(each.endpoint, [Listed([*_rows(each, now), *_unread(now, of_many)])])
                for each, now in found
            ),
            *(
                Sentence(f"unknown of {count:,} endpoints: {each.what} ({each.why})")
                for each, count in of_many.items()
            ),
            f"Next: `low-latency diagnose {shell_word(first.endpoint)}`",
            *(
                Sentence(f"What puts it back: `low-latency verify {shell_word(stack)}`")
                for stack in drifted
            ),
        ],
    )


def _cells(endpoint: ListedEndpoint, now: Standing) -> tuple[str, ...]:
    from ..report.numbers import percent

    load = now.load
    return (
        endpoint.endpoint,
        endpoint.status,
        _states(now.states),
        _drifted(now.drifts or (), now.compared),
        f"{load.requests:,.0f}" if load else "?",
        percent(load.failed_share) if load else "?",
    )


def _drifted(drifts: Sequence[Drift], compared: bool) -> str:
    """How much differs from the template, and how much of what serves is deleted.

    >>> _drifted([], True), _drifted([], False)
    ('no', '?')
    """
    deleted = sum(drift.deleted for drift in drifts)
    counts = {"by hand": len(drifts) - deleted, "deleted": deleted}
    said = [f"{count} {what}" for what, count in counts.items() if count]
    if not compared:
        said.append("?")
    return ", ".join(said) or "no"


def _unread(now: Standing, elsewhere: Collection[Unknown]) -> Iterator[Row]:
    from ..report.document import Row

    for each in now.unknown:
        if each not in elsewhere:
            yield Row("unknown", f"{each.what} ({each.why})", tone="careful")


def _rows(endpoint: ListedEndpoint, now: Standing) -> Iterator[Row]:
    from ..report.document import Row

    if endpoint.update:
        yield Row("update", endpoint.update, tone="careful")
    for alarm in now.firing:
        since = f" since {alarm.since:%Y-%m-%d %H:%M %Z}" if alarm.since else ""
        yield Row("in ALARM", f"{alarm.title}{since}", tone="bad")
    for drift in now.drifts or ():
        if drift.deleted:
            yield Row("deleted", drift.words, tone="bad")
        else:
            yield Row("drift", drift.words, tone="careful")
    for variant in endpoint.variants:
        least = now.below_minimum.get(variant.name)
        below = f", below the scalable target's minimum of {least}" if least else ""
        yield Row("instances", f"{variant}{below}", tone="bad" if below else "")
    yield Row("stack", endpoint.stack or "?")
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
