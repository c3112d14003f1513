"""Conversations of several turns: which request is whose, what it sends again, when turns overlap."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.measurement import TokenResult
from low_latency_endpoint.load_test.engine.prompts import PROMPTS_OF_A_STEP, Prompts
from low_latency_endpoint.load_test.engine.steps import Step, StepResult, warnings
from low_latency_endpoint.load_test.search.measured_steps import summary_lines
from tests.refusals import refused

from .fake_generator import answered

TURNS, AT_ONCE = 4, 50
TALKS = f"turns={TURNS},conversations={AT_ONCE}"


def talks(lengths: str = "input=40,output=8,shared_prefix=0.5", **more: Any) -> Prompts:
    return Prompts.of(f"{lengths},{TALKS}", **more)


def messages(prompts: Prompts, number: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(prompts.body(number))["messages"]
    return found


def words(prompts: Prompts, number: int) -> list[tuple[str, int]]:
    return [(each["role"], len(each["content"].split())) for each in messages(prompts, number)]


def by_conversation(prompts: Prompts, numbers: range) -> dict[int, list[tuple[int, int]]]:
    """Number and turn of each conversation's requests, in the order of sending."""
    found = defaultdict(list)
    for number in numbers:
        conversation, turn = prompts.turn(number)
        found[conversation].append((number, turn))
    return found


def test_a_turn_sends_again_all_that_was_said_before() -> None:
    prompts = talks()
    whole = [each for each in by_conversation(prompts, range(2_000)).values() if len(each) == TURNS]
    assert len(whole) > 2_000 / TURNS - 2 * AT_ONCE
    for requests in whole[:20]:
        said: list[dict[str, str]] = []
        for number, turn in requests:
            now = messages(prompts, number)
            assert now[: len(said)] == said
            assert [each["role"] for each in now[len(said) :]] == (
                ["assistant", "user"] if turn else ["system", "user"]
            )
            said = now


def test_lengths_are_those_of_the_first_prompt_and_then_of_each_question_and_answer() -> None:
    prompts = talks()
    for requests in list(by_conversation(prompts, range(1_000)).values())[:80]:
        for number, turn in requests:
            question, answer = ("user", 20), ("assistant", 8)
            assert words(prompts, number) == [("system", 20), *[question, answer] * turn, question]


def test_what_an_earlier_turn_asked_for_is_how_long_its_answer_was() -> None:
    prompts = talks("input=30:90,output=10:40", seed=5)
    for requests in by_conversation(prompts, range(AT_ONCE, 30 * AT_ONCE)).values():
        if len(requests) == TURNS:
            asked = [json.loads(prompts.body(number))["max_tokens"] for number, _ in requests]
            said = [count for role, count in words(prompts, requests[-1][0]) if role == "assistant"]
            assert said == asked[:-1]
            assert words(prompts, requests[0][0]) == [("user", prompts.lengths(requests[0][0])[0])]


def test_turns_come_in_their_order_and_as_far_apart_as_there_are_conversations() -> None:
    for begin in (0, PROMPTS_OF_A_STEP):
        for requests in by_conversation(talks(), range(begin, begin + 5_000)).values():
            numbers, turns = zip(*requests, strict=True)
            assert {b - a for a, b in pairwise(numbers)} <= {AT_ONCE}
            assert list(turns) == list(range(turns[0], turns[0] + len(turns)))
            # Those that the first round finds at a later turn, and those that the last one leaves.
            assert len(turns) == TURNS or numbers[0] < begin + AT_ONCE or turns[-1] < TURNS - 1


def test_all_turns_are_met_from_the_start_in_no_order() -> None:
    prompts = talks()
    first = [prompts.turn(number)[1] for number in range(AT_ONCE)]
    assert max(Counter(first).values()) - min(Counter(first).values()) <= 1
    for instances in (2, 4):  # whom requests reach by turns
        for instance in range(instances):
            assert len(set(first[instance::instances])) == TURNS


def test_no_two_conversations_share_more_than_the_prefix() -> None:
    prompts = talks(seed=3)
    begun = {
        conversation: messages(prompts, requests[0][0])[:2]
        for conversation, requests in by_conversation(prompts, range(4_000)).items()
    }
    assert len({system["content"] for system, _ in begun.values()}) == 1
    assert len({user["content"].split()[0] for _, user in begun.values()}) == len(begun)


