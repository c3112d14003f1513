"""An update under way or taken back: whether requests are slow or fail by it, and how it ends.

Start at :func:`of_update`. While an update runs, DescribeEndpoint names the configuration before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from ...account.metrics import Series
from ...errors.shell_words import shell_word
from ...report.numbers import milliseconds, percent
from . import thresholds as const
from .failures import errors_by_kind, rate_limit
from .findings import Evidence, Finding, Remedy, container_log, finding
from .measurements import EndedUpdate, Measurements, ObservedUpdate
from .starts import Fleets, aligned, asked, come_since, fleets_of, scale_outs
from .view import VariantView, bulk, runs

OF_UPDATES = ("LLD706", "LLD707", "LLD708")


@dataclass(frozen=True, slots=True)
class JudgedUpdate:
    """What an update did to a variant, and the periods that are slow or fail by it."""

    finding: Finding
    slow: frozenset[datetime]
    failing: frozenset[datetime]
    instances: frozenset[str] = frozenset()  # that are slow by it


@dataclass(frozen=True, slots=True)
class Symptom:
    """Requests that are slow or fail with an update: what shows it, and when."""

    evidence: tuple[Evidence, ...]
    times: frozenset[datetime]
    errors: bool
    sure: bool  # whether it is the new fleet's, and above a limit that somebody states


def of_update(view: VariantView) -> Iterator[JudgedUpdate]:
    """What the update under way does, and what those that were taken back did."""
    m = view.measurements
    fleets = fleets_of(view)
    if m.update and fleets:
        stretch = Stretch(view, fleets.since, m.end, ended=m.update.update.rolling_back)
        symptoms = [*_slow(stretch, fleets), *_failing(stretch, fleets)]
        if symptoms:
            shown = (*_shares(fleets), *(each for s in symptoms for each in s.evidence))
            judged = _judged(_under_way(view, m.update, fleets, symptoms, shown), symptoms)
            came = come_since(view, m.update.begun or fleets.since)
            yield replace(judged, instances=frozenset(came))
    for ended in m.taken_back:
        start, end = aligned(view, ended.start), ended.end
        stretch = Stretch(view, start, end + 2 * view.period, ended=True)
        gone = Fleets(ended.configuration, ended.serving, start, None, None)
        symptoms = [*_slow(stretch, gone), *_failing(stretch, gone)]
        if symptoms:
            yield _judged(_taken_back(view, ended, symptoms), symptoms)


def _judged(cause: Finding, symptoms: list[Symptom]) -> JudgedUpdate:
    times = {kind: [s.times for s in symptoms if s.errors is kind] for kind in (False, True)}
    return JudgedUpdate(cause, frozenset().union(*times[False]), frozenset().union(*times[True]))


def rolling_back(m: Measurements) -> Iterator[Finding]:
    """The roll-back under way, of the whole endpoint."""
    if m.update and m.update.update.rolling_back:
        shown = _roll_back_evidence(m, m.update)
        yield finding("LLD707", *shown, first=[_log(m)], serving=m.update.serving)


def _log(m: Measurements) -> Remedy:
    return container_log(m.endpoint, "what the fleet wrote that is taken away")


def noted(view: VariantView, other: Finding) -> Finding:
    """A finding of another cause, with what is known of the update under way beside it."""
    m = view.measurements
    fleets, span = fleets_of(view), other.span
    of_new_fleet = any(m.update and m.update.name in shown.text for shown in other.evidence)
    if m.update is None or other.risk or other.id in OF_UPDATES or of_new_fleet or not span:
        return other
    name = f"{m.update.name[0].upper()}{m.update.name[1:]}"
    under_way = f"{name} is under way{_since(m, m.update)}"
    if fleets is None:
        why = "no request is known to have reached its fleet yet"
    elif span[0] < fleets.since - view.period:
        why = "this began before it"
    elif fleets.since <= m.start:
        why = "it began before this window, so whether it is the cause shows with a longer --since"
    elif fleets.apart:
        why = "its fleet is no worse than the one before"
    else:
        why = "whether it is part of the cause is not known"
    return replace(other, besides=f"{other.besides} {under_way}: {why}.".strip())


def _since(m: Measurements, update: ObservedUpdate) -> str:
    return f" since {m.clock(update.begun)}" if update.begun else ""


# --- symptoms ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time in which an update may have been felt, and the variant's time before."""

    view: VariantView
    since: datetime
    until: datetime
    ended: bool  # whether its fleet need not be asked any more

    def inside(self, series: Series) -> Series:
        return series.between(self.since, self.until)

    def before(self, series: Series, first: datetime | None = None) -> Series:
        """The periods just before, and until ``first``, by which is judged what was so already."""
        start = self.since - const.BEFORE_UPDATE * self.view.period
        return series.between(start, first or self.since)

    def late_before(
        self, series: Series, limit: float, first: datetime | None = None
    ) -> float | None:
        """Share of late periods before; or just before, where more of those were late."""
        before = self.before(series, first)
        shares = (_late_share(part, limit) for part in (before, _last(before)))
        return max((share for share in shares if share is not None), default=None)

    def failed_before(
        self, failed: Series, came: Series, first: datetime | None = None
    ) -> float | None:
        """The same of the requests that failed."""
        parts = [self.before(series, first) for series in (failed, came)]
        last = _last(parts[1])
        shares = (_share(*parts), _share(parts[0].only(last.times), last))
        return max((share for share in shares if share is not None), default=None)

    def after(self, series: Series) -> Series:
        return series.between(self.until, self.view.measurements.end)

    def late_since(self, series: Series, limit: float) -> datetime | None:
        """From when on most periods are above the limit; and the last ones, of a fleet still asked."""
        inside = self.inside(series)
        late = [time for time in inside.times if inside.points[time] > limit]
        last = set(inside.times[-const.PERIODS :])
        lasts = self.ended or len(last.intersection(late)) >= const.SLOW_OF_PERIODS
        if not late or not lasts:
            return None
        first = runs(late, const.PERIODS * self.view.period)[-1][0]
        now = [time for time in late if time >= first]
        most = len(now) >= const.KEPT * len(series.between(first, self.until))
        return first if most and len(now) >= const.SLOW_OF_PERIODS else None

    def began(self, was: float | None, now: float) -> bool:
        """Whether a share of late periods or failed requests is new with the update."""
        return was is not None and was <= const.BY_UPDATE * now

    def same_load(self, first: datetime) -> bool:
        """Whether the variant served as many requests in time before."""
        tps = self.view.tps
        now, was = self.inside(tps).median, self.before(tps, first).max
        return now is not None and was is not None and now <= const.SAME_LOAD * was

    def explains(self, first: datetime) -> bool:
        """Whether what began then may be the update's: soon enough, at the same load, no scaling."""
        soon = first - self.since <= const.REACHED
        return soon and self.same_load(first) and not self.scaled(first)

    def scaled(self, first: datetime) -> bool:
        """Whether instances that scaling added since may explain what began then."""
        period = self.view.period
        return any(
            self.since < each.start and each.start - period <= first <= each.start + const.WARMING
            for each in scale_outs(self.view)
        )


