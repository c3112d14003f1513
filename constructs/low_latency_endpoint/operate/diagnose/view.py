"""One variant as the rules look at it: which periods are slow, how full the instances were."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any

from ...account.metrics import FAILURES, Series, failed_requests, median
from ...plan.alarm_windows import AlarmWindow, share_beyond, window_text
from ...report.numbers import milliseconds, readable
from . import thresholds as const
from .findings import Evidence, Finding, Remedy, finding
from .measurements import Measurements, Rise, VariantReading, rises, serving
from .sustained import conditions, in_periods, lasts, lasts_over, windows_of

INVOCATIONS, IN_FLIGHT = "invocations per instance and minute", "requests in flight on an instance"
_LATENCIES = ("ModelLatency", "OverheadLatency")
ALIKE = Series()
"""Weights of periods that count alike."""


@dataclass(frozen=True, slots=True)
class TrackedMetric:
    """A metric per instance, and the value that scaling aims at."""

    series: Series
    target: float
    unit: str

    @property
    def concurrency(self) -> bool:
        """Whether scaling follows requests in flight, queued ones too."""
        return self.unit == IN_FLIGHT

    def peak(self, times: Iterable[datetime]) -> float | None:
        return self.series.only(times).max

    def too_much(self, value: float) -> bool:
        """Whether this is more than the instances were meant for, beyond any doubt."""
        return (
            value
            >= (const.TOO_MUCH_IN_FLIGHT if self.concurrency else const.TOO_MUCH_LOAD) * self.target
        )

    def times_above(self) -> list[datetime]:
        limit = (const.TOO_MUCH_IN_FLIGHT if self.concurrency else 1) * self.target
        return sorted(time for time, value in self.series.points.items() if value >= limit)

    def words(self, value: float) -> str:
        form = ".3g" if max(value, self.target) < 100 else ",.0f"
        return f"{value:{form}} {self.unit} against a target of {self.target:{form}}"


def runs(times: list[datetime], gap: timedelta) -> list[tuple[datetime, datetime]]:
    """First and last of the times without a longer gap.

    >>> minute = timedelta(minutes=1)
    >>> start = datetime(2026, 11, 20)
    >>> [(end - start) / minute for start, end in runs(
    ...     [start, start + minute, start + 9 * minute], 3 * minute)]
    [1.0, 0.0]
    """
    runs: list[tuple[datetime, datetime]] = []
    for time in sorted(times):
        if runs and time - runs[-1][1] <= gap:
            runs[-1] = (runs[-1][0], time)
        else:
            runs.append((time, time))
    return runs


def bulk(counts: Series) -> Series:
    """The periods that hold most of what was counted: a few events in others say nothing of it.

    These are the fewest that hold four fifths, and those with half as many as the least of them.

    >>> start = datetime(2026, 11, 20)
    >>> errors = dict(enumerate([0, 900, 500, 300, 1, 0, 2]))
    >>> series = Series({start + n * timedelta(minutes=1): v for n, v in errors.items()})
    >>> list(bulk(series).points.values())
    [900, 500, 300]
    """
    least = counts.weighted_percentile(counts, 1 - const.MOST) or 0
    kept = {t: v for t, v in counts.points.items() if v > 0 and v >= const.HALF * least}
    return Series(dict(sorted(kept.items())))


@dataclass(frozen=True)
class SlowPeriods:
    """Periods in which a statistic was above its threshold, when there are enough of them."""

    metric: str
    statistic: str
    threshold: float
    source: str
    values: Series
    judged: int

    @property
    def worst(self) -> tuple[datetime, float]:
        return max(self.values.points.items(), key=lambda item: item[1])


def times_of(slow: Iterable[SlowPeriods]) -> list[datetime]:
    return sorted({time for periods in slow for time in periods.values.points})


@dataclass(frozen=True)
class VariantView:
    """A variant in its measurements; ``window`` limits slow and full periods, nothing else."""

    measurements: Measurements
    variant: VariantReading
    window: frozenset[datetime] | None = None
    parent: VariantView | None = None
    explained: frozenset[datetime] = frozenset()

    def within(self, times: Iterable[datetime]) -> VariantView:
        """The same with slow and full periods among these only."""
        return replace(self, window=frozenset(times), parent=self.whole)

    def without(self, times: Iterable[datetime]) -> VariantView:
        """The same where these periods count as neither slow nor full: they have their cause."""
        return replace(self, explained=self.explained | frozenset(times))

    def without_instances(self, names: Collection[str]) -> VariantView:
        """The same but for what CloudWatch has of these instances: they have their cause."""
        of_each = self.variant.instances
        rest = {name: series for name, series in of_each.items() if name not in names}
        return replace(self, variant=replace(self.variant, instances=rest))

    @property
    def whole(self) -> VariantView:
        return self.parent or self

    def cause(
        self,
        id: str,
        *evidence: Evidence | str,
        times: list[datetime] | None = None,
        **more: Any,  # as finding() takes them
    ) -> Finding:
        """A cause that measurements point to: words are of these periods, else of the slow ones."""
        shown = (
            self.over(times or self.bad_times, each) if isinstance(each, str) else each
            for each in evidence
        )
        return finding(id, *shown, variant=self.variant.name, **more)

    def over(self, times: list[datetime], text: str) -> Evidence:
        """What was measured from the first to the last of these periods."""
        return Evidence(text, times[0], times[-1] + self.period)

    def _seen(self, time: datetime) -> bool:
        return time not in self.explained and (self.window is None or time in self.window)

    def get(self, metric: str, statistic: str) -> Series:
        return self.variant.get(metric, statistic)

    @property
    def period(self) -> timedelta:
        return self.measurements.period

    @cached_property
    def gap(self) -> timedelta:
        """How far apart periods of one stretch are at most: callers may come every third minute."""
        counts = self.get("ModelLatency", "SampleCount") or self.requests
        asked = [time for time in counts.times if counts.points[time] > 0]
        gaps = sorted(later - time for time, later in pairwise(asked))
        apart = gaps[len(gaps) // 2] if gaps else self.period
        return const.PERIODS * max(self.period, apart)

    @cached_property
    def slow_model(self) -> tuple[SlowPeriods, ...]:
        """ModelLatency above its thresholds, by statistic; empty when all are kept."""
        return self.slow_of("ModelLatency")

    @cached_property
    def slow_times(self) -> list[datetime]:
        """Periods in which any statistic of ModelLatency was above its threshold."""
        return times_of(self.slow_model)

    @property
    def has_model_threshold(self) -> bool:
        """Whether anybody says how long the model may take."""
        return any(metric == "ModelLatency" for metric, _ in self.variant.thresholds)

    def slow_of(self, metric: str) -> tuple[SlowPeriods, ...]:
        """A metric above its thresholds, by statistic; empty when all are kept."""
        periods = []
        counts = self.get("ModelLatency", "SampleCount") or self.get("Invocations", "Sum")
        for (name, statistic), limit in self.variant.thresholds.items():
            if name != metric:
                continue
            series = self.get(name, statistic)
            late = [t for t, v in series.points.items() if v > limit.value]
            above = series.only(late).without(self.explained)
            seen = above.only(filter(self._seen, above.points))
            if seen and self._sustained(name, statistic, limit.value, above, counts):
                periods.append(
                    SlowPeriods(metric, statistic, limit.value, limit.source, seen, len(series))
                )
        return tuple(periods)

    def _sustained(
        self, metric: str, statistic: str, limit: float, above: Series, counts: Series
    ) -> bool:
        """Whether it is above its limit for as long as an alarm on it wants."""
        alarms = self.measurements.alarms_on(self.variant.name, metric, statistic)
        if not any(
            self._lasts(metric, statistic, value, window)
            for value, window in conditions(limit, alarms)
        ):
            return False
        typical = median(counts.points.get(time, 0) for time in above.points) or 0
        judged = len(self.get(metric, statistic))
        return typical >= const.ENOUGH_REQUESTS or len(above) >= const.SPARSE_SHARE * judged

    def _lasts(self, metric: str, statistic: str, limit: float, window: AlarmWindow) -> bool:
        series = self.get(metric, statistic)
        if window.seconds <= self.period.total_seconds():
            late = [series.points[t] > limit and t not in self.explained for t in series.times]
            return lasts(late, window)
        left = series.without(self.explained).times
        return lasts_over(
            lambda first, end: self._late(metric, statistic, limit, left[first:end]),
            len(left),
            window,
            self.period,
        )

    def _late(self, metric: str, statistic: str, limit: float, times: list[datetime]) -> bool:
        """Whether a statistic of several periods together is certainly above a limit."""
        values, share = self.get(metric, statistic).only(times), share_beyond(statistic)
        if statistic == "Maximum":
            return (values.max or 0) > limit
        if share is None:
            return (values.weighted_mean(self.requests) or 0) > limit
        most = float(share) * self.requests.only(times).sum
        return 0 < most <= self.late_requests(metric, statistic, limit, times) * 1.000001

    def seen_by_alarms(self, late: Sequence[bool]) -> bool:
        """Whether an alarm on a latency would be on for these periods."""
        on = [self.measurements.alarms_on(self.variant.name, name) for name in _LATENCIES]
        windows = windows_of([alarm for alarms in on for alarm in alarms])
        return any(lasts(late, window) for window in windows)

    @property
    def unseen_by_alarms(self) -> str:
        """In words, how long slow times on end of which no alarm goes on are not."""
        alarms = self.measurements.alarms_on(self.variant.name, "ModelLatency")
        windows = " or ".join(window_text(window) for window in windows_of(alarms))
        return f"never in {windows}, which alarms would detect"

    def late_requests(
        self, metric: str, statistic: str, limit: float, times: Iterable[datetime]
    ) -> float:
        """How many requests certainly took longer than a limit, by the percentiles of each period."""
        wanted, counts = list(times), self.requests.points
        shares = {"p50": 0.5, "p90": 0.1, "p99": 0.01}
        if (beyond := share_beyond(statistic)) is not None:
            shares[statistic] = float(beyond)
        above = [
            (share, {t for t, v in self.get(metric, name).only(wanted).points.items() if v > limit})
            for name, share in shares.items()
        ]
        return sum(
            counts.get(time, 0) * max((share for share, late in above if time in late), default=0.0)
            for time in wanted
        )

    def slow_evidence(self, slow: tuple[SlowPeriods, ...] | None = None) -> tuple[Evidence, ...]:
        """The slow statistics in words, with numbers and times."""
        found = []
        for periods in self.slow_model if slow is None else slow:
            time, worst = periods.worst
            times, minutes = periods.values.times, readable(self.period / timedelta(minutes=1))
            apart = runs(times, self.gap)
            among = f", in {len(apart)} stretches" if len(apart) > 1 else ""
            text = (
                f"{periods.metric} {periods.statistic} above {milliseconds(periods.threshold)} "
                f"({periods.source}) in {len(times)} of {periods.judged} periods of {minutes} min{among}, "
                f"at worst {milliseconds(worst)} at {self.measurements.clock(time)}"
            )
            found.append(self.over(times, text))
        return tuple(found)

    def utilization(self, times: list[datetime], weights: Series = ALIKE) -> dict[str, float]:
        """Mean percent of the whole instance by CPU and GPU at these times, where known.

        With ``weights`` a period counts by what it holds, such as errors.
        """
        used = {name: self.get(f"{name}Utilization", "Average") for name in ("CPU", "GPU")}
        means = {name: series.only(times).weighted_mean(weights) for name, series in used.items()}
        return {name: mean for name, mean in means.items() if mean is not None}

    @cached_property
    def typical(self) -> Series:
        """What a request usually takes: the median, else the mean."""
        return self.get("ModelLatency", "p50") or self.get("ModelLatency", "Average")

    def when_slow(self, statistic: str) -> float | None:
        """A statistic of ModelLatency in the slow periods, by their requests."""
        series = self.get("ModelLatency", statistic).only(self.slow_times)
        return series.weighted_mean(self.get("ModelLatency", "SampleCount"))

    def in_work(self, times: Iterable[datetime]) -> float | None:
        """Requests on an instance at once, in the mean: their rate times their time (Little)."""
        wanted = list(times)
        load = self.load.only(wanted).median
        latency = self.get("ModelLatency", "Average").only(wanted).median
        return None if load is None or latency is None else load / 60 * latency / 1000

    def busy_cores(self, times: Iterable[datetime]) -> float | None:
        cpu, facts = self.get("CPUUtilization", "Average").only(times).mean, self.variant.facts
        return None if cpu is None or not facts or not facts.vcpus else cpu / 100 * facts.vcpus

    def busy_gpus(self, times: Iterable[datetime]) -> float | None:
        gpu, facts = self.get("GPUUtilization", "Average").only(times).mean, self.variant.facts
        return None if gpu is None or not facts else gpu / 100 * (facts.accelerator_count or 1)

    def busy_processors(self, times: Iterable[datetime]) -> float | None:
        """CPUs and GPUs that work; ``None`` where the accelerator has no metric."""
        wanted, facts = list(times), self.variant.facts
        cores, gpus = self.busy_cores(wanted), self.busy_gpus(wanted)
        if cores is None or (facts and facts.accelerator and gpus is None):
            return None
        return cores + (gpus or 0)

    @cached_property
    def instances(self) -> Series:
        return serving(self.variant.series)

    @cached_property
    def rises(self) -> tuple[Rise, ...]:
        scaling, current = self.variant.scaling, self.variant.current_instances
        if scaling is None or scaling.maximum is not None or not current:
            return tuple(rises(self.instances))
        # Calls that no instance gets look like calls to more instances than there are.
        return tuple(rise for rise in rises(self.instances) if rise.more <= current)

    @cached_property
    def arrivals(self) -> dict[str, datetime]:
        """When instances that were not there at the start of the window were seen first."""
        seen = {
            name: min(min(metric.points) for metric in metrics.values() if metric)
            for name, metrics in self.variant.instances.items()
            if any(metrics.values())
        }
        begun = min(seen.values(), default=self.measurements.start) + 2 * self.period
        return {name: time for name, time in seen.items() if time > begun}

    @cached_property
    def load(self) -> Series:
        """Invocations per instance and minute."""
        minutes = self.period / timedelta(minutes=1)
        series = self.get("InvocationsPerInstance", "Sum")
        return Series({time: value / minutes for time, value in series.points.items()})

    @cached_property
    def tps(self) -> Series:
        """Requests per second of the whole variant."""
        seconds = self.period.total_seconds()
        series = self.get("Invocations", "Sum")
        return Series({time: value / seconds for time, value in series.points.items()})

    @cached_property
    def requests(self) -> Series:
        return self.get("Invocations", "Sum") or self.get("ModelLatency", "SampleCount")

    def failing(self, failed: Series) -> list[datetime]:
        """When a share of the requests failed that counts, and with them most of those that failed."""
        came, failed = self.requests, bulk(failed)
        least = {t: const.ERROR_RATE * came.points[t] for t in came.times}
        return [t for t, few in least.items() if failed.points.get(t, 0) >= few > 0]

    @cached_property
    def failed(self) -> Series:
        """Requests that failed on SageMaker's side or the container's."""
        return failed_requests({name: self.get(name, "Sum") for name in FAILURES})

    @cached_property
    def refused(self) -> Series:
        """Share of the calls that did not succeed, for whatever reason."""
        client, server, model = (
            self.get(f"Invocation{kind}Errors", "Sum").points for kind in ("4XX", "5XX", "Model")
        )
        lost = {
            time: max(client.get(time, 0) + server.get(time, 0), model.get(time, 0)) / count
            for time, count in self.requests.points.items()
            if count
        }
        return Series(lost)

    @cached_property
    def refusing(self) -> frozenset[datetime]:
        """Periods in which ModelLatency may be that of refusals, so that nobody calls them fast."""
        return frozenset(t for t, share in self.refused.points.items() if share >= const.REFUSING)

    def refused_share(self, times: Iterable[datetime]) -> float:
        """The share of all calls at these times that did not succeed."""
        return self.refused.only(times).weighted_mean(self.requests) or 0.0

    @cached_property
    def failed_share(self) -> Series:
        """Share of the requests that failed on SageMaker's side or the container's."""
        errors = self.failed.points
        asked = {t: count for t, count in self.get("Invocations", "Sum").points.items() if count}
        return Series({time: errors.get(time, 0) for time in asked}).per(Series(asked))

    @cached_property
    def in_flight(self) -> Series:
        """Most requests in flight, queued too; target tracking reads the metric per instance."""
        return self.get("ConcurrentRequestsPerModel", "Maximum")

    def in_flight_of_one(self, times: Iterable[datetime]) -> float | None:
        """Most requests in flight on an instance, by the lower reading of the metric.

        Whether it counts a model's copies one by one is not said.
        """
        wanted = list(times)
        most = self.in_flight.only(wanted).median
        count = self.instances.only(wanted).median or self.variant.current_instances or 1
        return None if most is None else most / max(count, 1)

    @cached_property
    def tracked(self) -> TrackedMetric | None:
        """What scaling tracks, with its target; ``None`` without, or where it cannot be meant."""
        return None if self.mistyped else self.stated

    @cached_property
    def mistyped(self) -> list[datetime]:
        """When instances that are not full contradicted the target by an order of magnitude.

        They did ten times as much; or at the target a tenth of one request would be in work, at a
        tenth of the utilization that AWS advises. Only while scaling keeps instances for it, which
        shows in the time after which it would take them away.
        """
        stated, scaling, facts = self.stated, self.variant.scaling, self.variant.facts
        if stated is None or stated.concurrency or scaling is None or scaling.maximum is None:
            return []
        least, counts = min((scaling.minimum or 0) + 1, scaling.maximum), self.instances.points
        loads = stated.series.points.items()
        times = [t for t, v in loads if 2 * v >= stated.target and counts.get(t, 0) >= least - 0.5]
        times = [time for time in times if time not in self.refusing]
        load, used = stated.series.only(times).median, self.utilization(times)
        if len(times) < const.PERIODS or not load or self.whole.busy_times:
            return []
        share = stated.target / load
        known = facts and facts.accelerator in (None, "nvidia") and used  # Neuron has no metric
        idle = known and max(used.values()) * share <= const.ADVISED_PERCENT / 10
        idle = idle and (self.in_work(times) or 1) * share <= 0.1
        idle = idle and len(times) * self.period >= const.SCALES_IN
        return sorted(times) if share <= 0.1 or idle else []

    @cached_property
    def stated(self) -> TrackedMetric | None:
        """What scaling tracks, with the target that somebody stated; ``None`` without either."""
        scaling = self.variant.scaling
        if scaling is None or not scaling.target:
            return None
        if "InvocationsPerInstance" in scaling.metric:
            return TrackedMetric(self.load, scaling.target, INVOCATIONS)
        if "ConcurrentRequests" in scaling.metric:
            return TrackedMetric(self.in_flight, scaling.target, IN_FLIGHT)
        return None

    @property
    def load_target(self) -> float | None:
        """Invocations per instance and minute that scaling aims at; ``None`` without one."""
        return self.tracked.target if self.tracked and not self.tracked.concurrency else None

    @property
    def concurrency_target(self) -> float | None:
        """Requests in flight on an instance that scaling aims at; ``None`` without one."""
        return self.tracked.target if self.tracked and self.tracked.concurrency else None

    @property
    def load_limit(self) -> float | None:
        """Invocations per instance and minute that one instance held in a load test."""
        plan = self.measurements.plan
        return plan.tps_per_instance * 60 if plan and plan.tps_per_instance else None

    def overloaded(self, times: list[datetime]) -> str:
        """Why the load alone is too much, in words; empty when it is not, or nobody can say."""
        weights = self.get("Invocations", "Sum")
        load = self.load.only(times).weighted_mean(weights)
        if load is not None and self.load_limit and load >= self.load_limit:
            return (
                f"{load:,.0f} invocations per instance and minute, {readable(load / 60, 3)} a second, "
                f"where a load test found {readable(self.load_limit / 60, 3)} a second"
            )
        if self.tracked is None:
            return ""
        series = self.tracked.series.only(times)
        value = series.median if self.tracked.concurrency else series.weighted_mean(weights)
        if value is None or not self.tracked.too_much(value):
            return ""
        return self.tracked.words(value)

    @cached_property
    def bad_times(self) -> list[datetime]:
        """Slow periods; where none is slow, those of full instances."""
        return self.slow_times or self.busy_times

    @cached_property
    def full(self) -> Evidence | None:
        """What shows that the instances were full in the bad periods, or in those between the outer ones.

        A load that begins or ends within a minute uses little of it.
        """
        outer = {time for span in runs(self.bad_times, self.period) for time in span}
        inner = [time for time in self.bad_times if time not in outer]
        by = self.requests
        return self.saturation(self.bad_times, by) or self.saturation(inner, by)

    def saturation(self, times: list[datetime], weights: Series = ALIKE) -> Evidence | None:
        """What shows that the instances were full at these times; ``None`` when nothing does."""
        if not times:
            return None
        used = self.utilization(times, weights)
        overload = self.overloaded(times)
        full = {name: value for name, value in used.items() if value >= const.SATURATED_PERCENT}
        # Without a known utilization (Neuron has no metric) the load decides; idle CPUs under too
        # much load point at the container.
        if not full and not (overload and (not used or max(used.values()) >= const.IDLE_PERCENT)):
            return None
        parts = [f"{name} at {value:.0f} % of the whole instance" for name, value in full.items()]
        parts += [overload] if overload else []
        return self.over(times, "; ".join(parts))

    def used_up(self, times: list[datetime], least: float = const.SATURATED_PERCENT) -> bool:
        """Whether CPU or GPU were full at these times, whatever the load was."""
        return max(self.utilization(times).values(), default=0) >= least

    def utilization_words(self, times: list[datetime], weights: Series = ALIKE) -> str:
        """CPU and GPU in words; says so where there is no data."""
        means = self.utilization(times, weights)
        used = ", ".join(f"{name} at {v:.0f} %" for name, v in means.items())
        return f"{used} of the whole instance" if used else "no utilization published"

    @property
    def routing_words(self) -> str:
        default = "" if self.variant.routing_stated else ", AWS's default"
        return f"routing strategy {self.variant.routing}{default}"

    @cached_property
    def busy_times(self) -> list[datetime]:
        """Periods in which the instances were saturated by utilization, where enough are."""
        used = [self.get(f"{name}Utilization", "Average").points for name in ("CPU", "GPU")]
        full = {t for each in used for t, v in each.items() if v >= const.SATURATED_PERCENT}
        times = sorted(full - self.explained)
        alarms = [
            alarm
            for name in ("CPU", "GPU")
            for alarm in self.measurements.alarms_on(self.variant.name, f"{name}Utilization")
        ]
        judged = sorted({t for each in used for t in each})
        late = [time in full - self.explained for time in judged]
        windows = [in_periods(window, self.period) for window in windows_of(alarms)]
        enough = any(lasts(late, window) for window in windows)
        return list(filter(self._seen, times)) if enough else []

    def needed_instances(self, times: list[datetime]) -> int | None:
        """Instances that would have kept what scaling tracks at its target at these times."""
        if self.load_target:
            total = self.get("Invocations", "Sum").only(times).max
            minutes = self.period / timedelta(minutes=1)
            if total:
                return math.ceil(round(total / minutes / self.load_target, 6))
        by_utilization = self.instances_by_utilization(times)
        count, tracked = self.instances.only(times).max, self.tracked
        peak = tracked.peak(times) if tracked and tracked.concurrency else None
        # Queued requests are in flight too: more instances end the queue, and need fewer.
        if tracked and peak and count and (by_utilization or 0) <= round(count):
            return math.ceil(round(count * peak / tracked.target, 3))
        return by_utilization

    def at_least(self, count: int, why: str) -> Remedy:
        """So many instances at all times; all three counts, because a file may state lower ones.

        A fleet of a fixed size gets room for scaling, too: a maximum of twice as many.
        """
        scaling = self.variant.scaling
        allowed = scaling.maximum if scaling else None
        deployed = self.measurements.deployed.get(self.variant.name, {}).get("instances.max")
        most = max(count, allowed or 2 * count, int(deployed or 0))
        return Remedy("instances", why, f"{{min: {count}, initial: {count}, max: {most}}}")

    def instances_by_utilization(self, times: list[datetime]) -> int | None:
        """Instances that would have been as busy at these times as AWS advises."""
        used, count = self.utilization(times), self.instances.only(times).max
        if used and count:
            return math.ceil(round(count, 3) * max(used.values()) / const.ADVISED_PERCENT)
        return None
