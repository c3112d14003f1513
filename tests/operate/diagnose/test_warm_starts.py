"""Instances that answered well are warm, and a load far above it explains what follows: no start does."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from tests.depth import sampled

from .conftest import Run
from .faults.fault import between, from_minute
from .scenarios import Scaled, Scenario, constant

_START, _LOADED = 20, 6  # minutes: when instances start, and for how long the load lasts
_FAILURES = ("Invocation5XXErrors", "InvocationModelErrors")
_OF_STARTS = {"LLD121", "LLD408", "LLD201"}
#: What a minute of the window has of it: the deployment, the creation, or a scale-out.
_STARTS: dict[str, dict[str, Any]] = {
    "deployment": {"deployed": _START - 4},  # it ends four minutes later
    "creation": {"deployed": _START, "created": _START},
    "scale-out": {"activities": [Scaled(_START - 2, 4, took=2)]},
}
#: Requests a second before the load.
_BEFORE = {"few": 0.1, "many": 20.0}
_KINDS: dict[str, dict[str, float]] = {
    "5XX at full CPU": {"cpu": 97, "failed": 0.7},
    "5XX at low CPU": {"cpu": 8, "failed": 0.7},
    "slow at full CPU": {"cpu": 97, "latency": 900},
    "slow at half of the CPU": {"cpu": 55, "latency": 900},
    "high overhead": {"cpu": 55, "overhead": 200},
}


def _loaded(start: str, wait: int, before: float, kind: str, **more: Any) -> Scenario:
    """A load test so many minutes after a start, of which one kind of fault comes."""
    begin = _START + wait
    fault, of = _KINDS[kind], _STARTS[start]
    created = start == "creation"

    def inside(minute: int, within: float, otherwise: float) -> float:
        return within if begin <= minute < begin + _LOADED else otherwise

    def tps(minute: int) -> float:
        return inside(minute, 120, 0 if created and minute < _START else before)

    count = from_minute(_START, 2, 4) if start == "scale-out" else constant(1)
    values: dict[str, Any] = {
        "minutes": 45,
        "tps": tps,
        "instances": count,
        "cpu": lambda m: inside(m, fault["cpu"], 5),
        "latency": lambda m, i: inside(m, fault.get("latency", 40), 40),
        "overhead": lambda m: inside(m, fault.get("overhead", 2), 2),
        "errors": {"Invocation5XXErrors": lambda m: inside(m, fault.get("failed", 0), 0)},
        "scaling": None,
        "planned": None,
        **of,
    }
    return Scenario(**(values | more))


_WARM = list(product(_STARTS, (1, 2, 3, 5, 9), _BEFORE, _KINDS))


@pytest.mark.parametrize(("start", "wait", "before", "kind"), sampled(_WARM, 7))
def test_no_start_explains_what_comes_with_the_load(
    start: str, wait: int, before: str, kind: str, run: Run
) -> None:
    findings = run(_loaded(start, wait, _BEFORE[before], kind)).findings
    assert findings
    assert not {finding.id for finding in findings} & _OF_STARTS
    words = [shown.text for finding in findings for shown in finding.evidence]
    assert not [text for text in words if "began with the deployment" in text]


_EVEN = list(product(("deployment", "creation"), (1, 2, 3, 5, 9), tuple(_KINDS)[1:4]))


@pytest.mark.parametrize(("start", "wait", "kind"), sampled(_EVEN, 4))
def test_no_start_explains_what_comes_after_good_answers(
    start: str, wait: int, kind: str, run: Run
) -> None:
    """Without more load, too: who answered well was warm."""
    findings = run(_loaded(start, wait, 120, kind)).findings
    assert findings
    assert not {finding.id for finding in findings} & _OF_STARTS


_COLD = list(product(("deployment", "creation"), ("5XX at low CPU", "slow at half of the CPU")))


@pytest.mark.parametrize(("start", "kind"), _COLD)
def test_a_cold_start_is_named(start: str, kind: str, run: Run) -> None:
    """The first requests fail or are slow, at the same load as later."""
    findings = run(_loaded(start, 0, 120, kind)).findings
    expected = "LLD408" if "5XX" in kind else "LLD121"
    assert [finding.id for finding in findings] == [expected]


@pytest.mark.parametrize("start", ["deployment", "scale-out"])
@pytest.mark.parametrize("wait", [0, 1, 3])
def test_an_overload_is_one_cause(start: str, wait: int, run: Run) -> None:
    """Slow beside the load, too, where hardly anything came: full instances are what is told."""
    slow = lambda m, i: 900 if _START <= m < _START + 10 else 40  # noqa: E731
    scenario = _loaded(start, wait, _BEFORE["few"], "5XX at full CPU", latency=slow)
    (found,) = run(scenario).findings
    assert found.id in ("LLD401", "LLD102", "LLD105"), "full instances"
    assert any("5XX errors" in shown.text for shown in found.evidence)


_EDGES = list(product(("first", "last"), (0.1, 0.35, 0.5, 0.7, 0.9), (0.5, 1.0, 1.6)))


@pytest.mark.parametrize(("edge", "filled", "errors"), sampled(_EDGES, 4))
def test_a_minute_that_an_overload_fills_in_part_belongs_to_it(
    edge: str, filled: float, errors: float, run: Run
) -> None:
    """Its CPU is that part of the full minutes'; refused callers who come again at once are more."""
    begin, minutes = _START + 3, range(_START + 3, _START + 3 + _LOADED)
    part = begin - 1 if edge == "first" else begin + _LOADED
    share = 0.4

    def per_minute(minute: int, otherwise: float, of_full: float, of_part: float) -> float:
        if minute == part:
            return of_part
        return of_full if minute in minutes else otherwise

    scenario = _loaded(
        "deployment",
        3,
        5,
        "5XX at full CPU",
        tps=lambda m: per_minute(m, 5, 120, 120 * filled),
        cpu=lambda m: per_minute(m, 5, 97, 5 + 92 * filled),
        errors={
            # a share of its requests
            "Invocation5XXErrors": lambda m: per_minute(
                m, 0, share, min(share * errors / filled, 0.95)
            )
        },
    )
    (found,) = run(scenario).findings
    assert found.id == "LLD401"
    words = " & ".join(shown.text for shown in found.evidence)
    assert re.search(r"CPU at 9[5-9] % of the whole instance", words)


