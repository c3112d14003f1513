"""When requests are meant to be sent: the intended start times of an open loop."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...errors import rule
from ...errors.given_files import is_finite
from ...facts.limit_kinds import USE_AN_ALLOWED_VALUE, Range
from ...plan.recorded_traffic import Recording, read_recording
from ...plan.traffic_shapes import Shape, shape

STEP_RATE = Range(
    rule(
        "LLT128", "a rate of a load test is out of range", fix="Set at least one rate above zero."
    ),
    "a rate",
    0,
    10_000_000,
    "requests per second",
    whole=False,
)
STEP_SECONDS = Range(
    rule("LLT130", "a length of a load test is out of range", fix=USE_AN_ALLOWED_VALUE),
    "a length",
    0,
    7 * 24 * 3600,
    "seconds",
    whole=False,
)
ARRIVALS_FORM = rule(
    "LLT132",
    "the load test does not know these arrivals",
    fix="Use arrivals of low_latency_endpoint.load_test, such as PoissonArrivals, or "
    "their to_dict.",
)
RECORDED_ARRIVALS = rule(
    "LLT133",
    "recorded arrivals are not valid",
    fix="Give times in seconds from 0 on that never decrease and, with rates, one rate for each.",
)

#: Of time: length in seconds, rate at its start, rate at its end.
RateSegment = tuple[float, float, float]


class Arrivals:
    """Intended start times; the classes below are the kinds there are."""

    kind: ClassVar[str]

    def segments(self, seconds: float) -> Iterator[RateSegment]:
        """The rate over time: segments in which it is constant or changes linearly."""
        raise NotImplementedError

    @property
    def random(self) -> bool:
        """Whether requests come at random rather than evenly spaced."""
        return bool(getattr(self, "poisson", False))

    def offsets(
        self, seconds: float, *, seed: int = 1, part: int = 0, parts: int = 1
    ) -> Iterator[float]:
        """Intended start times in seconds from the start, in order, below ``seconds``.

        Parameters
        ----------
        seconds : float
            Length of the step.
        seed : int
            Same seed, same times.
        part, parts : int
            Number of this process, from 0, and number of processes.

        Examples
        --------
        >>> list(ConstantArrivals(2).offsets(2.5))
        [0.0, 0.5, 1.0, 1.5, 2.0]
        >>> list(ConstantArrivals(2).offsets(2.5, part=1, parts=2))
        [0.5, 1.5]
        """
        return itertools.islice(self._times(seconds, seed), part, None, parts)

    def _times(self, seconds: float, seed: int) -> Iterator[float]:
        counts = _random_counts(seed) if self.random else iter(range(2**62))
        return _times_of_counts(counts, self.segments(seconds))

    def rate_at(self, second: float, seconds: float = math.inf) -> float:
        """Requests per second at a time; ``seconds`` is the step's length, which ramps need."""
        begin = 0.0
        rate = 0.0
        for length, start, end in self.segments(seconds):
            if second < begin + length:
                return start + (end - start) * (second - begin) / length if end != start else start
            begin += length
            rate = end
        return rate

    def expected_count(self, seconds: float) -> float:
        """How many requests there are in the mean."""
        return sum(length * (start + end) / 2 for length, start, end in self.segments(seconds))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; :func:`arrivals_of_dict` reads it."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class _SteadyArrivals(Arrivals):
    rate: float

    def __post_init__(self) -> None:
        _check_rates([self.rate], "rate")

    def segments(self, seconds: float) -> Iterator[RateSegment]:
        yield seconds, self.rate, self.rate


@dataclass(frozen=True)
class ConstantArrivals(_SteadyArrivals):
    """Requests at equal gaps.

    Parameters
    ----------
    rate : float
        Requests per second.
    """

    kind: ClassVar[str] = "constant"


@dataclass(frozen=True)
class PoissonArrivals(_SteadyArrivals):
    """Requests of many independent callers: exponential gaps.

    Parameters
    ----------
    rate : float
        Requests per second in the mean.
    """

    kind: ClassVar[str] = "poisson"
    poisson: ClassVar[bool] = True


@dataclass(frozen=True)
class RampArrivals(Arrivals):
    """A rate that rises or falls linearly over the whole step.

    Parameters
    ----------
    start, end : float
        Requests per second at the step's start and at its end.
    poisson : bool
        Whether requests come at random at that rate, evenly spaced otherwise. By default random.
    """

    start: float
    end: float
    poisson: bool = True
    kind: ClassVar[str] = "ramp"

    def __post_init__(self) -> None:
        _check_rates([self.start, self.end], "start, end")

    def segments(self, seconds: float) -> Iterator[RateSegment]:
        if not math.isfinite(seconds):
            raise STEP_SECONDS.rule.error(got=seconds, allowed="the step's length: a ramp needs it")
        yield seconds, self.start, self.end


