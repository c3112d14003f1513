"""Objectives that too few requests decide: the plan says so exactly there, and each advice ends it."""

from __future__ import annotations

import copy
import math
import random
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
import yaml

from low_latency_endpoint.settings import explain_variants, parse_settings
from tests.depth import examples

from .test_sizing_jobs import job

FEW_SLOW = "few-requests-for-objective"
FEW_SAMPLES = "few-samples-for-objective"
UNDERCUT = "contradiction-slow-requests"
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
    for _ in range(examples(80)):
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


def test_the_plan_explains_what_an_objective_never_sees():
    """Of 99.5 % the budget is 0.5 %: 7.2 % of an hour page, and 3 % of six hours.

    A lasting 3 % spends a month's budget six times too fast, in five days.
    """
    settings = parse_settings(yaml.safe_dump(with_slow_requests(40, "0.995")))
    decision = explain_variants(settings, "e")["e"]["alarm_slow_requests"]
    assert (decision.value, decision.inputs["over six hours in %"]) == (7.2, 3.0)
    assert "stay at 3 % or less never page, and spend a month's budget in 5 days" in decision.note
    assert "an alarm on p99.5 of ModelLatency sees them" in decision.note
    assert "{p99.5: 120 ms}" in decision.note


def test_no_advice_on_another_contradiction_hides_it():
    """A higher threshold ends the contradiction with the target; two slow claims still page."""
    stated = with_slow_requests(0.07, "0.9995")
    assert UNDERCUT in warnings_of(stated)
    slow = stated["endpoints"]["e"]["alarms"]["slow_requests"]
    slow["threshold"] = "1s"
    warnings = warnings_of(stated)
    assert UNDERCUT not in warnings
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


# ------------------------------------------------------------------ objectives on periods

BEYOND = {"p50": "50", "p90": "10", "p95": "5", "p99": "1", "p99.9": "0.1"}  # % of the requests
MINUTES = (1, 2, 3, 5, 10, 15)  # periods of alarms, as far as Application Signals takes them


def with_objective(
    peak: float, share: str, thresholds: dict[str, int], period: int | None, *, targets: bool
) -> Any:
    """An objective on the tightest of the thresholds, or on those of the plan for such targets."""
    alarms: dict[str, Any] = {"service_level_objective": float(share)}
    if period:
        alarms["period"] = f"{period}m"
    limits = {name: f"{limit}ms" for name, limit in thresholds.items()}
    if not targets:
        return job(load(peak), alarms=alarms | {"model_latency": limits})
    latency = {name.replace(".", "_"): limit for name, limit in limits.items()}
    return job(load(peak), latency=latency, alarms=alarms)


def minutes_of_period(peak: float, statistic: str, stated: int | None) -> int:
    """The shortest period with 30 requests beyond the percentile, at most 15 minutes."""
    if stated:
        return stated
    beyond = Fraction(repr(peak)) * 60 * Fraction(BEYOND[statistic]) / 100
    return next((minutes for minutes in MINUTES if minutes * beyond >= 30), 15)


def share_missed(requests: int, beyond: Fraction) -> Fraction:
    """How likely more of the requests are slow than lie beyond the percentile, counted exactly."""
    met = sum(
        math.comb(requests, slow) * beyond**slow * (1 - beyond) ** (requests - slow)
        for slow in range(requests + 1)
        if slow <= requests * beyond
    )
    return 1 - Fraction(met)


def expected_miss(peak: float, share: str, statistic: str, minutes: int) -> Fraction | None:
    """The share of the periods missed where few requests decide and the objective lets fewer."""
    beyond = Fraction(BEYOND[statistic]) / 100
    requests = Fraction(repr(peak)) * 60 * minutes
    if requests * beyond >= 30:
        return None
    missed = share_missed(max(1, round(requests)), beyond)
    return missed if missed > 1 - Fraction(share) else None


def test_the_plan_warns_exactly_where_a_model_on_target_misses_too_many_periods():
    rng = random.Random(SEED)
    said = {True: 0, False: 0}
    advised = set()
    for _ in range(examples(100)):
        peak = float(f"{10 ** rng.uniform(-2.5, 1.5):.3g}")
        share = rng.choice(["0.95", "0.99", "0.995", "0.9999"])
        count = rng.randint(1, 2)
        names = sorted(rng.sample(list(BEYOND), count), key=list(BEYOND).index)
        thresholds = dict(zip(names, sorted(rng.sample(range(100, 900, 100), count)), strict=True))
        period = rng.choice([None, None, 1, 5])
        # Of calls that are rare the plan has no threshold: less than one a minute.
        targets = peak > 1 / 60 and rng.random() < 0.5
        stated = with_objective(peak, share, thresholds, period, targets=targets)
        tightest = names[0]  # they rise with the percentile
        minutes = minutes_of_period(peak, tightest, period)
        missed = expected_miss(peak, share, tightest, minutes)
        text = warnings_of(stated).get(FEW_SAMPLES)
        assert (text is not None) is (missed is not None), (stated, missed)
        said[text is not None] += 1
        if text is None or missed is None:
            continue
        assert f"judges {tightest} in periods of {in_words(minutes)}" in text
        told = re.search(r"misses about ([\d.]+) %", text)
        assert told is not None
        assert float(told[1]) == pytest.approx(float(100 * missed), rel=0.05)
        for advice, changed in remedies(stated, text):
            after = warnings_of(changed)
            # A threshold that is stated may be far below what the target leaves.
            ended = {FEW_SAMPLES, FEW_SLOW, UNDERCUT} if targets else {FEW_SAMPLES, FEW_SLOW}
            assert not ended & set(after), (advice, changed)
            advised.add(advice)
    assert min(said.values()) > 20
    assert advised == {"period", "percentile", "requests", "none"}