def _last(series: Series) -> Series:
    return series.only(series.times[-const.PERIODS :])


def _late_share(series: Series, limit: float) -> float | None:
    """Share of the periods above the limit; ``None`` of fewer than judge anything."""
    if len(series) < const.PERIODS:
        return None
    return sum(value > limit for value in series.points.values()) / len(series)


def _slow(stretch: Stretch, fleets: Fleets) -> Iterator[Symptom]:
    """Latencies above their limits; without a limit, those of a fleet many times slower."""
    limits = stretch.view.variant.thresholds.items()
    latencies = [(key, limit.value) for key, limit in limits if key[1] != "Rate"]
    for (metric, statistic), limit in latencies:
        new = fleets.new.get(metric, statistic) if fleets.new else Series()
        if new:
            yield from _slow_fleet(stretch, fleets, metric, statistic, limit)
        else:
            yield from _slow_variant(stretch, metric, statistic, limit)
    if fleets.new and fleets.old and not stretch.view.has_model_threshold:
        new, old = (stretch.inside(each.typical) for each in (fleets.new, fleets.old))
        typical = new, old.without(fleets.old.refusing)
        medians = [series.median or 0 for series in typical]
        if len(typical[0]) >= const.PERIODS and medians[0] >= const.MANY_TIMES * medians[1] > 0:
            words = _compared("ModelLatency, typical,", fleets, *medians)
            shown = Evidence(words, typical[0].times[0], stretch.until)
            yield Symptom((shown,), frozenset(), errors=False, sure=False)