@dataclass(frozen=True)
class SteppedArrivals(Arrivals):
    """Constant rates one after the other; the last one stays.

    Parameters
    ----------
    levels : tuple of (float, float)
        Requests per second and for how many seconds. A rate of 0 is a pause.
    poisson : bool
        As for :class:`RampArrivals`.

    Examples
    --------
    >>> list(SteppedArrivals(((1, 2), (4, 1)), poisson=False).offsets(3))
    [0.0, 1.0, 2.0, 2.25, 2.5, 2.75]
    """

    levels: tuple[tuple[float, float], ...]
    poisson: bool = True
    kind: ClassVar[str] = "steps"

    def __post_init__(self) -> None:
        pairs = _pairs(self.levels, "levels")
        object.__setattr__(self, "levels", pairs)
        _check_rates([rate for rate, _ in pairs], "levels")
        for _, length in pairs:
            STEP_SECONDS.check(length, "levels")

    @property
    def seconds(self) -> float:
        """How long all levels take."""
        return sum(length for _, length in self.levels)

    def segments(self, seconds: float) -> Iterator[RateSegment]:
        left = seconds
        for rate, length in self.levels:
            if left <= 0:
                return
            yield min(length, left), rate, rate
            left -= length
        if left > 0:
            yield left, self.levels[-1][0], self.levels[-1][0]


@dataclass(frozen=True)
class ReplayedArrivals(Arrivals):
    """Traffic as it was recorded: every request at its time, or a rate over time. Once.

    Parameters
    ----------
    times : tuple of float
        Seconds from the start, in order: of each request or, with rates, the end of each rate.
    rates : tuple of float, optional
        Requests per second up to each time. By default every time is one request.
    poisson : bool
        With rates, as for :class:`RampArrivals`.
    doubt : str
        What the recorded counts say against sending them so; results repeat it. By default nothing.
    """

    times: tuple[float, ...]
    rates: tuple[float, ...] | None = None
    poisson: bool = True
    doubt: str = ""
    kind: ClassVar[str] = "replay"

    def __post_init__(self) -> None:
        times = _numbers(self.times, "times")
        object.__setattr__(self, "times", times)
        if not times or times[0] < 0 or any(b < a for a, b in itertools.pairwise(times)):
            raise RECORDED_ARRIVALS.error(
                got=f"{len(times)} times",
                where="times",
                allowed="times from 0 on that never decrease",
            )
        if self.rates is not None:
            rates = _numbers(self.rates, "rates")
            object.__setattr__(self, "rates", rates)
            if len(rates) != len(times):
                raise RECORDED_ARRIVALS.error(
                    got=f"{len(rates)} rates",
                    where="rates",
                    allowed=f"{len(times)}, one for each time",
                )
            _check_rates(rates, "rates")

    @classmethod
    def of_shape(
        cls, form: Shape | str, *, peak_rate: float, speed: float = 1.0, poisson: bool = True
    ) -> ReplayedArrivals:
        """One of the simulator's shapes (``spike``, ``daily-wave``, or your own).

        Parameters
        ----------
        form : Shape or str
            The shape, or the name of one that ships with the simulator.
        peak_rate : float
            Requests per second at the shape's share of 1.
        speed : float
            How many times as fast; 24 makes an hour of a day, at the same rates.

        Raises
        ------
        ConfigurationError
            ``LLS122`` for a name that is not there, ``LLT128`` for a rate out of range, ``LLT133``
            for a shape of recorded single requests, which :meth:`of_file` replays.

        Examples
        --------
        >>> day = ReplayedArrivals.of_shape("daily-wave", peak_rate=1000, speed=288)
        >>> day.seconds, round(day.rate_at(60))
        (300.0, 250)
        """
        chosen = shape(form) if isinstance(form, str) else form
        if chosen.times:
            raise RECORDED_ARRIVALS.error(
                got=f"{chosen.name}, a shape of {len(chosen.times):,} single requests",
                where="form",
                allowed="a shape of rates or counts",
                fix="Give their times to ReplayedArrivals, or the file to of_file.",
            )
        levels = chosen.levels
        _check_speed(speed)
        STEP_RATE.check(peak_rate, "peak_rate")
        return cls(
            tuple(end / speed for end, _ in levels),
            tuple(share * peak_rate for _, share in levels),
            poisson,
        )

    @classmethod
    def of_file(cls, path: str | Path, *, speed: float = 1.0) -> ReplayedArrivals:
        """Recorded traffic from a file.

        Parameters
        ----------
        path : str or Path
            CSV with a time and a count in each line, or with the time of one request; or the JSON of
            ``aws cloudwatch get-metric-statistics`` (sums) or ``get-metric-data`` (one query).
        speed : float
            How many times as fast: 1 as recorded.

        Raises
        ------
        ConfigurationError
            ``LLS130`` for a file that is missing or of another form, ``LLT133`` for a speed out of
            range.
        """
        return cls.of_recording(read_recording(path), speed=speed)

    @classmethod
    def of_recording(cls, recording: Recording, *, speed: float = 1.0) -> ReplayedArrivals:
        """The requests at their times, or the rate of each period."""
        _check_speed(speed)
        if recording.counts is None:
            return cls(tuple(time / speed for time in recording.times))
        counts, seconds = recording.periods()
        ends = tuple((number + 1) * seconds / speed for number in range(len(counts)))
        rates = tuple(count / seconds for count in counts)
        return cls(ends, rates, doubt=recording.shape().warning)

    @property
    def seconds(self) -> float:
        """How long the recording lasts.

        To the end of its last rate. Of single requests to one mean gap after the last of them,
        which belongs to it like all others: as many gaps as requests.
        """
        first, last = self.times[0], self.times[-1]
        if self.rates is not None:
            return last
        return last + ((last - first) / (len(self.times) - 1) if last > first else 1.0)

    @property
    def random(self) -> bool:
        return self.poisson and self.rates is not None

    def segments(self, seconds: float) -> Iterator[RateSegment]:
        begin = 0.0
        for number, end in enumerate(self.times):
            stop = min(end, seconds)
            if stop > begin:
                # One request per gap stands for a recording of single requests.
                rate = 1 / (end - begin) if self.rates is None else self.rates[number]
                yield stop - begin, rate, rate
            begin = max(begin, end)

    def _times(self, seconds: float, seed: int) -> Iterator[float]:
        if self.rates is None:
            return itertools.takewhile(lambda time: time < seconds, self.times)
        return super()._times(seconds, seed)

    def expected_count(self, seconds: float) -> float:
        if self.rates is None:
            return sum(1 for _ in self._times(seconds, 0))
        return super().expected_count(seconds)


