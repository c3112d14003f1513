"""Alarms in the quiet times that peaks state: judged as they would be if that were all the load."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
import yaml

from low_latency_endpoint.settings import explain_variants, parse_settings
from tests.depth import examples

from .test_few_requests import drawn_rate, load, warnings_of
from .test_sizing_jobs import job

SEED = 59
#: Those that say that an alarm, or an objective, has too few requests.
FEW = ("few-samples-", "few-requests")
MINUTES = (1, 2, 5, 10, 30, 60)
NIGHT = {"from": "18:00", "to": "06:00"}


def few(stated: Any) -> set[str]:
    return {name for name in warnings_of(stated) if name.startswith(FEW)}


def with_night(peak: float, quiet: float, alarms: dict[str, Any], times: Any = NIGHT) -> Any:
    night = {"tps": quiet, **times}
    return job({**load(peak), "peaks": {"night": night}}, alarms=alarms)


def drawn_alarms(rng: random.Random) -> dict[str, Any]:
    """At least ten failures, as the plan asks for ten requests at the peak whatever is stated."""
    objective = rng.choice([0.95, 0.99, 0.999])
    return {
        "period": f"{rng.choice(MINUTES)}m",
        "minimum_failures": rng.choice([10, 20]),
        "model_latency": {rng.choice(["p90", "p99", "p99.9"]): "150ms"},
        "slow_requests": {"threshold": "200ms", "objective": objective},
    }


def test_a_quiet_time_is_judged_as_if_it_were_the_only_load():
    """With a stated period, so that the windows are the same; and never more than the two rates say."""
    rng = random.Random(SEED)
    said = 0
    for _ in range(examples(60)):
        # Of less than a call a minute the plan has no threshold.
        low, high = sorted(max(0.02, drawn_rate(rng)) for _ in range(2))
        alarms = drawn_alarms(rng)
        alone = few(job(load(low), alarms=alarms))
        at_peak = few(job(load(high), alarms=alarms))
        both = few(with_night(high, low, alarms))
        assert both == alone | at_peak, (high, low, alarms)
        said += bool(alone - at_peak)
    assert said > 5


def test_an_objective_on_periods_counts_those_of_the_quiet_time():
    """At 30 requests a second p99 has 18 beyond it a minute; at 0.1 a minute has six, and one is 17 %.

    1 - 0.99^6 = 5.9 % of the night's periods are missed: 2.9 % of a day's if it lasts twelve hours,
    and 0.25 % if it lasts an hour.
    """
    alarms = {"service_level_objective": 0.99, "period": "1m", "model_latency": {"p99": "150ms"}}
    name = "few-samples-for-objective"
    assert name not in few(job(load(60), alarms=alarms))
    text = warnings_of(with_night(60, 0.1, alarms))[name]
    assert "at the 0.1 requests per second of throughput.peaks.night only 6 requests" in text
    assert "misses about 5.9 % of the periods" in text
    assert "lets 1 % of a day's, 2 % of those in this time" in text
    hour = {"from": "03:00", "to": "04:00"}
    assert name not in few(with_night(60, 0.1, alarms, hour))


@pytest.mark.parametrize("canary", [False, True])
def test_a_total_failure_at_night_may_stay_silent_unless_a_canary_tells(canary):
    """One request a minute, of which three have to fail, in two of three minutes: 93 minutes on average."""
    stated = with_night(0.5, 0.0167, {})
    if canary:
        stated["endpoints"]["e"]["canary"] = {"payload": {"text": "hello"}}
    text = warnings_of(stated).get("few-requests", "")
    assert ("only 1 request comes in a minute, and the error alarm waits for 3" in text) != canary


def test_a_quiet_time_with_enough_requests_is_no_warning():
    assert not few(with_night(500, 50, {}))


def assumed(stated: Any) -> str:
    explained = explain_variants(parse_settings(yaml.safe_dump(stated)), "e")["e"]
    [text] = [line.text for line in explained.summary if line.title == "Assumed"]
    return text


def test_a_low_peak_alone_is_assumed_to_last_all_day():
    """A tenth of it would not bring ten requests in a minute."""
    rng = random.Random(SEED)
    for _ in range(examples(20)):
        peak = drawn_rate(rng)
        is_low = Fraction(repr(peak)) * 60 < 100
        is_said = "no time is much quieter than the peak" in assumed(job(load(peak)))
        assert is_said is is_low, peak
    assert "much quieter" not in assumed(with_night(0.5, 0.0167, {}))