def _slow_fleet(
    stretch: Stretch, fleets: Fleets, metric: str, statistic: str, limit: float
) -> Iterator[Symptom]:
    """A new fleet above a limit that the one before keeps; that one before the update, if need be."""
    new = fleets.new.get(metric, statistic) if fleets.new else Series()
    first = stretch.late_since(new, limit)
    if first is None:
        return
    own = _answered(fleets.old, metric, statistic, limit) if fleets.old else Series()
    own, new = (series.between(first, stretch.until) for series in (own, new))
    whole = stretch.view.get(metric, statistic)
    was = _late_share(own, limit)
    if was is None:  # the old fleet is asked no more, or has no metrics of its own
        was = stretch.late_before(whole, limit)
    if was is not None and was > const.HALF * (_late_share(new, limit) or 1.0):
        return
    medians = new.median, (own or stretch.before(whole)).median
    words = _compared(f"{metric} {statistic}", fleets, *medians)
    shown = Evidence(f"{words}; the limit is {milliseconds(limit)}", first, stretch.until)
    times = frozenset(_above(stretch, whole, limit))
    yield Symptom((shown,), times, errors=False, sure=was is not None)


def _answered(fleet: VariantView, metric: str, statistic: str, limit: float) -> Series:
    """Without periods that may be within the limit for what the fleet refuses."""
    series = fleet.get(metric, statistic)
    return series.without([t for t in fleet.refusing if series.points.get(t, 0) <= limit])


def _compared(what: str, fleets: Fleets, new: float | None, old: float | None) -> str:
    words = f"{what} {milliseconds(new or 0)} in the fleet of {fleets.name}"
    if old is None:
        return words
    where = f"in that of {fleets.serving}" if fleets.old else "before"
    return f"{words}, {milliseconds(old)} {where}"


def _above(stretch: Stretch, series: Series, limit: float) -> list[datetime]:
    inside = stretch.inside(series)
    return [time for time in inside.times if inside.points[time] > limit]


def _slow_variant(stretch: Stretch, metric: str, statistic: str, limit: float) -> Iterator[Symptom]:
    """Slow since the update takes requests and not before, at the same load."""
    view, series = stretch.view, stretch.view.get(metric, statistic)
    first = stretch.late_since(series, limit)
    if first is None or not stretch.explains(first):
        return
    now = _late_share(series.between(first, stretch.until), limit) or 1.0
    if not stretch.began(stretch.late_before(series, limit, first), now):
        return
    if (_late_share(stretch.after(series), limit) or 0) > const.BY_UPDATE:
        return
    times = _above(stretch, series, limit)
    slow = view.within(times).slow_of(metric)
    if slow:
        shown = view.slow_evidence(slow)
        yield Symptom(shown, frozenset(times), errors=False, sure=False)


def _failing(stretch: Stretch, fleets: Fleets) -> Iterator[Symptom]:
    """Kinds of errors that came with the update."""
    for kind, (failed, option) in errors_by_kind(stretch.view).items():
        limit, inside = rate_limit(stretch.view, option), stretch.inside(failed)
        if inside.sum < const.LEAST_ERRORS or not (stretch.ended or _lasts(stretch, failed, limit)):
            continue
        rule = _failing_fleet if fleets.new and _failed(fleets.new, kind) else _failing_variant
        for shown, sure in rule(stretch, fleets, kind, limit):
            times = frozenset(time for time in inside.times if inside.points[time] > 0)
            evidence = Evidence(shown, min(times), stretch.until)
            yield Symptom((evidence,), times, errors=True, sure=sure)


