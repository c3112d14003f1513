"""A few errors, time-outs or cache misses in further periods never change what most of them say.

AWS's post on load testing: errors of full instances ask for instances, errors of idle ones for
another container. Six errors of 129,066 in idle minutes are no reason to look into the container.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis
from tests.depth import sampled

from .conftest import Run
from .faults.fault import Fault
from .scenarios import ERRORS, PerMinute, Scenario, constant
from .update_faults import ALL_FAULTS

_SHARE = 0.01
_MOST = 12
_TIMED_OUT = "InvocationModelErrors"
_PLACES = ("spread", "before", "after", "last")


def _told(made: Diagnosis) -> list[tuple[Any, ...]]:
    """What a diagnosis says, without its numbers."""
    findings = made.findings
    return [(f.id, f.risk, f.path, [change.key for change in f.changes]) for f in findings]


def _kinds(scenario: Scenario) -> list[str]:
    of_new = scenario.update.errors if scenario.update else {}
    return [kind for kind in ERRORS if kind in {**scenario.errors, **of_new}]


def _share(scenario: Scenario, kind: str, minute: int) -> float:
    """Share of all requests that fail in a minute, of whichever fleet."""
    of_serving = scenario.errors.get(kind, constant(0))(minute)
    update = scenario.update
    if update is None or not update.serves(minute):
        return of_serving
    new = update.share(minute)
    return new * update.errors.get(kind, constant(0))(minute) + (1 - new) * of_serving


def _with_room(scenario: Scenario) -> Scenario:
    """The scenario, from minute 20 on where it has errors in each minute."""
    if all(_share(scenario, kind, 0) for kind in _kinds(scenario)):
        errors = {kind: _from_20(share) for kind, share in scenario.errors.items()}
        return replace(scenario, errors=errors)
    return scenario


def _from_20(share: PerMinute) -> PerMinute:
    return lambda minute: share(minute) if minute >= 20 else 0


def _strays(scenario: Scenario, place: str) -> dict[int, float]:
    """Minutes without errors, and the share that a single one is there: 1 % of all at most."""
    kind, minutes = _kinds(scenario)[0], range(scenario.minutes)
    counts = [round(_share(scenario, kind, n) * scenario.tps(n) * 60) for n in minutes]
    touched = [minute for minute, count in enumerate(counts) if count]
    update = scenario.update
    free = [n for n in minutes if not counts[n] and scenario.tps(n) >= 1]
    free = [n for n in free if update is None or not update.serves(n)]
    number = min(int(_SHARE * sum(counts)), _MOST)
    random.Random(number).shuffle(free)
    near = {
        "spread": free,
        "before": sorted((n for n in free if n < touched[0]), reverse=True),
        "after": sorted(n for n in free if n > touched[-1]),
        "last": sorted(free, reverse=True),
    }[place]
    return {n: 1 / (scenario.tps(n) * 60) for n in near[:number]}


def _added(share: PerMinute, strays: dict[int, float]) -> PerMinute:
    return lambda minute: share(minute) + strays.get(minute, 0)


def _with_strays(scenario: Scenario, place: str) -> Scenario | None:
    """The scenario with strays of each kind of its errors; ``None`` where there is no place for any."""
    strays = _strays(scenario, place)
    if not strays:
        return None
    base = {kind: scenario.errors.get(kind, constant(0)) for kind in _kinds(scenario)}
    return replace(scenario, errors={kind: _added(base[kind], strays) for kind in base})


def _pairs() -> Iterator[tuple[Fault, str]]:
    for place in _PLACES:
        for fault in ALL_FAULTS:
            scenario = fault.scenario()
            if _kinds(scenario) and _with_strays(_with_room(scenario), place):
                yield fault, place


_PAIRS = list(_pairs())


def test_each_cause_of_errors_is_tried() -> None:
    tried = {fault.finding for fault, _ in _PAIRS}
    # Broken streams are a metric of their own, which no other cause is told from.
    assert {f"LLD40{n}" for n in range(1, 9)} - tried == {"LLD406"}
    assert {"LLD111", "LLD122", "LLD135", "LLD706", "LLD708"} <= tried


@pytest.mark.parametrize(
    ("fault", "place"), sampled(_PAIRS, 2), ids=lambda one: getattr(one, "name", one)
)
def test_a_few_errors_more_change_no_finding(fault: Fault, place: str, run: Run) -> None:
    base = _with_room(fault.scenario())
    scenario = _with_strays(base, place)
    assert scenario is not None
    before, after = (run(each, client_latency=fault.client_latency) for each in (base, scenario))
    assert _told(after) == _told(before)
    metrics = [[each["metric"] for each in made.to_dict()["onsets"]] for made in (before, after)]
    assert metrics[0] == metrics[1]


def _overload(**more: Any) -> Scenario:
    """The report's: an instance for 20 a second is asked for 720, and refuses for three minutes."""
    asked = {30, 31, 32}
    share = lambda m: 43_020 / 43_200 if m in asked else 0  # noqa: E731
    values: dict[str, Any] = {
        "instance_type": "ml.m5.xlarge",
        "instances": constant(1),
        "scaling": None,
        "planned": None,
        "thresholds": {("ModelLatency", "p99"): 2000.0},
        "tps": lambda m: 720 if m in asked else 15,
        "cpu": lambda m: 100 if m in asked else 40,
        "latency": lambda m, i: 7 if m in asked else 200,
        "errors": {"Invocation5XXErrors": share, "InvocationModelErrors": share},
    }
    return Scenario(**(values | more))


