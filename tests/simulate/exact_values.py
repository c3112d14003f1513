"""Exact results of queueing theory, computed here without the simulator; unit mean service."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement


def erlang_c(servers: int, load: float) -> float:
    """Chance to wait in M/M/c at a load per server (Erlang 1917)."""
    offered, blocked = servers * load, 1.0
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return blocked / (1 - load + load * blocked)


def mmc_wait(servers: int, load: float) -> float:
    """Mean wait in M/M/c."""
    return erlang_c(servers, load) / (servers * (1 - load))


def mmc_wait_percentile(servers: int, load: float, share: float) -> float:
    """The time that a share of the waits in M/M/c stays under."""
    return math.log(erlang_c(servers, load) / (1 - share)) / (servers * (1 - load))


def mg1_wait(load: float, squared_variation: float) -> float:
    """Mean wait in M/G/1 (Pollaczek 1930, Khinchine 1932)."""
    return load * (1 + squared_variation) / 2 / (1 - load)


def closed_random_throughput(instances: int, users: int, speeds: list[float]) -> float:
    """Answers per instance under RANDOM without pauses (Gordon and Newell 1967).

    ``speeds[n - 1]`` is an instance's total speed with n requests. Convolution of the stations'
    weights, Buzen's algorithm.
    """
    weights = [1.0]
    for n in range(1, users + 1):
        weights.append(weights[-1] / speeds[min(n, len(speeds)) - 1])
    total = weights[:]
    for _ in range(instances - 1):
        total = [
            math.fsum(total[i] * weights[n - i] for i in range(n + 1)) for n in range(users + 1)
        ]
    return total[users - 1] / total[users]


def closed_least_outstanding_throughput(instances: int, users: int, workers: int) -> float:
    """Answers per instance under LEAST_OUTSTANDING_REQUESTS: the chain of occupancies, solved."""
    start = tuple(
        sorted(
            (users // instances + (i < users % instances) for i in range(instances)), reverse=True
        )
    )
    index, todo, moves = {start: 0}, [start], []
    while todo:
        state = todo.pop()
        for value in {*state} - {0}:
            rate = state.count(value) * min(value, workers)
            after = list(state)
            after.remove(value)
            after.append(value - 1)
            after.sort()
            after[0] += 1  # the answered user's next request joins the shortest
            target = tuple(sorted(after, reverse=True))
            if target not in index:
                index[target] = len(index)
                todo.append(target)
            moves.append((index[state], index[target], float(rate)))
    chances = _stationary(len(index), moves)
    return (
        sum(chances[at] * sum(min(n, workers) for n in state) for state, at in index.items())
        / instances
    )


def join_shortest_queue_sojourn(
    instances: int, load: float, longest: int = 120, apart: int = 14
) -> float:
    """Mean time in open join-shortest-queue with one worker each.

    The chain is cut at queues of ``longest`` and at differences of ``apart`` between the longest
    and the shortest; differences are small, since every arrival evens them out.
    """
    states = [state for state in _falling(instances, longest) if state[0] - state[-1] <= apart]
    index = {state: at for at, state in enumerate(states)}
    moves = []
    for state, at in index.items():
        if state[-1] < longest:
            up = (*state[:-1], state[-1] + 1)
            moves.append((at, index[tuple(sorted(up, reverse=True))], instances * load))
        for value in {*state} - {0}:
            down = list(state)
            down[down.index(value)] -= 1
            target = index.get(tuple(sorted(down, reverse=True)))
            if target is not None:
                moves.append((at, target, float(state.count(value))))
    chances = _stationary(len(index), moves)
    return sum(chances[at] * sum(state) for state, at in index.items()) / (instances * load)


def power_of_choices_sojourn(load: float, choices: int) -> float:
    """Mean time with very many instances of one worker (Mitzenmacher 1996)."""
    return sum(
        load ** ((choices**i - choices) / (choices - 1)) for i in range(1, 40) if choices**i < 1e9
    )


def batching_gain(instances: int, users_each: int, slope: float) -> float:
    """Gain of least outstanding over random in closed loops with batching instances."""
    return slope * (1 - 1 / instances) / (1 + slope * (users_each - 1))


def erlang_percentile(stages: int, share: float) -> float:
    """Quantile of a sum of unit exponentials, by bisection."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        above = math.exp(-middle) * sum(middle**k / math.factorial(k) for k in range(stages))
        low, high = (middle, high) if above > 1 - share else (low, middle)
    return low


def _falling(length: int, largest: int) -> Iterator[tuple[int, ...]]:
    return (state[::-1] for state in combinations_with_replacement(range(largest + 1), length))


def _stationary(size: int, moves: list[tuple[int, int, float]]) -> list[float]:
    import numpy
    import scipy.sparse
    import scipy.sparse.linalg

    rows, columns, values = [], [], []
    for source, target, rate in moves:
        rows += [target, source]
        columns += [source, source]
        values += [rate, -rate]
    matrix = scipy.sparse.csc_matrix((values, (rows, columns)), shape=(size, size)).tolil()
    matrix[size - 1, :] = 1
    right = numpy.zeros(size)
    right[-1] = 1
    solved: list[float] = scipy.sparse.linalg.spsolve(matrix.tocsc(), right).tolist()
    return solved