_KINDS: tuple[type[Arrivals], ...] = (
    ConstantArrivals,
    PoissonArrivals,
    RampArrivals,
    SteppedArrivals,
    ReplayedArrivals,
)


def arrivals_of_dict(content: Mapping[str, Any]) -> Arrivals:
    """The arrivals that ``to_dict`` gave."""
    kinds = {kind.kind: kind for kind in _KINDS}
    names = ", ".join(kinds)
    if not isinstance(content, Mapping) or content.get("kind") not in kinds:
        raise ARRIVALS_FORM.error(got=str(content)[:60], allowed=f"an object of kind {names}")
    values = {name: value for name, value in content.items() if name != "kind"}
    try:
        return kinds[content["kind"]](**values)
    except TypeError as problem:
        raise ARRIVALS_FORM.error(
            got=str(problem), allowed=f"the values of kind {names}", where=str(content["kind"])
        ) from None


def _random_counts(seed: int) -> Iterator[float]:
    """Arrivals of a Poisson process of rate 1: any other rate is this one on another clock."""
    draw = random.Random(f"arrivals/{seed}").expovariate
    total = 0.0
    while True:
        total += draw(1.0)
        yield total


def _times_of_counts(counts: Iterator[float], segments: Iterator[RateSegment]) -> Iterator[float]:
    """When the expected number of requests reaches each count."""
    begin = reached = 0.0
    count = next(counts)
    for length, start, end in segments:
        area = length * (start + end) / 2
        slope = (end - start) / length if length else 0.0
        while count < reached + area:
            missing = count - reached
            if missing <= 0:
                yield begin
            elif slope == 0:
                yield begin + missing / start
            else:
                # The root that stays exact for a slope near zero.
                root = math.sqrt(max(0.0, start * start + 2 * slope * missing))
                yield begin + 2 * missing / (start + root)
            count = next(counts)
        begin += length
        reached += area


def _check_rates(rates: Sequence[float], where: str) -> None:
    for rate in rates:
        STEP_RATE.check(rate, where)
    if not any(rates):
        raise STEP_RATE.rule.error(got="no rate above 0", allowed="a rate above 0", where=where)


def _check_speed(speed: float) -> None:
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0 < speed < math.inf:
        raise RECORDED_ARRIVALS.error(got=repr(speed), allowed="a number above 0", where="speed")


def _numbers(values: Any, where: str) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise RECORDED_ARRIVALS.error(
            got=repr(values)[:60], allowed="a list of numbers", where=where
        )
    numbers = tuple(values)
    for number in numbers:
        if (
            isinstance(number, bool)
            or not isinstance(number, (int, float))
            or not is_finite(number)
        ):
            raise RECORDED_ARRIVALS.error(got=repr(number)[:60], allowed="numbers", where=where)
    return numbers


def _pairs(values: Any, where: str) -> tuple[tuple[float, float], ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ARRIVALS_FORM.error(got=repr(values)[:60], allowed="pairs of numbers", where=where)
    pairs = [_numbers(value, where) for value in values]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ARRIVALS_FORM.error(got=repr(values)[:60], allowed="pairs of numbers", where=where)
    return tuple((pair[0], pair[1]) for pair in pairs)
