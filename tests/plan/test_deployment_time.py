"""How long a deployment takes, and what a stated rise brings while nothing scales."""

from __future__ import annotations

import random
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
import yaml

from low_latency_endpoint import DeploymentPolicy
from low_latency_endpoint.plan.deployment_time import (
    DeploymentTime,
    deployment_time,
    errors_seen,
    fewest_while_rising,
    first_part_words,
)
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.settings import parse_settings
from low_latency_endpoint.settings.variant_plans import plan_endpoint
from low_latency_endpoint.simulate import Rollout
from tests.depth import examples

from .test_few_requests import drawn_rate, load, warnings_of
from .test_quiet_times import assumed
from .test_sizing_jobs import job

SEED = 59
TOO_LONG = "deployment-too-long"
LOAD = {"peak_tps": 1040, "tps_per_instance": 100, "safety_factor": 0.65, "rise_tps_per_minute": 8}
CANARY = {"canary": {"size_percent": 10, "wait": "5m"}, "termination_wait": "2m"}
ROLLING = {"rolling": {"batch_percent": 25, "wait": "5m"}, "maximum_execution": "1h"}


def deployed(deployment: Any, load: Any = LOAD, minimum: int = 4) -> Any:
    return job(
        load,
        instances={"min": minimum, "max": 16},
        scaling={"instance_start": "6m"},
        deployment=deployment,
    )


def plan_of(stated: Any) -> Plan:
    return plan_endpoint(parse_settings(yaml.safe_dump(stated)), "e")


def time_of(stated: Any) -> DeploymentTime:
    time = deployment_time(plan_of(stated))
    assert time is not None
    return time


def test_a_canary_starts_once_and_is_watched():
    """6 minutes of start, 5 of the canary and 2 for the old fleet; and 5 of a last baking perhaps."""
    stated = deployed(CANARY)
    assert time_of(stated).seconds == (780, 1080)
    assert "about 13 to 18 minutes (AWS does not say how long" in time_of(stated).text
    assert TOO_LONG not in warnings_of(stated)


def test_batches_start_one_after_the_other():
    """Between 4 and 16 instances a quarter is one to four: 3 batches of 2 for 5, and 7 of 1 for 7."""
    stated = deployed(ROLLING)
    warnings = warnings_of(stated)
    assert time_of(stated).seconds == (33 * 60, 77 * 60)
    assert "33 to 77 minutes: 3 to 7 batches" in warnings[TOO_LONG]
    assert "raise it above 77 minutes" in warnings[TOO_LONG]
    longer = ROLLING | {"maximum_execution": "78m"}
    assert TOO_LONG not in warnings_of(deployed(longer))


@pytest.mark.parametrize(
    ("deployment", "load", "fewest"),
    [
        (CANARY, {}, 6),  # 8 x 25 = 200, and 35 in reserve of each
        (CANARY, {"rise_tps_per_minute": 5.6}, 0),  # 140 = 4 x 35
        (ROLLING, {}, 12),  # 8 x 84 = 672 would need 20; 1,040 / 90 hold the peak
        (ROLLING, {"peak_tps": 390}, 0),  # 400 are held by four
        (ROLLING, {"peak_tps": 410}, 5),
    ],
)
def test_until_scaling_follows_a_rise_has_to_be_held(deployment, load, fewest):
    """Nothing scales while it lasts, and new instances serve seven minutes after it."""
    stated = deployed(deployment, LOAD | load)
    assert fewest_while_rising(plan_of(stated)) == fewest
    said = f"no deployment while load rises and fewer than {fewest} instances serve"
    assert (said in assumed(stated)) is bool(fewest)


def drawn_policy(rng: random.Random) -> dict[str, Any]:
    wait = f"{rng.choice([0, 1, 5, 20])}m"
    kinds = [
        {"canary": {"size_percent": rng.choice([5, 10, 50]), "wait": wait}},
        {"linear": {"step_percent": rng.choice([10, 25, 50]), "wait": wait}},
        {"all_at_once": {"wait": wait}},
        {"rolling": {"batch_percent": rng.randint(5, 50), "wait": wait}},
    ]
    return rng.choice(kinds)


