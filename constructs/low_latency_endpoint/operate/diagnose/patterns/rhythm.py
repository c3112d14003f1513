"""Do slow periods come in a rhythm? Folding, with a chance that counts every rhythm tried.

Periods of the window are numbered bins. Slow bins next to each other are a burst. A rhythm is a line
of slots, one in each cycle. Under the null hypothesis a burst begins in a slot as often as in any
other period that is not slow already, so the slots in which one begins are binomial. The first and the last burst fix the
line and prove nothing; the chance is multiplied by the lines that fit between them and by the ways
of looking, so that having looked for the best one is paid for.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import linear_regression, median

from ..thresholds import BURSTS_EXPLAINED, CYCLES, KEPT, SIGNIFICANT

_CANDIDATES, _ANCHORS = 10, 4
#: Ways of looking, by the gap that joins slow bins into a burst and the tolerance of a slot; the
#: plainest has half of the chance that all may have together.
_WAYS = {(1, 0): 2, (1, 1): 6, (2, 0): 6, (2, 1): 6}


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Slow in ``hits`` of ``cycles`` cycles of ``period`` bins; ``bins`` are the slow ones of it."""

    period: float
    cycles: int
    hits: int
    chance: float
    bins: frozenset[int]


def rhythm(observed: Sequence[int], slow: Sequence[int]) -> Rhythm | None:
    """The most significant rhythm of the slow bins among those that have data.

    >>> found = rhythm(range(60), [3, 13, 23, 33, 43, 53])
    >>> found.period, found.hits, found.cycles
    (10.0, 6, 6)
    >>> rhythm(range(60), [3, 9, 23, 31, 47, 53]) is None
    True
    >>> rhythm(range(60), range(20, 60)) is None
    True
    """
    if len(slow) < CYCLES or len(slow) > 0.7 * len(observed):
        return None
    there = frozenset(observed)
    found = [made for gap in (1, 2) for made in _lines(there, slow, gap)]
    found = [made for made in found if made.chance <= SIGNIFICANT]
    return min(found, key=lambda made: (made.chance, made.period), default=None)


def _lines(there: frozenset[int], slow: Sequence[int], gap: int) -> Iterator[Rhythm]:
    bursts = _bursts(slow, gap)
    onsets = [burst[0] for burst in bursts]
    if len(onsets) < CYCLES:
        return
    width = int(median(burst[-1] - burst[0] + 1 for burst in bursts))
    # Distances up to the third next: a burst may be missing, another too many.
    apart = Counter(
        later - one
        for ahead in (1, 2, 3)
        for one, later in zip(onsets, onsets[ahead:], strict=False)
        if later - one > width
    )
    stride = max(1, len(onsets) // _ANCHORS)
    tried: set[tuple[float, float]] = set()
    for distance, _ in apart.most_common(_CANDIDATES):
        for anchor in onsets[::stride]:
            line = _line(onsets, anchor, distance)
            if line is None or line in tried:
                continue
            tried.add(line)
            for slack in (0, 1):
                made = _judged(there, bursts, line, 2 * width + 1, slack, _WAYS[gap, slack])
                if made is not None:
                    yield made


def _bursts(slow: Sequence[int], gap: int) -> list[list[int]]:
    found: list[list[int]] = []
    for each in sorted(slow):
        if found and each - found[-1][-1] <= gap:
            found[-1].append(each)
        else:
            found.append([each])
    return found


def _line(onsets: Sequence[int], anchor: int, distance: int) -> tuple[float, float] | None:
    """Period and phase of the onsets that follow each other from an anchor, by least squares."""
    found = {0: anchor}
    for way in (1, -1):
        period, turn = float(distance), 0
        while True:
            turn += way
            expected = anchor + turn * period
            if not onsets[0] - 1 <= expected <= onsets[-1] + 1:
                break
            at = bisect_left(onsets, expected)
            near = min(onsets[max(at - 1, 0) : at + 1], key=lambda each: abs(each - expected))
            if abs(near - expected) <= 1:
                found[turn] = near
                period = (near - anchor) / turn
    cycles = max(found) - min(found) + 1
    if len(found) < max(CYCLES, KEPT * cycles / 2, BURSTS_EXPLAINED * len(onsets) / 2):
        return None
    period, phase = linear_regression(list(found), list(found.values()))
    return round(period, 4), round(phase % period, 4)


def _judged(
    there: frozenset[int],
    bursts: Sequence[Sequence[int]],
    line: tuple[float, float],
    longest: int,
    slack: int,
    ways: int,
) -> Rhythm | None:
    """How unlikely it is that so many slots on a line hold the beginning of a burst."""
    period, phase = line
    width = 1 + 2 * slack
    if period < width + 1:
        return None
    begins = {burst[0]: number for number, burst in enumerate(bursts)}
    long = {each for burst in bursts if len(burst) > longest for each in burst}
    begin, end = bursts[0][0], bursts[-1][-1]
    cycles, hits, hit = 0, 0, set()
    for turn in range(int((begin - phase) / period) - 1, int((end - phase) / period) + 2):
        first = round(phase + turn * period) - slack
        slot = [each for each in range(first, first + width) if each in there]
        if not slot or long.intersection(slot):
            continue  # no data, or slow for longer and for another reason
        inside = {begins[each] for each in slot if each in begins}
        cycles += 1
        hits += bool(inside)
        hit |= inside
    if (
        cycles < CYCLES
        or hits < max(CYCLES, KEPT * cycles)
        or len(hit) < BURSTS_EXPLAINED * len(bursts)
    ):
        return None
    # A burst begins in any period that is not slow already. The first and the last burst fix the
    # line: they prove nothing.
    places = end - begin + 1 - sum(map(len, bursts)) + len(bursts)
    by_chance = min(1.0, width * (len(bursts) - 2) / max(places, 1))
    counts = int(len(bursts) / KEPT) - math.ceil(max(CYCLES, BURSTS_EXPLAINED * len(bursts))) + 1
    ends = max(1.0, len(bursts) / cycles) ** 2
    chance = _tail(cycles - 2, by_chance, hits - 2) * max(counts, 1) * ends * ways
    bins = frozenset(each for number in hit for each in bursts[number])
    return Rhythm(period, cycles, hits, chance, bins)


def _tail(draws: int, share: float, least: int) -> float:
    """Chance of at least ``least`` hits in so many draws, each of this chance.

    >>> _tail(2, 0.5, 1), round(_tail(12, 0.1, 12), 15)
    (0.75, 1e-12)
    """
    return sum(
        math.comb(draws, k) * share**k * (1 - share) ** (draws - k) for k in range(least, draws + 1)
    )
