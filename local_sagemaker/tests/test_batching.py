"""Continuous batching without time: what holds for every traffic, and some cases by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_sagemaker.model_servers.batching import Generation, Iteration, Scheduler


def prompt(length: int, name: object = "") -> list[object]:
    return [(name, place) for place in range(length)]


def one_of(length: int, output: int, name: object = "") -> Generation:
    return Generation(prompt(length, name), output)


def drain(scheduler: Scheduler) -> list[Iteration]:
    """All iterations until nothing is left to do."""
    found = []
    while (iteration := scheduler.step()) is not None:
        found.append(iteration)
        assert len(found) < 100_000
    return found


# ------------------------------------------------------------------------------- for every traffic


@dataclass(frozen=True)
class Traffic:
    """A scheduler's limits, and requests: when they come, how long they are, whose prefix."""

    budget: int
    sequences: int
    block: int
    blocks: int
    prefix_cache: bool
    requests: Sequence[tuple[int, int, int, int]]


@st.composite
def traffic(draw: st.DrawFn) -> Traffic:
    block = draw(st.sampled_from([1, 2, 4, 16]))
    sequences = draw(st.integers(1, 8))
    blocks = draw(st.integers(2, 24))
    room = block * blocks
    count = draw(st.integers(1, 14))
    requests = []
    for _ in range(count):
        output = draw(st.integers(1, min(12, room - 1)))
        length = draw(st.integers(1, room - output))
        requests.append((draw(st.integers(0, 12)), length, output, draw(st.integers(0, 2))))
    return Traffic(
        draw(st.integers(sequences, 40)), sequences, block, blocks, draw(st.booleans()), requests
    )


def distinct_blocks(sequences: Sequence[Generation]) -> int:
    return len({block for one in sequences for block in one.blocks})


@settings(max_examples=300)
@given(traffic(), st.randoms(use_true_random=False))
def test_what_holds_for_every_traffic(case: Traffic, chance: random.Random) -> None:
    scheduler = Scheduler(
        kv_tokens=case.block * case.blocks,
        max_batched_tokens=case.budget,
        max_sequences=case.sequences,
        block_tokens=case.block,
        prefix_cache=case.prefix_cache,
    )
    coming = sorted(
        ((start, one_of(length, output, name)) for start, length, output, name in case.requests),
        key=lambda each: each[0],
    )
    every = [one for _, one in coming]
    given_up: set[int] = set()
    for number in range(10_000):
        while coming and coming[0][0] <= number:
            scheduler.add(coming.pop(0)[1])
        before = {id(one): one.generated for one in every}
        running = list(scheduler.running)
        decoding = [one for one in running if one.computed == len(one.tokens) - 1]
        iteration = scheduler.schedule()
        if iteration is None:
            if not coming:
                break
            continue
        parts = dict(iteration.parts)
        # The budget is kept, and nobody has a part of nothing.
        assert iteration.tokens == sum(parts.values()) <= case.budget
        assert all(parts.values())
        assert len(scheduler.running) <= case.sequences
        # No block beyond the room; each counted once, and enough for what is computed.
        assert scheduler.used_blocks == distinct_blocks(scheduler.running) <= case.blocks
        for one, tokens in iteration.parts:
            assert len(one.blocks) * case.block >= one.computed + tokens
        # Whoever generates has its token in this iteration, or was preempted for others' sake.
        assert all(parts.get(one) == 1 or one in iteration.preempted for one in decoding)
        # Only the last admitted are preempted, and nobody is admitted beside.
        if iteration.preempted:
            assert running == [*scheduler.running, *reversed(iteration.preempted)]
        growing = iteration.growing()
        if growing and chance.random() < 0.05:
            one = chance.choice(growing)
            scheduler.abort(one)
            given_up.add(id(one))
            assert one not in scheduler.running
        grown = scheduler.complete(iteration)
        assert [id(one) for one in grown] == [
            id(one) for one in growing if id(one) not in given_up or not one.ended
        ]
        for one in every:
            assert one.generated - before[id(one)] == (one in grown)
    else:
        raise AssertionError("it does not come to an end")
    # All have what they asked for, also those that were preempted, and every block is free.
    for one, (_, length, output, _) in zip(
        every, sorted(case.requests, key=lambda r: r[0]), strict=True
    ):
        assert one.ended
        if id(one) not in given_up:
            assert (one.generated, len(one.tokens)) == (output, length + output)
        assert one.blocks == []
    assert scheduler.used_blocks == 0
    assert scheduler.usage == 0
    assert not scheduler.running
    assert not scheduler.waiting
    assert scheduler.preemptions == sum(one.preemptions for one in every)
    assert scheduler.prefix_hits == sum(one.cached_tokens for one in every)
    if not case.prefix_cache:
        assert scheduler.prefix_queries == 0


