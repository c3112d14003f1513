"""The largest rate at which a language model's endpoint keeps its targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import rule
from .token_serving import TokenScenario
from .token_simulating import TokenResult, simulate_tokens
from .traffic import OpenLoop

NO_TARGET = rule(
    "LLS144",
    "the largest rate needs targets",
    fix="Give targets of the time to first token or the inter-token latency, such as "
    "--target ttft-p95=500ms --target itl-p95=50ms.",
)
Targets = Mapping[float, float]


@dataclass(frozen=True)
class TokenTargets:
    """What a rate must keep: percentiles of both times, and goodput.

    Parameters
    ----------
    ttft, itl : mapping of float to float
        Percentile (50, 90, 95, 99) to seconds.
    goodput : float, optional
        Share of the requests that must keep both targets. By default as the highest percentile of
        each kind says, and of the two the lower one: 0.95 for p95. So do load tests.
    """

    ttft: Targets
    itl: Targets
    goodput: float | None = None

    def __post_init__(self) -> None:
        if not self.ttft and not self.itl:
            raise NO_TARGET.error(got="none", allowed="at least one")

    @property
    def share(self) -> float:
        """Share of the requests that must keep the targets."""
        if self.goodput is not None:
            return self.goodput
        return min(max(each) for each in (self.ttft, self.itl) if each) / 100

    def on(self, scenario: TokenScenario) -> TokenScenario:
        """The scenario with what a single request is judged by: the highest percentile of each."""
        return scenario.with_(
            ttft_target=self.ttft[max(self.ttft)] if self.ttft else None,
            itl_target=self.itl[max(self.itl)] if self.itl else None,
        )

    def kept(self, result: TokenResult) -> bool:
        """Whether a result keeps all of them, with the whole of every interval."""
        return (
            all(result.ttft(at).high <= limit for at, limit in self.ttft.items())
            and all(result.itl(at).high <= limit for at, limit in self.itl.items())
            and result.goodput.low >= self.share
        )


def largest_rate(
    scenario: TokenScenario, targets: TokenTargets, *, precision: float = 0.02, **options: Any
) -> tuple[float, TokenResult | None]:
    """The largest rate of an open loop that keeps targets, and what it is like there.

    Doubling, then halving the interval; more load is taken to be never quicker.

    Parameters
    ----------
    scenario : TokenScenario
        With an open loop, of which the search changes the rate.
    targets : TokenTargets
    precision : float
        Of the rate, as a share of it. By default 0.02.
    **options
        As for :func:`simulate_tokens`.

    Returns
    -------
    (float, TokenResult or None)
        Requests per second of all instances; 0 and ``None`` when even a lone request misses.
    """
    traffic = scenario.traffic
    assert isinstance(traffic, OpenLoop)
    judged = targets.on(scenario)

    def at(rate: float) -> TokenResult:
        return simulate_tokens(judged.with_(traffic=replace(traffic, rate=rate)), **options)

    low, best, high = 0.0, None, math.inf
    rate = 0.1 * scenario.instances
    while high - low > precision * low or not low:
        found = at(rate)
        if targets.kept(found):
            low, best = rate, found
        else:
            high = rate
        if high < 1e-4:
            return 0.0, None
        rate = rate * 2 if math.isinf(high) else (low + high) / 2 if low else high / 4
        if rate > 1e6:
            break
    return low, best