@pytest.mark.parametrize("stray", [0.0, 0.001, 0.01])
@pytest.mark.parametrize("used", [40, 50, 65])
def test_a_stray_error_after_an_overload_changes_nothing(
    used: float, stray: float, run: Run
) -> None:
    """60 a second for 90 seconds, then 20: the second minute is full for half of its time."""
    first = _START + 3
    rates = {first: 55, first + 1: 45}
    cpu = {first: 95, first + 1: used}
    failing = {first: 0.17, first + 1: 0.19, first + 2: stray}
    scenario = _loaded(
        "deployment",
        3,
        0,
        "5XX at full CPU",
        tps=lambda m: rates.get(m, 0 if m < first else 20),
        cpu=lambda m: cpu.get(m, 3 if m < first else 38),
        errors={"Invocation5XXErrors": lambda m: failing.get(m, 0)},
    )
    (found,) = run(scenario).findings
    assert found.id == "LLD401"


@pytest.mark.parametrize("used", [3, 25, 45, 60])
@pytest.mark.parametrize("errors", [0.2, 0.5, 0.9])
def test_a_load_that_ends_in_a_minute_tells_nothing_of_its_use(
    used: float, errors: float, run: Run
) -> None:
    """Most of the errors come in its last, highest step, which ends within a minute of CloudWatch."""
    last = _START + 5
    rates = {last - 2: 20, last - 1: 29, last: 30}
    cpu = {last - 1: 92, last: used}
    failing = {last - 1: 0.05, last: errors}
    scenario = _loaded(
        "deployment",
        3,
        0,
        "5XX at full CPU",
        tps=lambda m: rates.get(m, 0),
        cpu=lambda m: cpu.get(m, 3),
        latency=lambda m, i: 900 if m in cpu else 40,
        errors={"Invocation5XXErrors": lambda m: failing.get(m, 0)},
    )
    (found,) = run(scenario).findings
    assert found.id in ("LLD401", "LLD105")


def test_full_processors_are_never_called_not_full(run: Run) -> None:
    """One request at a time fills the instance: no request waits for another.

    The first minute has a quarter of the errors, and half of the use.
    """
    many = {_START: 0.6} | dict.fromkeys(range(_START + 1, _START + 7), 0.31)
    scenario = Scenario(
        instances=constant(1),
        tps=constant(1.5),
        latency=lambda m, i: 400,
        cpu=lambda m: 98 if m in many and m > _START else 49,
        errors={"Invocation5XXErrors": lambda m: many.get(m, 0)},
        scaling=None,
    )
    failing = [finding for finding in run(scenario).findings if finding.id == "LLD402"]
    assert failing
    for finding in failing:
        assert "not full" not in finding.kind.title
        assert finding.confidence == "low"


@pytest.mark.parametrize("start", ["deployment", "creation"])
def test_errors_from_the_first_request_on_began_with_the_deployment(start: str, run: Run) -> None:
    failing = {"Invocation5XXErrors": from_minute(_START, 0, 0.4)}
    (found,) = run(
        _loaded(start, 0, 120, "5XX at low CPU", errors=failing, cpu=constant(8))
    ).findings
    assert (found.id, found.confidence) == ("LLD402", "high")
    assert any("began with the deployment" in shown.text for shown in found.evidence)