# ----------------------------------------------------------------------------------------- by hand


def test_a_long_prompt_comes_in_parts_beside_those_who_generate() -> None:
    scheduler = Scheduler(kv_tokens=10_000, max_batched_tokens=100)
    talking = one_of(10, 10, "a")
    scheduler.add(talking)
    scheduler.step()
    long = one_of(250, 1, "b")
    scheduler.add(long)
    # One token of the first, and 99, 99 and 52 of the other's 250.
    assert [scheduler.step().tokens for _ in range(3)] == [100, 100, 53]  # type: ignore[union-attr]
    assert (talking.generated, long.generated) == (4, 1)


def test_the_last_admitted_is_preempted_and_computes_again() -> None:
    # Four blocks of four: two prompts of six take all, and each needs a third block at nine.
    scheduler = Scheduler(kv_tokens=16, block_tokens=4, prefix_cache=False)
    first, last = one_of(6, 8, "a"), one_of(6, 4, "b")
    scheduler.add(first)
    scheduler.add(last)
    iterations = drain(scheduler)
    tokens = [iteration.tokens for iteration in iterations]
    # 12 of both prompts; two more each, whose keys and values fill the second blocks; with the
    # third block of the first the last one goes: alone 5 tokens more, to 8; then again 6 + 3
    # tokens of the last one at once, for its fourth.
    assert tokens == [12, 2, 2, 1, 1, 1, 1, 1, 9]
    assert [one.preemptions for one in (first, last)] == [0, 1]
    assert [one.generated for one in (first, last)] == [8, 4]


def test_the_beginning_of_a_prompt_is_found_again_in_whole_blocks() -> None:
    scheduler = Scheduler(kv_tokens=1000, block_tokens=16)
    scheduler.add(Generation([*prompt(40), "x"], 1))
    drain(scheduler)
    again = Generation([*prompt(40), "y"], 1)
    scheduler.add(again)
    iteration = scheduler.step()
    assert iteration is not None
    assert (again.cached_tokens, iteration.tokens, iteration.cached_tokens) == (32, 9, 32)
    assert (scheduler.prefix_queries, scheduler.prefix_hits) == (82, 32)


def test_a_prompt_known_as_a_whole_still_computes_its_last_block() -> None:
    scheduler = Scheduler(kv_tokens=1000, block_tokens=16)
    for _ in range(2):
        scheduler.add(one_of(32, 1))
    first, second = one_of(32, 1), one_of(32, 1)
    drain(scheduler)
    scheduler.add(first)
    scheduler.add(second)
    assert scheduler.step().tokens == 32  # type: ignore[union-attr]
    assert (first.cached_tokens, second.cached_tokens) == (16, 16)


def test_shared_blocks_count_once() -> None:
    scheduler = Scheduler(kv_tokens=160, block_tokens=16)
    for last in "abc":
        scheduler.add(Generation([*prompt(64), last], 5))
    scheduler.step()
    # Four blocks that all have, and one of each.
    assert scheduler.used_blocks == 4 + 3
    assert scheduler.usage == pytest.approx(0.7)