@pytest.mark.parametrize("deployed", [None, 25], ids=["no deployment", "a new deployment"])
@pytest.mark.parametrize("quiet_tps", [15, 0.2])
def test_six_of_129066_errors_are_no_fault_of_the_container(
    deployed: int | None, quiet_tps: float, run: Run
) -> None:
    """Where hardly anybody asks, a single error is a large share of the requests."""
    later = {38, 41, 44, 47, 50, 53}
    base = _overload()
    strays = dict.fromkeys(later, 1 / (quiet_tps * 60))
    made = run(
        _overload(
            deployed=deployed,
            tps=lambda m: quiet_tps if m in later else base.tps(m),
            errors={kind: _added(share, strays) for kind, share in base.errors.items()},
        )
    )
    (finding,) = made.findings
    assert finding.id == "LLD401"
    words = finding.evidence[0].text
    assert words.startswith("129,066 5XX errors")
    assert "in 9 of 60 periods (129,060 in 3 of them)" in words
    assert finding.span == (base.at(30), base.at(33))
    assert not made.to_dict()["onsets"] or made.to_dict()["onsets"][0]["start"].endswith(
        "03:30:00+00:00"
    )


@pytest.mark.parametrize("deployed", [None, 25], ids=["no deployment", "a new deployment"])
def test_minutes_that_are_full_in_part_belong_to_the_overload(
    deployed: int | None, run: Run
) -> None:
    """One minute at 100 %, and the half minutes beside it: 141,227 of 156,454 errors in the first."""
    requests = {30: 9_000, 31: 142_440, 32: 9_000}
    errors = {30: 7_610, 31: 141_227, 32: 7_617}
    share = lambda m: errors.get(m, 0) / requests.get(m, 900)  # noqa: E731
    made = run(
        _overload(
            deployed=deployed,
            tps=lambda m: requests.get(m, 900) / 60,
            cpu=lambda m: {30: 45, 31: 100, 32: 72}.get(m, 20),
            latency=lambda m, i: 40 if m in requests else 200,
            errors={"Invocation5XXErrors": share, "InvocationModelErrors": share},
        )
    )
    (finding,) = made.findings
    assert finding.id == "LLD401"


def test_errors_beside_a_full_minute_that_it_does_not_explain_stay(run: Run) -> None:
    """A container that fails at any load, and one full minute in an hour."""
    share = constant(0.1)
    made = run(
        _overload(
            tps=constant(15),
            cpu=lambda m: 97 if m == 31 else 40,
            latency=lambda m, i: 200,
            errors={"Invocation5XXErrors": share, "InvocationModelErrors": share},
        )
    )
    assert [finding.id for finding in made.findings] == ["LLD402"]


@pytest.mark.parametrize(
    "fault",
    [fault for fault, place in _PAIRS if fault.finding == "LLD405" and place == "spread"],
    ids=str,
)
def test_a_few_more_that_end_before_the_time_limit_are_time_outs_still(
    fault: Fault, run: Run
) -> None:
    """Dropped connections in further minutes: most wait for the time limit."""
    base = _with_room(fault.scenario())
    scenario, longest = _with_strays(base, "spread"), base.longest_ms
    assert scenario is not None
    assert longest is not None
    base = replace(base, longest_ms=lambda m: longest(m) if _share(base, _TIMED_OUT, m) else 0)
    dropped = replace(
        scenario, longest_ms=lambda m: longest(m) if _share(base, _TIMED_OUT, m) else 20_000
    )
    before, after = (run(each, client_latency=fault.client_latency) for each in (base, dropped))
    assert "LLD405" in {finding.id for finding in before.findings}
    assert _told(after) == _told(before)


_MULTI_MODEL = [fault for fault in ALL_FAULTS if fault.scenario().multi_model]
_QUIET = {5, 20, 21, 50}


def _few_then(value: PerMinute, then: float, scale: float) -> PerMinute:
    return lambda minute: scale * then if minute in _QUIET else value(minute)


@pytest.mark.parametrize("fault", _MULTI_MODEL, ids=str)
def test_a_few_cache_misses_more_change_no_finding(fault: Fault, run: Run) -> None:
    """Quiet minutes in which every model must be downloaded for long, and one is unloaded."""
    scenario = fault.scenario()
    models = dict(scenario.multi_model)
    models["ModelCacheHit"] = _few_then(models["ModelCacheHit"], 0, 1)
    for metric in ("ModelDownloadingTime", "ModelLoadingTime"):
        if metric in models:
            other = "Loading" if "Down" in metric else "Downloading"
            of_other = scenario.multi_model[f"Model{other}Time"](0)
            models[metric] = _few_then(models[metric], of_other, 40)
    if "ModelUnloadingTime" not in models:
        models["ModelUnloadingTime"] = lambda minute: 100 if minute == 20 else 0
    tps = lambda m: 0.5 if m in _QUIET else scenario.tps(m)  # noqa: E731
    made = run(replace(scenario, tps=tps, multi_model=models))
    assert _told(made) == _told(fault.diagnosed)