def test_so_many_instances_outlive_the_deployment_and_one_fewer_does_not():
    """Drawn policies and rises, minute by minute: the load begins where scaling keeps the fleet."""
    rng = random.Random(SEED)
    said = {True: 0, False: 0}
    for _ in range(examples(60)):
        rise = rng.choice([1, 5, 20, 80])
        stated = deployed(drawn_policy(rng), LOAD | {"rise_tps_per_minute": rise})
        fewest = fewest_while_rising(plan_of(stated))
        seconds = time_of(stated).seconds[1] + 7 * 60

        def is_held(instances, seconds=seconds, rise=rise):
            load = min(1040, instances * 65 + Fraction(rise) * Fraction(round(seconds), 60))
            return load <= instances * 100

        said[bool(fewest)] += 1
        assert is_held(fewest or 4)
        if fewest:
            assert not is_held(4)
    assert min(said.values()) > 5


@pytest.mark.parametrize("fleet", [4, 5, 7, 11, 16])
def test_the_simulated_deployment_takes_as_long(fleet):
    """The simulation ends with the last batch's start; here its watching is counted too."""
    low, high = time_of(deployed(ROLLING)).seconds
    rollout = Rollout(
        at=0.0, kind="rolling", step_share=0.25, wait_seconds=300.0, instance_seconds=360.0
    )
    assert low <= rollout.seconds(fleet) + 300 <= high


def test_an_update_of_no_length_is_told_in_minutes():
    policy = DeploymentPolicy.all_at_once(wait=timedelta())
    assert policy.waits == timedelta()
    text = time_of(deployed({"all_at_once": {}})).text
    assert text == "about 6 minutes, of which new instances take 6 minutes to start"


def requests_of_first_part(deployment: dict[str, Any], tps: float) -> Fraction:
    [(kind, part)] = [item for item in deployment.items() if isinstance(item[1], dict)]
    names = {"canary": "size_percent", "linear": "step_percent", "rolling": "batch_percent"}
    percent = part[names[kind]] if kind in names else 100
    return Fraction(repr(tps)) * 60 * percent / 100


def test_the_plan_warns_exactly_where_a_tenth_of_failures_is_rolled_out():
    """At the lowest stated rate a tenth of the requests are fewer than the failures waited for."""
    rng = random.Random(SEED)
    said = {True: 0, False: 0}
    for _ in range(examples(80)):
        peak = drawn_rate(rng)
        quiet = rng.choice([None, peak / 10, peak * 2])
        failures = rng.choice([1, 3, 10])
        policy = drawn_policy(rng)
        peaks = {"night": {"tps": quiet, "from": "22:00", "to": "06:00"}} if quiet else {}
        stated = deployed(policy, load(peak) | {"peaks": peaks})
        stated["endpoints"]["e"]["alarms"] = {"minimum_failures": failures}
        warnings = warnings_of(stated)
        lowest = min(peak, quiet or peak)
        [part] = policy.values()
        is_brief = part["wait"] in ("0m", "1m")
        requests = requests_of_first_part(policy, lowest)
        is_blind = requests / 10 < failures
        assert ("wait-too-short-for-rollback" in warnings) is is_brief, policy
        text = warnings.get("few-requests-for-rollback", "")
        assert bool(text) is (is_blind and not is_brief), stated
        if text:
            assert ("fails every request" in text) is (requests <= failures)
        said[is_blind] += 1
        off = policy | {"rollback_on_alarms": False}
        stated["endpoints"]["e"]["deployment"] = off
        assert not [name for name in warnings_of(stated) if name.endswith("for-rollback")]
    assert min(said.values()) > 10


def test_a_canary_at_night_sees_a_tenth():
    """10 % of 30 requests a second for five minutes are 900, and 90 of 3 a second: 18 a minute.

    Three of 18 are 16.7 %.
    """
    peaks = {"night": {"tps": 3, "from": "22:00", "to": "06:00"}}
    stated = deployed(CANARY, LOAD | {"peak_tps": 30, "peaks": peaks})
    words = first_part_words(plan_of(stated))
    assert words == (
        "about 900 requests at the peak, 90 in night, judge the first 10 % of a new version; "
    )
    seen = "errors from 1.7 % on in each of two minutes, 17 % in night"
    assert errors_seen(plan_of(stated)) == seen
    text = warnings_of(stated)["few-requests-for-rollback"]
    assert "gets only 18 requests a minute" in text
    assert "a version that fails less than 17 % of them may be rolled out" in text