def _lasts(stretch: Stretch, failed: Series, limit: float) -> bool:
    """Whether requests of the last periods fail."""
    last = stretch.inside(stretch.view.requests).times[-const.PERIODS :]
    return (_share(failed.only(last), stretch.view.requests.only(last)) or 0) >= limit


def _failing_fleet(
    stretch: Stretch, fleets: Fleets, kind: str, limit: float
) -> Iterator[tuple[str, bool]]:
    """Errors of a new fleet that the one before has not; that one before the update, if need be."""
    apart = cast(VariantView, fleets.new)
    new = _share(_failed(apart, kind), apart.requests)
    old = _own_share(stretch, fleets, kind)
    if new is None or new < limit or (old is not None and old > const.BY_UPDATE * new):
        return
    words = f"{percent(new)} of the requests to the fleet of {fleets.name} end in {kind}"
    if old is not None:
        where = f"to that of {fleets.serving}" if fleets.old else "before"
        words += f", {percent(old)} {where}"
    yield words, old is not None


def _own_share(stretch: Stretch, fleets: Fleets, kind: str) -> float | None:
    """The share of errors of the fleet before; where its metrics are not apart, before the update."""
    if fleets.old:
        inside = [stretch.inside(each) for each in (_failed(fleets.old, kind), fleets.old.requests)]
        if (share := _share(*inside)) is not None:
            return share
    view = stretch.view
    return stretch.failed_before(_failed(view, kind), view.requests)


def _failing_variant(
    stretch: Stretch, fleets: Fleets, kind: str, limit: float
) -> Iterator[tuple[str, bool]]:
    """Errors since the update and not before, at the same load; and not of the old fleet alone."""
    view, failed = stretch.view, _failed(stretch.view, kind)
    inside = stretch.inside(failed)
    first = bulk(inside).times[0]
    now = _share(inside, stretch.inside(view.requests))
    was = stretch.failed_before(failed, view.requests, first)
    of_old = _failed(fleets.old, kind) if fleets.old else Series()
    if now is None or now < limit or not stretch.began(was, now) or not stretch.explains(first):
        return
    if stretch.inside(of_old).sum >= const.MOST * inside.sum:
        return
    since = _share(stretch.after(failed), stretch.after(view.requests)) or 0.0
    if since > const.BY_UPDATE * now:
        return
    yield f"{percent(now)} of the requests end in {kind}, {percent(was or 0)} before", False


def _failed(view: VariantView, kind: str) -> Series:
    return errors_by_kind(view)[kind][0]


def _share(failed: Series, came: Series) -> float | None:
    """Share of the requests that failed; ``None`` where none came."""
    return failed.sum / came.sum if came.sum else None


# --- findings ------------------------------------------------------------------------------------


def _shares(fleets: Fleets) -> Iterator[Evidence]:
    """How many of the requests the new fleet answers."""
    if fleets.new is None:
        return
    m = fleets.new.measurements
    times = asked(fleets.new)
    came = fleets.new.get("Invocations", "Sum").sum
    words = f"the fleet of {fleets.name} answers since {m.clock(times[0])}: {came:,.0f} requests"
    yield Evidence(words, times[0], times[-1] + m.period)


def _under_way(
    view: VariantView,
    update: ObservedUpdate,
    fleets: Fleets,
    symptoms: list[Symptom],
    shown: tuple[Evidence, ...],
) -> Finding:
    """LLD706, or LLD707 of an update that is rolled back already."""
    m = view.measurements
    if update.update.rolling_back:
        evidence = (*_roll_back_evidence(m, update), *shown)
        return view.cause("LLD707", *evidence, first=[_log(m)], serving=update.serving)
    cold = m.end - fleets.since <= const.WARMING and not any(s.errors for s in symptoms)
    sure = all(symptom.sure for symptom in symptoms) and not cold
    again = m.clock(fleets.since + const.WARMING)
    wait = f"New instances may be slow until they are warm: look again at {again}. " if cold else ""
    return view.cause(
        "LLD706",
        _named(m, update),
        *shown,
        confidence="high" if sure else "medium",
        first=_ends(update),
        advice=wait + _advice(m, update),
    )


