"""A fault of one endpoint, the finding that it must produce, and values that change with the minute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from low_latency_endpoint.operate.diagnose import Diagnosis, diagnose

from ..account import FakeAccount
from ..scenarios import END, ENDPOINT, Scenario, constant


@dataclass(frozen=True, eq=False)
class Fault:
    """One fault in one endpoint; a pattern needs so many minutes ``over`` which it shows.

    ``companions`` are findings that belong to the fault too; anything else is a false finding.
    """

    finding: str
    name: str
    says: tuple[str, ...]
    changes: tuple[str, ...]
    scenario: Callable[[], Scenario]
    companions: frozenset[str]
    client_latency: dict[str, float] | None
    over: int

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    @cached_property
    def account(self) -> FakeAccount:
        """An account with this fault, one for all tests: they only read it."""
        return self.scenario().account()

    @cached_property
    def diagnosed(self) -> Diagnosis:
        """What is found in the scenario's window, read once for all tests."""
        return self.diagnosed_over(self.scenario().minutes)

    def diagnosed_over(self, minutes: int) -> Diagnosis:
        """What is found in the last minutes."""
        return diagnose(
            self.account,
            ENDPOINT,
            start=END - timedelta(minutes=minutes),
            end=END,
            now=END,
            region="us-east-1",
            client_latency=self.client_latency,
        )


def fault(
    says: str,
    changes: str = "",
    *,
    of: Callable[..., Scenario] = Scenario,
    companion: str = "",
    client_latency: dict[str, float] | None = None,
    over: int = 45,
    **scenario: Any,
) -> Callable[[str, str], Fault]:
    """A fault, but for its finding and name, of which all is told that stands between ``" & "``."""
    return partial(
        Fault,
        says=tuple(says.split(" & ")),
        changes=tuple(changes.split(" & ")) if changes else (),
        scenario=partial(of, **scenario),
        companions=frozenset({companion} - {""}),
        client_latency=client_latency,
        over=over,
    )


def from_minute(minute: int, before: float, after: float) -> Callable[[int], float]:
    """One value before the minute, another from it on."""
    return lambda now: before if now < minute else after


def between(first: int, last: int, inside: float, outside: float) -> Callable[[int], float]:
    """One value in some minutes, another in the others."""
    return lambda now: inside if first <= now < last else outside


def slow(
    first: int, last: int, by: float, *, instances: range = range(99)
) -> Callable[[int, int], float]:
    """The latency of some instances in some minutes; 40 ms else."""
    return lambda m, i: by if first <= m < last and i in instances else 40


def up_to(most: int, target: float = 7800.0) -> dict[str, Any]:
    """Scaling from two instances to so many."""
    return {"min": 2, "max": most, "target": target}


def watched(**in_one_zone: Callable[[int], float | None]) -> dict[str, dict[str, Any]]:
    """What canaries see in two zones: all is well but for these metrics in one of them.

    ``None`` is a run that published nothing.
    """
    well = {
        "CanaryConnectTime": constant(1),
        "CanaryAnswerTime": constant(50),
        "CanaryUnreachable": constant(0),
        "CanaryRefused": constant(0),
        "CanaryOutOfZone": constant(0),
    }
    return {"use1-az1": {**well, **in_one_zone}, "use1-az2": well}
