"""Prompts by their tokens: lengths, what is shared, and recorded ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.prompts import Prompts, recorded_lengths
from low_latency_endpoint.options.token_traffic import TokenLengths, TokenTraffic
from tests.refusals import refused


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
        '{"usage": "none"}\n{"input": [1], "output": 2}\n',
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
