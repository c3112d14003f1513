"""The first requests that an endpoint or a fleet ever gets meet a cold start, whenever they come."""

from __future__ import annotations

from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis, diagnose
from low_latency_endpoint.operate.diagnose.findings import Finding

from .account import MINUTE, FakeAccount
from .conftest import Run
from .faults.fault import between, slow
from .scenarios import END, ENDPOINT, Scenario, constant

_CREATED, _SLOW = 10, 4
_DELAYS = (4, 8, 9, 12, 15, 30, 60, 90)
_KINDS = ("LLD121", "LLD201")


def _asked_after(delay: int, kind: str = "LLD121", **more: Any) -> Scenario:
    """An endpoint that is asked so many minutes after its creation, and is slow at first."""
    first = _CREATED + delay
    slowly: dict[str, Any] = {
        "LLD121": {"latency": slow(first, first + _SLOW, 2000)},
        "LLD201": {"overhead": between(first, first + _SLOW, 90, 6)},
    }[kind]
    values: dict[str, Any] = {
        "minutes": 140,
        "created": _CREATED,
        "tps": lambda minute: 10 if minute >= first else 0,
        "instances": constant(2),
        "cpu": constant(20),
        "planned": None,
        "scaling": None,
    }
    return Scenario(**(values | slowly | more))


def _over_last(account: FakeAccount, minutes: int) -> Diagnosis:
    start = END - minutes * MINUTE
    return diagnose(account, ENDPOINT, start=start, end=END, now=END, region="us-east-1")


def _told(finding: Finding) -> str:
    texts = [each.text for each in finding.evidence]
    return " ".join([finding.kind.title, *finding.path, *texts, finding.besides])


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("delay", _DELAYS)
def test_first_requests_meet_a_cold_start(delay: int, kind: str) -> None:
    """Also where the endpoint was created before the window."""
    account = _asked_after(delay, kind).account()
    since_first = 140 - _CREATED - delay
    for minutes in (140, since_first + 2, since_first + 7):
        (finding,) = _over_last(account, minutes).findings
        assert finding.id == kind
        assert "the first requests to the new endpoint" in _told(finding)
        assert "AWS expects of the first invocation" in _told(finding)
        assert "pause" not in _told(finding)
        keys = [change.key for change in finding.changes]
        assert keys[0] == "warm_up"
        # There is no former fleet to which a canary could leave most requests.
        assert "deployment" not in keys


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("pause", [20, 40])
def test_first_requests_to_a_new_fleet_meet_one(kind: str, pause: int, run: Run) -> None:
    """Requests stopped before the deployment and came back a while after it."""
    first = 30 + pause
    scenario = _asked_after(first - _CREATED, kind, created=None, deployed=22)
    scenario.tps = between(20, first, 0, 10)
    (finding,) = run(scenario).findings
    assert finding.id == kind
    assert "first requests after the deployment of sentiment-config-2" in _told(finding)
    assert {"warm_up", "deployment"} <= {change.key for change in finding.changes}


@pytest.mark.parametrize(
    ("minutes", "more"),
    [
        pytest.param(140, {"created": None}, id="an endpoint of last month"),
        pytest.param(140, {"tps": between(20, 40, 0, 10)}, id="asked before a pause"),
        pytest.param(110, {"tps": between(20, 40, 0, 10)}, id="asked before the window"),
    ],
)
def test_the_first_of_a_window_is_not_the_first_ever(minutes: int, more: dict[str, Any]) -> None:
    account = _asked_after(30, **more).account()
    (finding,) = _over_last(account, minutes).findings
    assert finding.id == "LLD132"
    assert "first requests" not in _told(finding)


def test_slow_for_longer_than_anything_takes_to_warm_up_is_no_cold_start(run: Run) -> None:
    scenario = _asked_after(30, latency=slow(40, 70, 2000))
    assert "LLD121" not in [finding.id for finding in run(scenario).findings]


@pytest.mark.parametrize("before", [{1, 2, 3}, set()], ids=["an older endpoint's metrics", "none"])
def test_an_older_endpoint_of_the_same_name_was_not_asked_for_this_one(
    before: set[int], run: Run
) -> None:
    scenario = _asked_after(30)
    scenario.tps = lambda minute: 10 if minute >= 40 or minute in before else 0
    (finding,) = run(scenario).findings
    assert finding.id == "LLD121"


@pytest.mark.parametrize("again", [60, 80])
def test_a_pause_begins_after_the_creation(again: int, run: Run) -> None:
    """Slow after each pause; the time before the first request is no pause before the creation."""
    starts = (40, again, again + 30)
    scenario = _asked_after(
        30,
        tps=lambda m: 10 if any(first <= m < first + 12 for first in starts) else 0,
        latency=lambda m, i: 2000 if any(first <= m < first + 2 for first in starts) else 40,
    )
    for finding in run(scenario).findings:
        assert f"({END - 140 * MINUTE:%H:%M}-" not in _told(finding)


def test_a_configuration_that_replaced_another_has_a_former_fleet(run: Run) -> None:
    """Created and updated in one window: the update may be canaried, and rolled back."""
    scenario = _asked_after(5, deployed=60, latency=slow(60, 66, 2000))
    (finding,) = run(scenario).findings
    assert finding.id == "LLD121"
    assert {"warm_up", "deployment"} <= {change.key for change in finding.changes}


@pytest.mark.parametrize("length", [4, 90])
@pytest.mark.parametrize("later", [5, 7, 9])
def test_what_was_fast_at_first_was_not_cold(later: int, length: int, run: Run) -> None:
    """It became slow then: something changed, as at any other time."""
    first = 40 + later
    made = run(_asked_after(30, latency=slow(first, first + length, 2000)))
    for finding in made.findings:
        assert finding.id not in ("LLD112", "LLD121")


@pytest.mark.parametrize("later", [3, 6, 9])
def test_instances_may_start_soon_after_the_first_requests(later: int, run: Run) -> None:
    """The former are warm, and the new ones are cold."""
    began = 40 + later
    scenario = _asked_after(
        30,
        instances=lambda m: 2 if m < began else 4,
        latency=lambda m, i: 2000 if i >= 2 and began <= m < began + 6 else 40,
    )
    (finding,) = run(scenario).findings
    assert finding.id == "LLD121"
    assert "the rise from 2 to 4 instances" in _told(finding)