def in_words(minutes: int) -> str:
    return "a minute" if minutes == 1 else f"{minutes} minutes"


def remedies(stated: Any, text: str) -> Iterator[tuple[str, Any]]:
    """The settings after each advice of the warning alone."""
    _, _, advice = text.rpartition("%. ")
    for remedy in advice.lower().split("; or "):
        changed = copy.deepcopy(stated)
        endpoint = changed["endpoints"]["e"]
        alarms = endpoint["alarms"]
        if remedy == "leave alarms.period out":
            del alarms["period"]
            yield "period", changed
        elif lower := re.match(r"make it about (p[\d.]+), by giving that the shortest", remedy):
            shorter = {lower[1]: "50ms"}
            alarms["model_latency"] = shorter | alarms.get("model_latency", {})
            yield "percentile", changed
        elif objective := re.search(r"and an objective of at most ([\d.]+)$", remedy):
            del alarms["service_level_objective"]
            threshold = re.search(r"just meets ([\d.]+) ms", text)
            assert threshold is not None
            slow = {"threshold": f"{threshold[1]}ms", "objective": float(objective[1])}
            alarms["slow_requests"] = slow
            yield "requests", changed
        else:
            assert remedy.startswith("leave alarms.service_level_objective out")
            del alarms["service_level_objective"]
            yield "none", changed


def test_p99_of_63_claims_is_the_slowest():
    """0.07 a second are 63 in 15 minutes, and one slow one is more than 1 % of them.

    1 - 0.99^63 = 46.9 % of the periods have one. 99.5 % of them have none if 0.995 = (1 - s)^63:
    s is 0.005 / 63 = 0.008 %.
    """
    stated = with_objective(0.07, "0.995", {"p99": 900}, None, targets=True)
    text = warnings_of(stated)[FEW_SAMPLES]
    assert "p99 in periods of 15 minutes, and even at the peak only 63 requests come" in text
    assert "just meets 720 ms misses about 47 % of the periods" in text
    assert "the objective lets 0.5 %" in text
    assert "about 0.008 % of the requests may be slow, not 1 %" in text
    # Half of 63 are beyond p50, which is enough; 252 an hour are enough for 99 %: 14.4 x 1 % x 252.
    assert "about p50" in text
    assert text.endswith("at most 0.99")


@pytest.mark.parametrize("statistic", ["p0", "p100", "Average", "Maximum"])
def test_no_requests_are_beyond_what_is_no_percentile(statistic):
    stated = with_objective(0.07, "0.995", {statistic: 900}, None, targets=False)
    assert FEW_SAMPLES not in warnings_of(stated)


def test_where_slow_requests_are_judged_already_the_objective_can_go():
    stated = with_objective(0.07, "0.995", {"p99": 900}, None, targets=True)
    slow = {"threshold": "2s", "objective": 0.99}
    stated["endpoints"]["e"]["alarms"]["slow_requests"] = slow
    text = warnings_of(stated)[FEW_SAMPLES]
    assert "out, as alarms.slow_requests judges requests" in text


def test_a_percentile_of_63_measured_as_cloudwatch_may_not_be_better():
    """Drawn periods: the smallest value with at least 99 % of the 63 at or below it is the largest."""
    rng = random.Random(SEED)
    late = sum(max(rng.random() for _ in range(63)) > 0.99 for _ in range(20_000))
    assert late / 20_000 == pytest.approx(float(share_missed(63, Fraction(1, 100))), abs=0.015)


def alarms_line(stated: Any) -> str:
    explained = explain_variants(parse_settings(yaml.safe_dump(stated)), "e")["e"]
    [text] = [line.text for line in explained.summary if line.title == "Alarms"]
    return text


def test_the_plan_says_what_the_objective_is_about():
    """The tightest threshold: 80 % of 200 ms; of 0.07 a second 30 beyond p50 take 15 minutes."""
    stated = with_objective(0.07, "0.995", {"p50": 200, "p99": 900}, None, targets=True)
    objective = "objective: p50 160 ms in 99.5 % of periods of 15 minutes"
    assert alarms_line(stated).endswith(f"; {objective}")
    own = with_objective(0.07, "0.99", {"p99": 900, "Average": 100}, 5, targets=False)
    assert alarms_line(own).endswith("objective: p99 900 ms in 99 % of periods of 5 minutes")
    assert "objective" not in alarms_line(job(load(0.07)))
    china = stated | {
        "region": "cn-north-1",
        "client_zones": {"ids": ["cnn1-az1", "cnn1-az2"]},
        "alarm_topic_arn": "arn:aws-cn:sns:cn-north-1:123456789012:on-call",
    }
    assert "objective" not in alarms_line(china)
    assert FEW_SAMPLES not in warnings_of(china)