def test_an_answer_is_known_to_the_next_turn_of_its_conversation() -> None:
    scheduler = Scheduler(kv_tokens=1000, block_tokens=16)
    first = one_of(16, 33)
    scheduler.add(first)
    drain(scheduler)
    # Of the 49 tokens the last one's keys and values were never computed: three whole blocks.
    second = Generation([*first.tokens, "and", "then"], 1)
    scheduler.add(second)
    scheduler.step()
    assert second.cached_tokens == 48


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    scheduler = Scheduler(kv_tokens=64, block_tokens=16)

    def cached(name: str) -> int:
        one = one_of(17, 1, name)
        scheduler.add(one)
        drain(scheduler)
        return one.cached_tokens

    assert [cached(name) for name in "abab"] == [0, 0, 16, 16]
    # Each takes a free block for its last token, and a third prompt two: those of a, then of b.
    for _ in range(3):
        cached("c")
    assert cached("c") == 16
    fourth = one_of(49, 1, "d")
    scheduler.add(fourth)
    drain(scheduler)
    assert [cached(name) for name in "abc"] == [0, 0, 0]


def test_a_block_is_known_only_behind_the_same_beginning() -> None:
    scheduler = Scheduler(kv_tokens=1000, block_tokens=4)
    for text in ("aaaabbbb.", "ccccdddd."):
        scheduler.add(Generation([*text], 1))
        drain(scheduler)
    mixed = Generation([*"aaaadddd."], 1)
    scheduler.add(mixed)
    drain(scheduler)
    assert mixed.cached_tokens == 4


def test_of_a_prompt_its_end_is_forgotten_first() -> None:
    scheduler = Scheduler(kv_tokens=64, block_tokens=16)
    for name in ("a", "b"):  # four blocks, then one of them anew
        scheduler.add(one_of(64 if name == "a" else 16, 1, name))
        drain(scheduler)
    again = one_of(64, 1, "a")
    scheduler.add(again)
    drain(scheduler)
    assert again.cached_tokens == 48


def test_the_preempted_one_goes_before_those_who_wait() -> None:
    scheduler = Scheduler(kv_tokens=16, block_tokens=4, max_sequences=2, prefix_cache=False)
    first, preempted, waits = one_of(6, 8, "a"), one_of(6, 4, "b"), one_of(6, 4, "c")
    for one in (first, preempted, waits):
        scheduler.add(one)
    ended = []
    while scheduler.step() is not None:
        ended += [one for one in (first, preempted, waits) if one.ended and one not in ended]
    assert preempted.preemptions == 1
    assert ended == [first, preempted, waits]


def test_without_the_cache_nothing_is_found() -> None:
    scheduler = Scheduler(kv_tokens=1000, prefix_cache=False)
    for _ in range(2):
        scheduler.add(one_of(64, 1))
        assert scheduler.step().tokens == 64  # type: ignore[union-attr]
    assert scheduler.prefix_hits == 0


@pytest.mark.parametrize(("length", "output", "fits"), [(16, 17, True), (17, 17, False)])
def test_what_could_never_fit_is_refused(length: int, output: int, fits: bool) -> None:
    # 32 tokens' room; the last token generated needs none.
    scheduler = Scheduler(kv_tokens=40, block_tokens=16)
    one = one_of(length, output)
    if fits:
        scheduler.add(one)
        drain(scheduler)
        assert one.generated == output
    else:
        with pytest.raises(ValueError, match="no room"):
            scheduler.add(one)


def test_whoever_is_given_up_leaves_no_block_behind() -> None:
    scheduler = Scheduler(kv_tokens=160, max_sequences=1)
    at_work, waits = one_of(40, 5, "a"), one_of(40, 5, "b")
    scheduler.add(at_work)
    scheduler.add(waits)
    iteration = scheduler.schedule()
    assert iteration is not None
    scheduler.abort(at_work)
    scheduler.abort(at_work)
    assert scheduler.complete(iteration) == []
    assert scheduler.used_blocks == 0
    scheduler.abort(waits)
    assert scheduler.schedule() is None
