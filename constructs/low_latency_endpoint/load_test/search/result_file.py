"""A load test as one JSON file: for the simulator, for the plan, and for people."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ... import __version__
from ...errors import rule
from ...facts.prices import Price
from ...options.throughput import MeasuredThroughput
from ...plan.hourly_cost import LoadTestCost
from ...plan.load_test_validity import SCHEMA
from ...report.json_text import json_text
from ..engine.latencies import LatencyHistogram
from ..engine.target import Target
from .judging import LatencyGoal
from .limit_search import Limit
from .measured_steps import MeasuredStep
from .run_plans import Mode, RunPlan
from .serving import JoinedMetrics, ServingFleet
from .verdict_texts import Verdict

WRITTEN = rule(
    "LLT115", "a file of the load test cannot be written", fix="Name a file in a writable folder."
)


@dataclass(frozen=True)
class LoadTestRun:
    """What was run."""

    plan: RunPlan
    steps: tuple[MeasuredStep, ...]
    limit: Limit | None  # of a search that came to its end
    started_at: float  # epoch seconds of the whole run
    ended_at: float
    # whether it was stopped before its end; the steps are those that were whole
    interrupted: bool = False
    failure: str = ""  # what ended it, where it was not Ctrl-C

    @property
    def mode(self) -> Mode:
        """What was asked for."""
        return self.plan.mode

    @property
    def goal(self) -> LatencyGoal:
        """What the steps were judged by."""
        return self.plan.goal

    @property
    def alone(self) -> MeasuredStep | None:
        """The step of one caller at a time."""
        return next((step for step in self.steps if step.purpose == "alone"), None)

    @property
    def loads(self) -> tuple[MeasuredStep, ...]:
        """All steps but that one."""
        return tuple(step for step in self.steps if step.purpose != "alone")

    @property
    def held(self) -> bool:
        """Whether a limit was found, all that a search was to try held, or every step did."""
        if self.interrupted or not self.loads:
            return False
        if self.plan.search is not None:
            return self.limit is not None and self.limit.found
        good = ("held",) if self.mode == "confirm" else ("held", "unclear")
        return all(step.judgement.kept and step.judgement.outcome in good for step in self.loads)

    def concurrency(self, instances: int | None) -> int | None:
        """Requests that one instance works on at once, by Little's law at its highest throughput.

        None unless a step offered more than was answered: below that the instances were not full.
        """
        if instances is None or self.alone is None or not self.alone.result.completed:
            return None
        full = [
            step.result.rate
            for step in self.loads
            if step.judgement.outcome == "broken"
            and step.offered is not None
            and step.result.rate < 0.97 * step.offered
        ]
        if not full:
            return None
        at_once = max(full) / instances * self.alone.result.service.mean
        return max(1, round(at_once))


@dataclass(frozen=True)
class LoadTestReport:
    """A load test with everything that belongs to it."""

    target: Target
    run: LoadTestRun
    fleet: ServingFleet = field(default_factory=ServingFleet)  # as it was when the run began
    metrics: JoinedMetrics = field(default_factory=JoinedMetrics)  # of CloudWatch, the same time
    verdicts: tuple[Verdict, ...] = ()
    payload: str = ""  # what was sent, in words
    peak_tps: float | None = None  # what the settings file wants to hold, and how carefully
    safety_factor: float | None = None
    stated_instances: int | None = None  # how many serve, as it was told
    price: Price | None = None  # of one instance for an hour

    @property
    def instances(self) -> int | None:
        """How many served; ``None`` where it is not known."""
        if self.run.limit is not None:
            return self.run.limit.instances
        if self.stated_instances is not None:
            return self.stated_instances
        return None if self.target.inference_component is not None else self.fleet.instances

    @property
    def invalid(self) -> bool:
        """Whether the figures say nothing about the endpoint."""
        return any(verdict.severity == "invalid" for verdict in self.verdicts)

    @property
    def held(self) -> bool | None:
        """Whether the goal was held; ``None`` where that was not found out."""
        outcomes = {step.judgement.outcome for step in self.run.loads}
        if self.invalid or (self.run.held and "unclear" in outcomes and self.run.limit is None):
            return None
        if self.run.held:
            return True
        return False if "broken" in outcomes else None

    @property
    def throughput(self) -> MeasuredThroughput | None:
        """What was measured, as the plan and the constructs take it; needs a peak to hold.

        ``None`` without a usable limit, without a rate that held with a confidence, or without a
        peak.
        """
        return self.throughput_of(self.planned_tps)

    def throughput_of(self, tps_per_instance: float | None) -> MeasuredThroughput | None:
        """The peak with what an instance holds; ``None`` without either."""
        if tps_per_instance is None or self.peak_tps is None:
            return None
        factor: dict[str, Any] = (
            {} if self.safety_factor is None else {"safety_factor": self.safety_factor}
        )
        return MeasuredThroughput(
            peak_tps=self.peak_tps, tps_per_instance=tps_per_instance, **factor
        )

    @property
    def planned_tps(self) -> float | None:
        """Requests per second of one instance that a plan may rest on; ``None`` where none may."""
        limit = self.run.limit
        if limit is None or not limit.usable or self.invalid:
            return None
        return limit.assured_tps_per_instance

    @property
    def _throughput_confidence(self) -> float | None:
        """That the plan's rate meets every target; ``None`` where its errors are not shown."""
        limit = self.run.limit
        if limit is None or limit.assured is None:
            return None
        goal = self.run.goal
        return goal.confidence if limit.assured.failures <= goal.allowed_errors else None

    @property
    def cost(self) -> LoadTestCost | None:
        """What it cost, and what a million requests cost; ``None`` without instances.

        ``None`` too if the machine's clock was set back meanwhile: how long it took is not known.
        """
        seconds = self.run.ended_at - self.run.started_at
        if self.instances is None or not self.run.steps or seconds < 0:
            return None
        limit = self.run.limit
        usable = limit is not None and limit.usable and not self.invalid
        return LoadTestCost(
            instance_type=self.fleet.instance_type,
            instances=self.instances,
            seconds=seconds,
            price=self.price,
            tps_per_instance=limit.tps_per_instance if limit is not None and usable else None,
            lower_bound=limit is not None and limit.lower_bound,
        )

    @property
    def held_rate(self) -> float | None:
        """The highest rate that kept the goal as measured, per second; ``None`` when none did."""
        if self.run.limit is not None:
            return self.run.limit.rate
        return max(
            (
                step.result.rate
                for step in self.run.loads
                if step.judgement.kept and step.result.valid and math.isfinite(step.result.rate)
            ),
            default=None,
        )

    @property
    def source(self) -> str:
        """Where the figures come from, in words."""
        day = f"{datetime.fromtimestamp(self.run.started_at, UTC):%Y-%m-%d}"
        on = f" on {self.fleet.instance_type}" if self.fleet.instance_type else ""
        text = f"load test of {self.target.endpoint_name}{on}, {day}"
        if self.run.alone is None:
            text += " (service times not measured alone: waits are in them)"
        return text

    def to_dict(self) -> dict[str, Any]:
        """The content of the file."""
        run, throughput = self.run, self.throughput
        limit = None if run.limit is None else run.limit.to_dict()
        if limit is not None and self.invalid:
            limit["confirmed"] = False
            limit["problem"] = limit["problem"] or next(
                f"{verdict.title}: {'; '.join(verdict.evidence)}"
                for verdict in self.verdicts
                if verdict.severity == "invalid"
            )
        return {
            "schema": SCHEMA,
            "source": self.source,
            "instances": self.instances,
            "rate": self.held_rate,
            "concurrency": run.concurrency(self.instances),
            "slope": 0.0,
            "service_time_ms": self._service_times(),
            "version": __version__,
            "endpoint": self.target.endpoint_name,
            "variant": self.fleet.variant,
            "region": self.target.region,
            "mode": run.mode,
            "started_at": iso_time(run.started_at),
            "ended_at": iso_time(run.ended_at),
            "interrupted": run.interrupted,
            "failure": run.failure,
            "held": self.held,
            "payload": self.payload,
            "target": self.target.to_dict(),
            "fleet": self.fleet.to_dict(),
            "latency_target": run.goal.to_dict(),
            "limit": limit,
            "throughput": None
            if throughput is None or limit is None
            else {
                "peak_tps": throughput.peak_tps,
                "tps_per_instance": throughput.tps_per_instance,
                "safety_factor": throughput.safety_factor,
                "confidence": self._throughput_confidence,
                "low": limit["low"],
                "high": limit["high"],
            },
            "cost": None if self.cost is None else self.cost.to_dict(),
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "metrics": self.metrics.to_dict(),
            "steps": [
                {**step.to_dict(), "metrics": self.metrics.of(step.result).to_dict()}
                for step in run.steps
            ],
        }

    def to_json(self) -> str:
        """The file's text."""
        return json_text(self.to_dict())

    def _service_times(self) -> dict[str, Any]:
        alone = self.run.alone
        steps = [alone] if alone else sorted(self.run.loads, key=lambda step: step.result.rate)
        times = (step.result.service for step in steps)
        found = next((each for each in times if each.count > 1), None)
        return {"quantiles": {} if found is None else _quantiles_ms(found)}


def _quantiles_ms(latencies: LatencyHistogram) -> dict[str, float]:
    """Times by probability; no more of them than samples could tell apart."""
    steps = min(1000, max(1, latencies.count - 1))
    shares = [number / steps for number in range(steps + 1)]
    rising, found = 0.0, {}
    for share, seconds in zip(shares, latencies.quantiles(shares), strict=True):
        rising = max(rising, 1000 * seconds, 1e-3)
        found[f"{share:.6g}"] = rising
    return found


def iso_time(seconds: float) -> str:
    """Epoch seconds as ISO 8601 has them."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def write_text(path: Path, text: str) -> None:
    """Write a file of the load test."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WRITTEN.error(
            got=f"{path}: {error.strerror or error}", allowed="a file in an existing folder"
        ) from error
