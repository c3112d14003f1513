"""The traffic that Inference Recommender sends: closed-loop users, in phases or stairs.

A user calls, waits for the answer and calls again, so the rate follows from the endpoint's speed.
Source of the limits: the developer guide's "Run a custom load test".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ...errors import ConfigurationError
from ...plan.recommendation_limits import (
    PHASE_SPAWN_RATE,
    PHASE_USERS,
    STAIR_STEPS,
    STAIR_USERS,
    TRAFFIC_RULE,
    TRAFFIC_SECONDS,
)
from ...settings import RecommendationSettings
from ...settings.breach import BreachError
from ...settings.fields import duration_text, parse_duration
from .threshold import STOPPING


@dataclass(frozen=True, slots=True)
class Phase:
    """Users at the start, users added each minute, and for how long.

    Raises
    ------
    ConfigurationError
        LLR105.
    """

    users: int
    spawn_rate: int
    seconds: int

    def __post_init__(self) -> None:
        PHASE_USERS.check(self.users, "--phase users")
        PHASE_SPAWN_RATE.check(self.spawn_rate, "--phase spawn-rate")
        TRAFFIC_SECONDS.check(self.seconds, "--phase duration")


@dataclass(frozen=True, slots=True)
class Stairs:
    """So many steps within the whole time, each adding users.

    Raises
    ------
    ConfigurationError
        LLR105.
    """

    steps: int
    users_per_step: int
    seconds: int

    def __post_init__(self) -> None:
        STAIR_STEPS.check(self.steps, "--stairs steps")
        STAIR_USERS.check(self.users_per_step, "--stairs users-per-step")
        TRAFFIC_SECONDS.check(self.seconds, "--stairs duration")


Traffic = tuple[Phase, ...] | Stairs

#: One user, three more each minute: 30 after ten minutes. AWS's guide has 15 to 20 users reach
#: 500 requests per second on ml.c5.large; the test ends by itself when the rate flattens.
DEFAULT_TRAFFIC: Traffic = (Phase(users=1, spawn_rate=3, seconds=600),)


def seconds_of_traffic(traffic: Traffic) -> int:
    """How long one test sends.

    Examples
    --------
    >>> seconds_of_traffic((Phase(1, 1, 120), Phase(2, 0, 180)))
    300
    """
    if isinstance(traffic, Stairs):
        return traffic.seconds
    return sum(phase.seconds for phase in traffic)


def traffic_request(traffic: Traffic) -> dict[str, Any]:
    """``TrafficPattern`` of the API."""
    if isinstance(traffic, Stairs):
        return {
            "TrafficType": "STAIRS",
            "Stairs": {
                "DurationInSeconds": traffic.seconds,
                "NumberOfSteps": traffic.steps,
                "UsersPerStep": traffic.users_per_step,
            },
        }
    return {
        "TrafficType": "PHASES",
        "Phases": [
            {
                "InitialNumberOfUsers": phase.users,
                "SpawnRate": phase.spawn_rate,
                "DurationInSeconds": phase.seconds,
            }
            for phase in traffic
        ],
    }


def traffic_text(traffic: Traffic) -> str:
    """The traffic in words.

    Examples
    --------
    >>> traffic_text(DEFAULT_TRAFFIC)
    '1 user, 3 more each minute for 10m'
    >>> traffic_text(Stairs(5, 3, 600))
    '5 steps of 3 more users in 10m'
    """
    if isinstance(traffic, Stairs):
        return (
            f"{traffic.steps} steps of {traffic.users_per_step} more users in "
            f"{_minutes(traffic.seconds)}"
        )
    return ", then ".join(
        f"{phase.users} user{'s' * (phase.users != 1)}, {phase.spawn_rate} more each minute for "
        f"{_minutes(phase.seconds)}"
        for phase in traffic
    )


def _minutes(seconds: int) -> str:
    return duration_text(timedelta(seconds=seconds))


def stated_traffic(stated: RecommendationSettings | None) -> Traffic:
    """The settings' traffic; the default where they state none."""
    if stated is not None and stated.stairs is not None:
        return Stairs(
            stated.stairs.steps,
            stated.stairs.users_per_step,
            int(stated.stairs.duration.total_seconds()),
        )
    if stated is not None and stated.phases:
        return tuple(
            Phase(each.users, each.spawn_rate, int(each.duration.total_seconds()))
            for each in stated.phases
        )
    return DEFAULT_TRAFFIC


def parse_phases(texts: Sequence[str]) -> tuple[Phase, ...]:
    """Phases as the AWS CLI writes structures.

    Raises
    ------
    ConfigurationError
        LLR105.

    Examples
    --------
    >>> parse_phases(["users=1,spawn-rate=2,duration=2m"])
    (Phase(users=1, spawn_rate=2, seconds=120),)
    """
    phases = []
    for text in texts:
        given = _fields(text, "--phase", ("users", "spawn-rate", "duration"))
        phases.append(Phase(given["users"], given["spawn-rate"], given["duration"]))
    return tuple(phases)


def parse_stairs(text: str) -> Stairs:
    """Stairs as the AWS CLI writes structures.

    Raises
    ------
    ConfigurationError
        LLR105.

    Examples
    --------
    >>> parse_stairs("steps=5,users-per-step=3,duration=10m")
    Stairs(steps=5, users_per_step=3, seconds=600)
    """
    given = _fields(text, "--stairs", ("steps", "users-per-step", "duration"))
    return Stairs(given["steps"], given["users-per-step"], given["duration"])


def _fields(text: str, option: str, names: tuple[str, ...]) -> Mapping[str, int]:
    wrong = TRAFFIC_RULE.error(
        got=text, allowed=",".join(f"{name}=..." for name in names), where=option
    )
    parts = [part.partition("=") for part in text.split(",")]
    if sorted(name for name, _, _ in parts) != sorted(names):
        raise wrong
    found = {}
    for name, _, value in parts:
        if name == "duration":
            found[name] = seconds_of_text(value, option, wrong)
        elif value.isascii() and value.isdigit():
            found[name] = int(value[:9])
        else:
            raise wrong
    return found


def seconds_of_text(text: str, option: str, wrong: ConfigurationError | None = None) -> int:
    """Whole seconds of a duration such as ``2h``.

    Raises
    ------
    ConfigurationError
        LLR106 unless another error is given, for text that is no duration in whole seconds.
    """
    try:
        seconds = parse_duration(text).total_seconds()
    except BreachError:
        seconds = 0.5
    if seconds != int(seconds):
        raise wrong or STOPPING.error(
            got=text, allowed="whole seconds with a unit, such as 90m or 2h", where=option
        )
    return int(seconds)