def _named(m: Measurements, update: ObservedUpdate) -> Evidence:
    """The update with its begin, its stage and what it changes."""
    stage = f" ({update.update.stage})" if update.update.stage else ""
    changes = f": {'; '.join(update.changes)}" if update.changes else ""
    words = f"{update.name} is under way{_since(m, update)}{stage}{changes}"
    return Evidence(words, update.begun, m.end if update.begun else None)


def _ends(update: ObservedUpdate) -> Iterator[Remedy]:
    """What may end the update before its time, or the next one."""
    if update.update.by_aws:
        return
    for alarm in update.alarms[:1]:
        why = (
            "SageMaker rolls back when this alarm is in ALARM; whether a state that is set by hand "
            "lasts long enough was not seen on AWS"
        )
        command = (
            f"aws cloudwatch set-alarm-state --alarm-name {shell_word(alarm)} --state-value ALARM "
            '--state-reason "roll back"'
        )
        yield Remedy(command, why, command=True)
    if update.stack:
        why = (
            "the stack goes back to its former template; when SageMaker takes that during an update "
            "was not seen on AWS"
        )
        command = f"aws cloudformation cancel-update-stack --stack-name {shell_word(update.stack)}"
        yield Remedy(command, why, command=True)
    if not update.alarms:
        why = "SageMaker rolls back by itself the next time"
        yield Remedy("deployment.rollback_on_alarms", why, "true")


def _advice(m: Measurements, update: ObservedUpdate) -> str:
    """How the update is rolled back; what AWS documents, and what it does not."""
    if update.update.by_aws:
        return (
            "SageMaker replaces instances by itself and changes no setting of yours. AWS documents "
            "no call that ends it: wait until it is over, and ask AWS Support if that takes long."
        )
    unwatched = "" if update.alarms else " No alarm rolls it back: it goes on to its end."
    return (
        "AWS documents no call that stops an update, and UpdateEndpoint is refused until it ends."
        f"{unwatched} When it has ended, run `aws sagemaker update-endpoint --endpoint-name "
        f"{shell_word(m.endpoint)} --endpoint-config-name {shell_word(update.serving)}`, or deploy the former version. Until "
        f"then keep {update.serving} and its model."
    )


def _roll_back_evidence(m: Measurements, update: ObservedUpdate) -> Iterator[Evidence]:
    """Which fleet goes, since when, and why, as far as AWS says."""
    words = f"SageMaker is {update.update.verb}{_since(m, update)}"
    reason = f': "{m.failure_reason}"' if m.failure_reason else ""
    yield Evidence(f"{words}{reason}; {update.serving} serves again", update.begun, m.end)
    if update.changes:
        yield Evidence(f"the update changed: {'; '.join(update.changes)}")
    for alarm in m.alarms or ():
        if alarm.name in update.alarms and alarm.state == "ALARM":
            since = f" since {m.clock(alarm.since)}" if alarm.since else ""
            yield Evidence(f"its alarm {alarm.name} is in ALARM{since}", alarm.since, alarm.since)


def _taken_back(view: VariantView, ended: EndedUpdate, symptoms: list[Symptom]) -> Finding:
    m = view.measurements
    clock = m.clock
    words = (
        f"{ended.configuration} served from {clock(ended.start)} to {clock(ended.end)}, then "
        f"{ended.serving} again: it was rolled back, and this ended at {clock(ended.end)}"
    )
    shown = [each for symptom in symptoms for each in symptom.evidence]
    span = Evidence(words, ended.start, ended.end)
    return view.cause("LLD708", span, *shown, first=[_log(m)], configuration=ended.configuration)
