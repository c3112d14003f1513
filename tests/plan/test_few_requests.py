"""Objectives that too few requests decide: the plan says so exactly there, and each advice ends it."""

from __future__ import annotations

import copy
import random
import re
from fractions import Fraction
from typing import Any

import yaml

from low_latency_endpoint.settings import explain_variants, parse_settings
from tests.depth import examples

from .test_sizing_jobs import job

FEW_SLOW = "few-requests-for-objective"
SEED = 59


def warnings_of(stated: Any) -> dict[str, str]:
    """The warnings of the endpoint by their ids."""
    explained = explain_variants(parse_settings(yaml.safe_dump(stated)), "e")
    return {warning.id: str(warning) for warning in explained["e"].warnings}


def load(peak: float) -> dict[str, Any]:
    return {"peak_tps": peak, "tps_per_instance": max(peak, 1.0), "safety_factor": 0.5}


def drawn_rate(rng: random.Random) -> float:
    """Spread evenly over the orders of magnitude."""
    return float(f"{10 ** rng.uniform(-3.5, 2):.3g}")


# ------------------------------------------------------------------------------- slow requests


def with_slow_requests(peak: float, objective: str) -> Any:
    slow = {"threshold": "120ms", "objective": float(objective)}
    return job(load(peak), alarms={"slow_requests": slow})


def fewest_slow(peak: float, objective: str, hours: int, burn_rate: str) -> int:
    """Slow requests that raise the alarm, counted up one by one."""
    requests = Fraction(repr(peak)) * 3600 * hours
    slow = 1
    while slow / requests <= Fraction(burn_rate) * (1 - Fraction(objective)):
        slow += 1
    return slow


def test_the_plan_warns_exactly_where_three_slow_requests_page():
    rng = random.Random(SEED)
    said = set()
    for _ in range(examples(150)):
        peak = drawn_rate(rng)
        objective = rng.choice(["0.95", "0.99", "0.995", "0.999", "0.9995", "0.9999", "0.99999"])
        stated = with_slow_requests(peak, objective)
        in_hour = fewest_slow(peak, objective, 1, "14.4")
        in_six_hours = fewest_slow(peak, objective, 6, "6")
        warnings = warnings_of(stated)
        assert (FEW_SLOW in warnings) is (min(in_hour, in_six_hours) <= 3), (peak, objective)
        said.add(FEW_SLOW in warnings)
        if FEW_SLOW in warnings:
            text = warnings[FEW_SLOW]
            assert f"at {in_hour} slow in an hour or {in_six_hours} in six hours" in text
            assert FEW_SLOW not in warnings_of(as_advised(stated, text))
    assert said == {True, False}


def as_advised(stated: Any, text: str) -> Any:
    """The settings after the one advice on an objective of slow requests."""
    changed = copy.deepcopy(stated)
    alarms = changed["endpoints"]["e"]["alarms"]
    lower = re.search(r"Lower its objective to at most ([\d.]+)$", text)
    if lower is None:
        assert text.endswith("leave it out")
        del alarms["slow_requests"]
        return changed
    assert float(lower[1]) < alarms["slow_requests"]["objective"]
    alarms["slow_requests"]["objective"] = float(lower[1])
    return changed


def test_two_slow_claims_in_an_hour():
    """0.07 a second are 252 in an hour; 14.4 x 0.05 % of them 1.8, and 6 x 0.05 % of 1,512 are 4.5.

    Three need a budget of 3 / (14.4 x 252) = 0.0827 %, in two digits 0.083 %.
    """
    text = warnings_of(with_slow_requests(0.07, "0.9995"))[FEW_SLOW]
    assert "only 252 requests come in an hour and 1,512 in six hours" in text
    assert "at 2 slow in an hour or 5 in six hours" in text
    assert text.endswith("at most 0.99917")


def test_no_advice_on_another_contradiction_hides_it():
    """A higher threshold ends the contradiction with the target; two slow claims still page."""
    stated = with_slow_requests(0.07, "0.9995")
    assert "contradiction-slow-requests" in warnings_of(stated)
    slow = stated["endpoints"]["e"]["alarms"]["slow_requests"]
    slow["threshold"] = "1s"
    warnings = warnings_of(stated)
    assert "contradiction-slow-requests" not in warnings
    assert FEW_SLOW in warnings


def episodes(rng: random.Random, slow_per_hour: float, fewest: int, hours: int) -> int:
    """How often the alarm goes on at Poisson arrivals of slow requests.

    Over five minutes a single one is above the threshold, as there are fewer than 12 x 1 expected
    there; so only the hour's number counts, at each arrival.
    """
    count = 0
    recent: list[float] = []
    is_on = False
    now = 0.0
    while now < hours:
        now += rng.expovariate(slow_per_hour)
        was_on = is_on and bool(recent) and now - recent[-1] < 5 / 60
        recent = [at for at in recent if now - at < 1] + [now]
        is_on = len(recent) >= fewest
        count += is_on and not was_on
    return count


def test_three_slow_requests_say_too_little_and_four_enough():
    """A share a tenth of the threshold: at most one alarm in 10,000 minutes, as of failures.

    The threshold is just below three and just above: at 2.99 three requests page, from 3 on four.
    """
    rng = random.Random(SEED)
    minutes = 10_000_000
    of_three = episodes(rng, 0.299, 3, minutes // 60) / (minutes / 10_000)
    of_four = episodes(rng, 0.3, 4, minutes // 60) / (minutes / 10_000)
    of_four_at_worst = episodes(rng, 0.399, 4, minutes // 60) / (minutes / 10_000)
    assert of_three > 1 > of_four_at_worst > of_four
