"""Filling the blocks of requests, and counting results: plain functions that numba can compile."""

from __future__ import annotations

import math

from .core import Floats, Wholes

# Kinds of law, with their numbers: the value; the mean; mean and deviation of the logarithm; a table
# of quantiles
CONSTANT, EXPONENTIAL, LOGNORMAL, EMPIRICAL = range(4)

# Histogram of times: PER_OCTAVE equal bins for each doubling, from 2**(LOWEST-1) s on
PER_OCTAVE, LOWEST, OCTAVES = 1024, -23, 46
BINS = PER_OCTAVE * OCTAVES


def fill_uniform(words: Wholes, out: Floats, size: int) -> None:
    """Numbers above 0 and below 1 by sfc32 (PractRand), 64 bits each; ``words`` is its state."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    for i in range(size):
        high = (a + b + d) & 0xFFFFFFFF
        d = (d + 1) & 0xFFFFFFFF
        a = b ^ (b >> 9)
        b = (c + (c << 3)) & 0xFFFFFFFF
        c = ((((c << 21) | (c >> 11)) & 0xFFFFFFFF) + high) & 0xFFFFFFFF
        low = (a + b + d) & 0xFFFFFFFF
        d = (d + 1) & 0xFFFFFFFF
        a = b ^ (b >> 9)
        b = (c + (c << 3)) & 0xFFFFFFFF
        c = ((((c << 21) | (c >> 11)) & 0xFFFFFFFF) + low) & 0xFFFFFFFF
        out[i] = ((high >> 6) * 67108864 + (low >> 6) + 0.5) * 2.220446049250313e-16
    words[0], words[1], words[2], words[3] = a, b, c, d


def fill_law(
    kind: int, one: float, two: float, table: Floats, entries: int, out: Floats, size: int
) -> None:
    """Turn uniform numbers in ``out`` into draws of a law, each rising with its number."""
    for i in range(size):
        u = out[i]
        if kind == CONSTANT:
            x = one
        elif kind == EXPONENTIAL:
            x = -one * math.log(u)
        elif kind == EMPIRICAL:
            steps = entries - 1
            scaled = u * steps
            at = int(scaled)
            x = table[at] + (table[at + 1] - table[at]) * (scaled - at)
        else:
            # Quantile of the normal law: Wichura's algorithm AS 241 (1988), to 1e-16
            q = u - 0.5
            if -0.425 <= q <= 0.425:
                r = 0.180625 - q * q
                above = (
                    2509.0809287301226727 * r + 33430.575583588128105
                ) * r + 67265.770927008700853
                above = (above * r + 45921.953931549871457) * r + 13731.693765509461125
                above = (above * r + 1971.5909503065514427) * r + 133.14166789178437745
                above = above * r + 3.387132872796366608
                below = (
                    5226.495278852545925 * r + 28729.085735721942674
                ) * r + 39307.89580009271061
                below = (below * r + 21213.794301586595867) * r + 5394.1960214247511077
                below = (below * r + 687.1870074920579083) * r + 42.313330701600911252
                below = below * r + 1.0
                z = q * above / below
            else:
                r = u if q < 0 else 1.0 - u
                r = math.sqrt(-math.log(r))
                if r <= 5.0:
                    r -= 1.6
                    above = (
                        7.7454501427834140764e-4 * r + 0.0227238449892691845833
                    ) * r + 0.24178072517745061177
                    above = (above * r + 1.27045825245236838258) * r + 3.64784832476320460504
                    above = (above * r + 5.7694972214606914055) * r + 4.6303378461565452959
                    above = above * r + 1.42343711074968357734
                    below = (
                        1.05075007164441684324e-9 * r + 5.475938084995344946e-4
                    ) * r + 0.0151986665636164571966
                    below = (below * r + 0.14810397642748007459) * r + 0.68976733498510000455
                    below = (below * r + 1.6763848301838038494) * r + 2.05319162663775882187
                    below = below * r + 1.0
                else:
                    r -= 5.0
                    above = (
                        2.01033439929228813265e-7 * r + 2.71155556874348757815e-5
                    ) * r + 0.0012426609473880784386
                    above = (above * r + 0.026532189526576123093) * r + 0.29656057182850489123
                    above = (above * r + 1.7848265399172913358) * r + 5.4637849111641143699
                    above = above * r + 6.6579046435011037772
                    below = (
                        2.04426310338993978564e-15 * r + 1.4215117583164458887e-7
                    ) * r + 1.8463183175100546818e-5
                    below = (below * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525
                    below = (below * r + 0.13692988092273580531) * r + 0.59983220655588793769
                    below = below * r + 1.0
                z = above / below
                if q < 0:
                    z = -z
            x = math.exp(one + two * z)
        out[i] = x


def fill_steps(levels: Floats, pairs: int, at: Floats, out: Floats, size: int) -> None:
    """Turn unit-exponential draws in ``out`` into gaps of Poisson arrivals of varying rate."""
    # levels: ends in seconds and rates in turn, repeated for ever; at: a pair, and the time in it
    pair = int(at[0])
    now = at[1]
    for i in range(size):
        left = out[i]
        gap = 0.0
        while True:
            span = levels[2 * pair] - now
            holds = levels[2 * pair + 1] * span
            if left < holds:
                step = left / levels[2 * pair + 1]
                gap += step
                now += step
                break
            left -= holds
            gap += span
            now = levels[2 * pair]
            pair += 1
            if pair == pairs:
                pair = 0
                now = 0.0
        out[i] = gap
    at[0] = pair
    at[1] = now


def tally(
    latency: Floats, wait: Floats, size: int, target: float, latencies: Wholes, sums: Floats
) -> None:
    """Count results into the histogram of latencies, and into the sums."""
    # sums: requests, latency, waits, slow ones
    total, waited, slow = sums[1], sums[2], sums[3]
    power, top = 0, 1.0  # the octave of the value before: the next is mostly in it or near
    for i in range(size):
        waited += wait[i]
        x = latency[i]
        total += x
        if x > target:
            slow += 1.0
        while x >= top:
            top *= 2.0
            power += 1
        while x < 0.5 * top and power > LOWEST:
            top *= 0.5
            power -= 1
        at = (power - LOWEST) * PER_OCTAVE + int((x / top - 0.5) * (2 * PER_OCTAVE))
        if at < 0:
            at = 0
        elif at >= BINS:
            at = BINS - 1
        latencies[at] += 1
    sums[0] += size
    sums[1], sums[2], sums[3] = total, waited, slow


def quantile(bins: Wholes, rank: float) -> float:
    """The time below which ``rank`` counted values lie; within a bin values are spread evenly."""
    before = 0.0
    for at in range(BINS):
        inside = bins[at]
        if inside > 0 and before + inside >= rank:
            octave = at // PER_OCTAVE + LOWEST
            step = 2.0**octave / (2 * PER_OCTAVE)
            low = 2.0 ** (octave - 1) + (at % PER_OCTAVE) * step
            return float(low + step * (rank - before) / inside)
        before += inside
    return 0.0


def add_and_clear(bins: Wholes, into: Wholes) -> None:
    """Add one histogram to another and empty it."""
    for at in range(BINS):
        into[at] += bins[at]
        bins[at] = 0


def total(values: Floats, size: int) -> float:
    """The sum of the first values, added in order."""
    added = 0.0
    for at in range(size):
        added += values[at]
    return added