def test_a_conversation_keeps_its_prefix_and_its_name() -> None:
    prompts = talks("input=40,output=8,shared_prefix=0.5,prefixes=3", tell_prefix=True)
    systems, names = set(), set()
    for conversation, requests in by_conversation(prompts, range(3_000)).items():
        (system,) = {messages(prompts, number)[0]["content"] for number, _ in requests}
        (name,) = {(prompts.parameters(number) or {})["PrefixAwareId"] for number, _ in requests}
        assert len(name) <= 64
        assert name not in names, conversation
        systems.add(system)
        names.add(name)
    assert len(systems) == 3
    assert talks().parameters(7) is None


def test_recorded_lengths_have_turns_too(tmp_path: Path) -> None:
    (tmp_path / "lengths.csv").write_text("input,output\n30,5\n20,3\n10,2\n")
    prompts = talks(f"file={tmp_path / 'lengths.csv'}")
    requests = next(
        each for each in by_conversation(prompts, range(1_000)).values() if len(each) == TURNS
    )
    lengths = [prompts.lengths(number) for number, _ in requests]
    assert words(prompts, requests[-1][0]) == [
        *(
            pair
            for prompt, answer in lengths[:-1]
            for pair in (("user", prompt), ("assistant", answer))
        ),
        ("user", lengths[-1][0]),
    ]
    # 20 and 10/3 on average: 20 for the first prompt and 23 1/3 for each turn after it.
    assert prompts.source.endswith("90 tokens in for the last turn")


def test_the_source_says_turns_conversations_and_how_long_the_last_prompt_is() -> None:
    # 20 of the system prompt, four questions of 20, three answers of 8.
    assert talks().source == (
        "prompts of 40 tokens in, 8 out, 50 % of the prompt shared, 4 turns of 50 conversations "
        "at once, 124 tokens in for the last turn"
    )
    longest = max(sum(count for _, count in words(talks(), number)) for number in range(AT_ONCE))
    assert longest == 124


@pytest.mark.parametrize(
    ("text", "code", "words_of"),
    [
        ("turns=4", "LLT165", "turns alone"),
        ("conversations=4", "LLT165", "conversations alone"),
        ("turns=0,conversations=4", "LLT168", "0"),
        ("turns=4,conversations=0", "LLT168", "0"),
        ("turns=2.5,conversations=4", "LLT168", "2.5"),
        ("turns=4,conversations=nan", "LLT168", "nan"),
        ("turns=4,conversations=1000000", "LLT168", "1000000"),
        ("prefixes=1.5", "LLT166", "1.5"),
    ],
)
def test_what_makes_no_conversations_is_refused(text: str, code: str, words_of: str) -> None:
    with refused(code, says=words_of):
        Prompts.of(f"input=5,output=1,{text}")


# ----------------------------------------------------------------------------------- how far apart

COUNT = 100_000


def result(answer: float, conversations: int, users: int | None = None) -> StepResult:
    """A hundred seconds of a thousand requests each."""
    step = Step("s", 100, None if users else ConstantArrivals(1_000), users)
    latency = LatencyHistogram.of([answer] * COUNT)
    return answered(step, latency, conversations=conversations)


def test_results_say_how_far_apart_turns_were() -> None:
    one = result(0.1, 500)
    assert one.between_turns == 0.5
    assert one.to_dict()["between_turns_ms"] == 500
    assert StepResult.of_dict(one.to_dict()).between_turns == 0.5
    assert any(
        "500 conversations at once, 500 ms" in line
        for line in summary_lines(replace(one, tokens=TokenResult()))
    )
    none = result(0.1, 0)
    assert math.isnan(none.between_turns)
    assert "conversations" not in none.to_dict()


@pytest.mark.parametrize(
    ("answer", "conversations", "users", "said"),
    [
        (0.49, 500, None, ""),
        (0.51, 500, None, "sooner than the p95 of a whole answer, 510 ms"),
        (0.51, 0, None, ""),
        # Whoever waits for his answer before he goes on has no two turns under way.
        (9.0, 500, 100, ""),
        (9.0, 500, 1, ""),
        (0.1, 500, 300, "not shared out evenly to 300 users"),
    ],
)
def test_turns_that_overlap_are_told(
    answer: float, conversations: int, users: int | None, said: str
) -> None:
    found = [each for each in warnings(result(answer, conversations, users)) if "turns" in each]
    assert len(found) == bool(said)
    assert all(said in each for each in found)