@pytest.mark.parametrize(
    ("percent", "id", "confidence", "title"),
    [
        (8, "LLD402", "high", "The container fails although the instances are not full"),
        (69, "LLD402", "high", "The container fails although the instances are not full"),
        (70, "LLD402", "low", "The container fails, or the instances are nearly full"),
        (81, "LLD402", "low", "The container fails, or the instances are nearly full"),
        (86, "LLD401", "high", "Requests fail because the instances are saturated"),
    ],
)
def test_how_full_instances_are_where_requests_fail(
    percent: float, id: str, confidence: str, title: str, run: Run
) -> None:
    """Nearly full instances may be the reason: then more of them are advised as well."""
    failing = {"Invocation5XXErrors": from_minute(_START, 0, 0.9)}
    scenario = _loaded(
        "deployment", 0, 120, "5XX at low CPU", errors=failing, cpu=constant(percent)
    )
    (found,) = (each for each in run(scenario).findings if each.id in ("LLD401", "LLD402"))
    assert (found.id, found.confidence, found.kind.title) == (id, confidence, title)
    keys = {change.key for change in found.changes}
    assert ("containers[].environment" in keys) == (id == "LLD402")
    assert ("instances" in keys) == (percent >= 70)


def test_nobody_says_not_full_without_a_measurement(run: Run) -> None:
    failing = {"Invocation5XXErrors": from_minute(_START, 0, 0.9)}
    account = _loaded("deployment", 0, 120, "5XX at low CPU", errors=failing).account()
    account.data = {of: data for of, data in account.data.items() if "CPUUtilization" not in of}
    (found,) = (each for each in run(account).findings if each.id == "LLD402")
    assert (found.confidence, found.kind.title) == ("medium", "The container fails")
    assert found.path == ("errors", "5XX")


def _first_load(used: tuple[float, float], failed: float, latency: float) -> Scenario:
    """The first requests ever are a load test, which begins within a minute and lasts for another."""
    rates, first = (900, 1900), 57
    inside = lambda m: m in (first, first + 1)  # noqa: E731
    errors = {name: lambda m: failed if inside(m) else 0 for name in _FAILURES}
    return Scenario(
        tps=lambda m: rates[m - first] if inside(m) else 0,
        instances=constant(1),
        cpu=lambda m: used[m - first] if inside(m) else 1,
        latency=lambda m, i: latency if inside(m) else 40,
        errors=errors,
        scaling=None,
        planned=None,
        deployed=50,
        created=50,
    )


@pytest.mark.parametrize("used", [(68, 99), (99, 99)])
@pytest.mark.parametrize(("failed", "latency"), [(0.96, 300), (0.5, 900), (0, 900)])
def test_the_first_load_of_an_endpoint_that_fills_it_is_one_overload(
    used: tuple[float, float], failed: float, latency: float, run: Run
) -> None:
    (found,) = run(_first_load(used, failed, latency)).findings
    assert found.id in ("LLD401", "LLD105")
    if failed:
        assert any("5XX errors" in shown.text for shown in found.evidence)


@pytest.mark.parametrize("used", [(39, 71), (50, 100)])
def test_a_first_load_that_stays_slow_may_be_too_much(used: tuple[float, float], run: Run) -> None:
    """Nothing tells the start from the load: the finding is unsure, and says what would tell."""
    (found,) = run(_first_load(used, 0, 900)).findings
    assert (found.id, found.confidence) == ("LLD121", "low")
    assert "it is more than they hold" in found.besides


@pytest.mark.parametrize("used", [(11, 100, 100), (55, 100, 100, 20), (59, 100, 100, 30)])
@pytest.mark.parametrize("created", [4, 40], ids=["just created", "created before"])
def test_minutes_that_a_load_fills_in_part_do_not_hide_full_ones(
    used: tuple[int, ...], created: int, run: Run
) -> None:
    first = 56
    use = dict(enumerate(used, first))
    scenario = Scenario(
        tps=lambda m: 30 if m in use else 0.5 if m >= first - created + 5 else 0,
        instances=constant(1),
        cpu=lambda m: use.get(m, 1),
        latency=lambda m, i: 900 if m in use else 40,
        scaling=None,
        planned=None,
        deployed=first - created,
        created=first - created,
    )
    (found,) = run(scenario).findings
    assert found.id == "LLD105"


def test_calls_that_no_instance_got_are_no_new_instances(run: Run) -> None:
    """They count for the endpoint alone, so that one instance looks like eleven."""
    failing = {"Invocation5XXErrors": between(40, 46, 0.95, 0)}
    scenario = Scenario(
        instances=between(40, 46, 11, 1),
        errors=failing,
        scaling=None,
        planned=None,
        cpu=constant(8),
    )
    findings = run(scenario).findings
    assert [finding.id for finding in findings] == ["LLD402"]
