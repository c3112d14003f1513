"""Prompts of given lengths, and of conversations: which request is whose, when turns overlap."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.prompts import (
    PROMPTS_OF_A_STEP,
    Prompts,
    recorded_lengths,
)
from low_latency_endpoint.load_test.engine.steps import Step, StepResult, warnings
from low_latency_endpoint.load_test.search.measured_steps import turns_line
from low_latency_endpoint.options.load import TokenLengths, TokenTraffic
from tests.refusals import refused

from .fake_generator import answered


def words(body: bytes, role: str) -> list[str]:
    messages = json.loads(body)["messages"]
    return [word for each in messages if each["role"] == role for word in each["content"].split()]


def test_prompts_and_answers_have_the_lengths_asked_for() -> None:
    prompts = Prompts(TokenTraffic(input=512, output=128, shared_prefix=0.5))
    for number in (0, 1, 70_000):
        body = prompts.body(number)
        assert len(words(body, "system")) == len(words(body, "user")) == 256
        asked = json.loads(body)
        assert asked["max_tokens"] == asked["min_tokens"] == 128
        assert asked["ignore_eos"] is asked["stream"] is True
        assert asked["stream_options"] == {"include_usage": True}


def test_nothing_is_shared_beyond_the_prefix() -> None:
    prompts = Prompts(TokenTraffic(input=100, output=1, shared_prefix=0.25))
    bodies = [prompts.body(number) for number in range(500)]
    assert len({tuple(words(body, "system")) for body in bodies}) == 1
    # A prefix cache keeps blocks from the beginning: the first words must differ already.
    assert len({words(body, "user")[0] for body in bodies}) == 500


def test_without_a_shared_prefix_there_is_no_system_prompt() -> None:
    body = Prompts(TokenTraffic(input=10, output=1)).body(3)
    assert words(body, "system") == []
    assert len(words(body, "user")) == 10


def test_a_prompt_all_shared_still_asks_something_of_its_own() -> None:
    prompts = Prompts(TokenTraffic(input=10, output=1, shared_prefix=1))
    assert len(words(prompts.body(0), "system")) == 9
    assert words(prompts.body(0), "user") != words(prompts.body(1), "user")


def test_tenants_have_prefixes_of_their_own_and_may_be_named() -> None:
    traffic = TokenTraffic(input=40, output=1, shared_prefix=0.5)
    prompts = Prompts(traffic, prefixes=3, tell_prefix=True)
    systems = [" ".join(words(prompts.body(number), "system")) for number in range(300)]
    named = [(prompts.parameters(number) or {})["PrefixAwareId"] for number in range(300)]
    # Each name stands for one prefix, and each is met about as often.
    assert len(set(zip(systems, named, strict=True))) == len(set(systems)) == 3
    assert min(Counter(named).values()) > 60
    # Nor by turns: callers that take turns would each send prefixes of their own.
    assert len(set(named[::3])) == 3
    assert Prompts(traffic, prefixes=3).parameters(1) is None


def test_lengths_that_vary_have_their_median_and_p95() -> None:
    prompts = Prompts(TokenTraffic(input=TokenLengths(p50=300, p95=1800), output=20))
    drawn = sorted(prompts.lengths(number)[0] for number in range(20_000))
    assert median(drawn) == pytest.approx(300, rel=0.03)
    # The share above p95 of 20,000 draws has a deviation of 0.15 %.
    assert sum(each > 1800 for each in drawn) / len(drawn) == pytest.approx(0.05, abs=0.006)
    assert drawn[0] >= 1


@pytest.mark.parametrize("turns", ["", ",turns=4,conversations=50"])
@pytest.mark.parametrize(
    "lengths", ["input=30:90,output=10:40,shared_prefix=0.2,prefixes=2", "file"]
)
def test_the_same_seed_gives_the_same_requests_in_every_process(
    tmp_path: Path, lengths: str, turns: str
) -> None:
    if lengths == "file":
        (tmp_path / "lengths.csv").write_text("input,output\n30,5\n20,3\n")
        lengths = f"file={tmp_path}/lengths.csv"
    prompts, other = (Prompts.of(lengths + turns, seed=seed) for seed in (7, 8))
    again = Payloads.of_dict(json.loads(json.dumps(Payloads.of_prompts(prompts).to_dict())))
    assert [again.next(number) for number in range(400)] == [prompts.body(n) for n in range(400)]
    assert again.source == prompts.source
    assert other.body(0) != prompts.body(0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ours.csv", "input,output\n100,20\n30,5\n"),
        ("azure.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16,100,20\n2023,30,5\n"),
        ("vidur.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100.0,20.0\n1,30,5\n"),
        ("lines.jsonl", '{"input": 100, "output": 20}\n\n{"input": 30, "output": 5}\n'),
        (
            "usage.jsonl",
            '{"usage": {"prompt_tokens": 100, "completion_tokens": 20}}\n'
            '{"usage": null}\n{"usage": {"prompt_tokens": 30, "completion_tokens": 5}}\n',
        ),
        (
            "burstgpt-failed.csv",
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,GPT-4,100,20,120,API log\n6,GPT-4,9,0,9,API log\n7,GPT-4,30,5,35,API log\n",
        ),
        (
            "mooncake.jsonl",
            '{"timestamp": 0, "input_length": 100, "output_length": 20, "hash_ids": [0]}\n'
            '{"timestamp": 3052, "input_length": 30, "output_length": 5, "hash_ids": [1]}\n',
        ),
        (
            "vllm-bench-failed.json",
            '{"input_lens": [100, 7, 30], "output_lens": [20, 0, 5], "errors": ["", "x", ""]}',
        ),
    ],
)
def test_recorded_lengths_are_read_in_every_known_form(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert recorded_lengths(tmp_path / name) == (((100, 20), (30, 5)), int("failed" in name))
    prompts = Prompts.of(f"file={tmp_path / name}")
    assert [json.loads(prompts.body(number))["max_tokens"] for number in range(3)] == [20, 5, 20]
    assert sum(prompts.lengths(number)[1] for number in range(2)) / 2 == 12.5
    assert ("1 without a prompt or an answer" in prompts.source) == ("failed" in name)


def test_data_capture_tells_lengths_where_the_answer_tells_its_usage(tmp_path: Path) -> None:
    streamed = (
        'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": '
        '{"prompt_tokens": 7, "completion_tokens": 3}}\n\ndata: [DONE]\n\n'
    )
    whole = json.dumps(
        {
            "choices": [{"message": {"content": "x"}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        }
    )
    silent = json.dumps([{"label": "POSITIVE"}])
    lines = [
        json.dumps(
            {
                "captureData": {
                    "endpointInput": {"data": "{}"},
                    "endpointOutput": {"data": told, "encoding": "JSON"},
                }
            }
        )
        for told in (streamed, whole, silent)
    ]
    (tmp_path / "capture.jsonl").write_text("\n".join(lines))
    assert recorded_lengths(tmp_path / "capture.jsonl") == (((7, 3), (9, 2)), 0)


@pytest.mark.parametrize(
    ("text", "code", "words_of"),
    [
        ("512", "LLT165", "512"),
        ("input=512", "LLT165", "without output"),
        ("input=512,output=", "LLT165", "output="),
        ("input=1:2:3,output=1", "LLT165", "1:2:3"),
        ("input=512,output=1,input=2", "LLT165", "input=2"),
        ("input=5,output=1,share=0.5", "LLT165", "share=0.5"),
        ("input=5,output=1,shared_prefix=half", "LLT165", "half"),
        ("input=5,output=1,shared_prefix=1.5", "LLE895", "1.5"),
        ("input=0,output=1", "LLE893", "0"),
        ("input=900:300,output=1", "LLE894", "300"),
        ("input=5,output=1,prefixes=0", "LLT166", "0"),
        ("file=/no/such/lengths.csv", "LLT165", "/no/such/lengths.csv"),
        ("file=x.csv,output=3", "LLT165", "file with output"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(text: str, code: str, words_of: str) -> None:
    with refused(code, says=words_of):
        Prompts.of(text)


@pytest.mark.parametrize(
    "text",
    [
        "time,bytes\n1,2\n",
        "Request tokens,Response tokens\n9,0\n",
        "input,output\n1,inf\n",
        "input,output\n1,-2\n",
        '{"usage": "none"}\n{"input": "many", "output": 2}\n',
        '[{"conversations": [{"from": "human", "value": "hello"}]}]',
    ],
)
def test_a_file_without_lengths_says_which_columns_there_may_be(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ConfigurationError, match="ContextTokens"):
        recorded_lengths(tmp_path / "x.csv")


def test_words_are_used_evenly_enough_to_be_no_single_cached_block() -> None:
    counted = Counter(words(Prompts(TokenTraffic(input=5_000, output=1)).body(0), "user")[1:])
    assert max(counted.values()) < 5_000 / 20


TURNS, AT_ONCE = 4, 50
TALKS = f"turns={TURNS},conversations={AT_ONCE}"


def talks(lengths: str = "input=40,output=8,shared_prefix=0.5", **more: Any) -> Prompts:
    return Prompts.of(f"{lengths},{TALKS}", **more)


def messages(prompts: Prompts, number: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(prompts.body(number))["messages"]
    return found


def roles_and_lengths(prompts: Prompts, number: int) -> list[tuple[str, int]]:
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
            assert roles_and_lengths(prompts, number) == [
                ("system", 20),
                *[question, answer] * turn,
                question,
            ]


def test_what_an_earlier_turn_asked_for_is_how_long_its_answer_was() -> None:
    prompts = talks("input=30:90,output=10:40", seed=5)
    for requests in by_conversation(prompts, range(AT_ONCE, 30 * AT_ONCE)).values():
        if len(requests) == TURNS:
            asked = [json.loads(prompts.body(number))["max_tokens"] for number, _ in requests]
            said = [
                count
                for role, count in roles_and_lengths(prompts, requests[-1][0])
                if role == "assistant"
            ]
            assert said == asked[:-1]
            assert roles_and_lengths(prompts, requests[0][0]) == [
                ("user", prompts.lengths(requests[0][0])[0])
            ]


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
    assert roles_and_lengths(prompts, requests[-1][0]) == [
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
    longest = max(
        sum(count for _, count in roles_and_lengths(talks(), number)) for number in range(AT_ONCE)
    )
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
    assert "500 conversations at once, 500 ms" in turns_line(one)
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
