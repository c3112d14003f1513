"""The language model's server: times to the last digit, OpenAI's forms, faults, metrics."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_model_site import STREAM, Caller, Server, asked, exactly, run, usage_of, words

from local_sagemaker.model_servers import LanguageModelServer
from local_sagemaker.model_servers.language_model import Prefixes
from local_sagemaker.model_servers.openai_format import Sessions, Wrong
from local_sagemaker.promql.series import samples_of

LM = LanguageModelServer(kv_tokens=64_000)


# ------------------------------------------------------------------------------------------ times


def test_the_first_token_takes_its_prompts_time_and_each_other_a_gap() -> None:
    prompts = [{"content": each} for each in (words(512), words(512, "other"), "short")]
    callers = asked(LM, *prompts, **exactly(5))
    for caller, first in zip(callers, (0.0512, 0.0512, 0.02), strict=True):
        assert caller.times()[0] - caller.began == pytest.approx(first)
        assert caller.gaps() == pytest.approx([0.02] * 4)


@pytest.mark.parametrize(("neighbours", "gap"), [(0, 0.02), (1, 0.022), (4, 0.028)])
def test_neighbours_slow_each_others_gaps(neighbours: int, gap: float) -> None:
    slow = replace(LM, seconds_per_neighbour=0.002)
    callers = asked(slow, *[{}] * (neighbours + 1), together=True, **exactly(3))
    assert min(caller.gaps()[0] for caller in callers) == pytest.approx(gap)
    for caller in callers:
        assert caller.times()[0] == pytest.approx(0.02)


@pytest.mark.parametrize("room", [{"max_sequences": 2}, {"kv_tokens": 55}])
def test_who_has_no_room_waits_for_the_first_token(room: dict[str, int]) -> None:
    prompts = [{"content": words(20, str(n))} for n in range(5)]
    callers = asked(replace(LM, **room), *prompts, together=True, **exactly(5))
    firsts = [caller.times()[0] for caller in callers]
    assert firsts == pytest.approx([0.02, 0.02, 0.12, 0.12, 0.22])


def test_the_beginning_of_a_prompt_is_known_the_second_time() -> None:
    first, second = asked(LM, *[{"content": words(1024)}] * 2, **exactly(1))
    # 63 blocks of 16 are known, and the last block's tokens computed: no more than a gap.
    assert first.times() == pytest.approx([0.1024])
    assert second.times() == pytest.approx([0.1024 + 0.02])


def test_what_was_used_longest_ago_is_forgotten() -> None:
    prefixes = Prefixes(64)
    first, second, third = ([f"{name}{n}" for n in range(32)] for name in "abc")
    for each in (first, second, first, third):
        prefixes.keep(each)
    found = [prefixes.find([*each, "more"]) for each in (first, second, third)]
    assert found == [32, 0, 32]
    assert prefixes.find(first) == 16  # the last token is computed in any case


def test_a_conversation_goes_on_from_its_cache() -> None:
    async def main(server: Server) -> dict[str, Any]:
        ask = [{"role": "system", "content": words(40, "s")}, {"role": "user", "content": "go"}]
        said = await server.ask(messages=ask, **exactly(30))
        answer = json.loads(said.body)["choices"][0]["message"]
        more = [*ask, answer, {"role": "user", "content": "and then"}]
        return usage_of(await server.ask(messages=more, max_tokens=1))

    # 41 + 30 tokens, of which the last was never computed: four whole blocks of 16.
    assert run(LM, main)["prompt_tokens_details"] == {"cached_tokens": 64}


def test_another_role_is_another_prompt() -> None:
    roles = [{"messages": [{"role": r, "content": words(64)}]} for r in ("system", "user")]
    _, said = asked(LM, *roles, stream=False, max_tokens=1)
    assert usage_of(said)["prompt_tokens_details"] is None


@pytest.mark.parametrize(("place", "gap"), [(0, 0.02), (1, 0.05)])
def test_slow_instances(place: int, gap: float) -> None:
    (caller,) = asked(replace(LM, slow_instances={1: 2.5}), {}, place=place, **exactly(3))
    assert caller.gaps() == pytest.approx([gap, gap])


# ----------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("fault", "moments"),
    [
        ({"extra_first_token_seconds": 0.3}, (0.32, 0.34, 0.36)),  # the gaps are left alone
        ({"extra_gap_seconds": 0.1}, (0.02, 0.14, 0.26)),  # and an idle server's first token
    ],
)
def test_a_fault_delays_what_it_names(fault: dict[str, float], moments: tuple[float, ...]) -> None:
    async def main(server: Server) -> list[Caller]:
        calls = [await server.ask(**STREAM, **exactly(3))]
        server.model.change(replace(LM, **fault))
        return [*calls, await server.ask(**STREAM, **exactly(3))]

    before, after = run(LM, main)
    assert before.times() == pytest.approx([0.02, 0.04, 0.06])
    assert after.times() == pytest.approx([0.06 + each for each in moments])


def test_a_share_of_requests_fails_before_or_within_its_stream() -> None:
    settings = replace(LM, failure_share=0.4, mid_stream_share=0.25, seed=3)
    callers = asked(settings, *[{}] * 400, **exactly(8))
    before = [each for each in callers if each.status == 500]
    within = [each for each in callers if any("error" in event for _, event in each.events())]
    # 400 x 0.4 x 0.75 and 400 x 0.4 x 0.25, give or take four standard deviations.
    assert 84 <= len(before) <= 156
    assert 16 <= len(within) <= 64
    assert all(each.error()["code"] == 500 for each in before)
    for each in within:
        assert (each.status, len(each.tokens()), each.ended) == (200, 4, True)
        *_, (_, error), (_, done) = each.events()
        assert (error["error"]["type"], error["error"]["code"]) == ("InternalServerError", 500)
        assert done == "[DONE]"
    for each in callers:
        assert each in before or each in within or len(each.tokens()) == 8


def test_a_whole_answer_fails_before_it() -> None:
    failing = replace(LM, failure_share=1.0, mid_stream_share=1.0, failure_status=503)
    (caller,) = asked(failing, {}, stream=False)
    assert caller.status == 503


def test_who_hangs_up_frees_the_room_at_once() -> None:
    settings = replace(LM, kv_tokens=640)

    async def main(server: Server) -> list[float]:
        callers = [Caller() for _ in range(3)]
        calls = [
            asyncio.ensure_future(server.ask(words(150, str(n)), each, **STREAM, **exactly(50)))
            for n, each in enumerate(callers)
        ]
        usages = []
        for caller, call in zip(callers, calls, strict=True):
            await asyncio.sleep(0.051)
            usages.append(gauge(server, "vllm:kv_cache_usage_perc"))
            assert caller.lost is not None
            sent = len(caller.chunks)
            caller.lost()
            await call
            assert len(caller.chunks) == sent
        await asyncio.sleep(1)
        assert all(len(each.times()) < 50 for each in callers)
        usages.append(gauge(server, "vllm:kv_cache_usage_perc"))
        usages.append(gauge(server, "vllm:num_requests_running"))
        return usages

    three, two, one, *none = run(settings, main)
    # Of 640 tokens each has its prompt's 150 and the 50 that it wants.
    assert [three, two, one, *none] == pytest.approx([600 / 640, 400 / 640, 200 / 640, 0, 0])


def test_who_hangs_up_before_the_first_token_is_never_computed() -> None:
    settings = replace(LM, extra_first_token_seconds=5.0)

    async def main(server: Server) -> tuple[float, float, float]:
        caller = Caller()
        call = asyncio.ensure_future(server.ask("x", caller, **STREAM))
        await asyncio.sleep(1)
        waiting = gauge(server, "vllm:num_requests_waiting")
        assert caller.lost is not None
        caller.lost()
        await call
        await asyncio.sleep(10)
        busy = json.loads((await server.get("/utilization")).body)["GPUUtilization"]
        return waiting, gauge(server, "vllm:time_to_first_token_seconds_count"), busy

    assert run(settings, main) == (1, 0, 0)


# ------------------------------------------------------------------------------------------ forms


def test_a_streams_events_are_openais() -> None:
    more = {"model": "mine", "stream_options": {"include_usage": True}}
    (caller,) = asked(LM, {"content": "a b c"}, **more, **exactly(2))
    assert caller.headers["content-type"].startswith("text/event-stream")
    events = [event for _, event in caller.events()]
    assert events.pop() == "[DONE]"
    assert len({event["id"] for event in events}) == 1
    assert events[0]["id"].startswith("chatcmpl-")
    assert {(e["object"], e["model"]) for e in events} == {("chat.completion.chunk", "mine")}
    usage = events.pop()
    assert usage["choices"] == []
    counts = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    assert usage["usage"] == {**counts, "prompt_tokens_details": None}
    role, first, second, last = (event["choices"][0] for event in events)
    assert role["delta"] == {"role": "assistant", "content": ""}
    assert role["finish_reason"] is None
    assert first["delta"].keys() == {"content"}
    assert second["finish_reason"] is None
    assert (last["finish_reason"], last["delta"]["content"]) == ("length", "")


def test_a_whole_answer_is_what_a_stream_says() -> None:
    both = [{"stream": True}, {"stream": False}]
    stream, whole = asked(LM, *both, content="a b", path="/invocations", **exactly(40))
    document = json.loads(whole.body)
    assert (document["object"], document["id"][:9]) == ("chat.completion", "chatcmpl-")
    text = document["choices"][0]["message"]["content"]
    assert text == "".join(text for _, text in stream.tokens())
    assert len(text.split()) == 40


@pytest.mark.parametrize(
    ("given", "tokens", "reason"),
    [
        ({}, 20, "stop"),
        ({"max_tokens": 5}, 5, "length"),
        ({"max_completion_tokens": 5, "max_tokens": 9}, 5, "length"),
        ({"max_tokens": 30}, 20, "stop"),
        ({"max_tokens": 30, "ignore_eos": True}, 30, "length"),
        ({"max_tokens": 30, "min_tokens": 25}, 25, "stop"),
        ({"min_tokens": 25}, 25, "stop"),
        ({"ignore_eos": True}, 59, "length"),
    ],
)
def test_where_an_answer_ends(given: dict[str, Any], tokens: int, reason: str) -> None:
    settings = replace(LM, output_tokens=20, context_tokens=60)
    (caller,) = asked(settings, given, content="one", stream=False)
    document = json.loads(caller.body)
    assert document["usage"]["completion_tokens"] == tokens
    assert len(document["choices"][0]["message"]["content"].split()) == tokens
    assert document["choices"][0]["finish_reason"] == reason


def chat(content: str = "a", **more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": content}], **more}).encode()


@pytest.mark.parametrize(
    ("body", "words_of_it"),
    [
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        (b"{}", "at least one message"),
        (b'{"messages": []}', "at least one message"),
        (b'{"messages": ["hello"]}', "role"),
        (b'{"messages": [{"role": "user", "content": 3}]}', "a text or a list of parts"),
        (chat(max_tokens=0), "max_tokens must be at least 1, got 0"),
        (chat(max_tokens="9"), "whole number"),
        (chat(max_tokens=5, min_tokens=6), "min_tokens"),
        (chat("a b c", max_tokens=98), "maximum context length is 100 tokens"),
    ],
)
def test_what_cannot_be_asked_is_a_400_before_the_stream(body: bytes, words_of_it: str) -> None:
    async def main(server: Server) -> Caller:
        return await server.post("/invocations", body)

    caller = run(replace(LM, context_tokens=100), main)
    assert (caller.status, caller.error()["type"]) == (400, "BadRequestError")
    assert words_of_it in caller.error()["message"]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4))
def test_no_value_of_a_field_is_a_fault_of_ours(value: Any) -> None:
    async def main(server: Server) -> None:
        for name in ("messages", "max_tokens", "min_tokens", "stream_options"):
            caller = await server.post("/invocations", chat(**{"max_tokens": 1, name: value}))
            assert caller.status in (200, 400)

    run(LM, main)


SESSION = "x-amzn-sagemaker-session-id"
OPEN, CLOSE = (json.dumps({"requestType": kind}).encode() for kind in ("NEW_SESSION", "CLOSE"))


async def of_session(server: Server, body: bytes, session: str | None = None) -> Caller:
    headers = {} if session is None else {SESSION: session}
    return await server.post("/invocations", body, headers=headers)


def test_a_session_is_opened_kept_and_closed_at_invocations() -> None:
    """As aws/model-hosting-container-standards has it, in `sagemaker/sessions`."""

    async def main(server: Server) -> None:
        opened = await of_session(server, OPEN, "NEW_SESSION")
        told = opened.headers["x-amzn-sagemaker-new-session-id"]
        session = told.partition("; Expires=")[0]
        assert str(UUID(session)) == session
        left = datetime.strptime(told[-20:], "%Y-%m-%dT%H:%M:%S%z") - datetime.now(UTC)
        assert timedelta(minutes=19) < left <= timedelta(minutes=20)
        assert (opened.status, opened.body) == (200, f"Session {session} created".encode())
        assert (await of_session(server, chat(), session)).status == 200
        # A question opens none, and a session that nobody opened is refused.
        asked = await of_session(server, chat(), "NEW_SESSION")
        assert asked.status == 200
        assert "x-amzn-sagemaker-new-session-id" not in asked.headers
        for body, named, status in (
            (chat(), "nobodys", 400),
            (b'{"requestType": "NEW_SESSION", "more": 1}', "NEW_SESSION", 400),
            (b'{"requestType": "open"}', "NEW_SESSION", 400),
            (CLOSE, None, 424),
        ):
            assert (await of_session(server, body, named)).status == status
        closed = await of_session(server, CLOSE, session)
        assert closed.headers["x-amzn-sagemaker-closed-session-id"] == session
        for body in (chat(), CLOSE):
            late = await of_session(server, body, session)
            assert late.status == 400
            assert b"session not found" in late.body

    run(replace(LM, stateful_sessions=True), main)


def test_without_stateful_sessions_all_of_them_are_refused() -> None:
    async def main(server: Server) -> None:
        for body, session in ((OPEN, "NEW_SESSION"), (OPEN, None), (CLOSE, "s"), (chat(), "s")):
            refused = await of_session(server, body, session)
            assert refused.status == 400
            assert b"stateful sessions not enabled" in refused.body
        assert (await of_session(server, chat())).status == 200

    run(LM, main)


def test_a_session_ends_by_itself() -> None:
    clock = [1_000_000.0]
    sessions = Sessions(lambda: clock[0])

    def ask(body: bytes, session: str) -> Any:
        return sessions.answer(body, {SESSION: session}, enabled=True)

    session = ask(OPEN, "NEW_SESSION")[0][1].partition(";")[0]
    clock[0] += 1_200
    assert ask(chat(), session) is None
    clock[0] += 1
    # The request that finds it over is let through, the next one is not: manager.py's get_session.
    assert ask(chat(), session) is None
    with pytest.raises(Wrong, match="session not found"):
        ask(chat(), session)


# ---------------------------------------------------------------------------------------- metrics


def gauge(server: Server, name: str) -> float:
    (value,) = (each.value for each in samples_of(server.model.metrics()) if each.name == name)
    return value


def histogram(server: Server, name: str) -> dict[str, float]:
    samples = [each for each in samples_of(server.model.metrics()) if each.family == name]
    assert {each.type for each in samples} == {"histogram"}
    return {dict(s.labels).get("le", s.name.removeprefix(name)): s.value for s in samples}


def test_metrics_are_vllms() -> None:
    async def main(server: Server) -> None:
        for _ in range(2):
            await server.ask(words(100), **STREAM, **exactly(5))
        first = histogram(server, "vllm:time_to_first_token_seconds")
        # Both take 20 ms, which a bucket of 20 ms or the next one holds.
        assert (first["0.01"], first["0.04"], first["+Inf"]) == (0, 2, 2)
        assert first["_sum"] == pytest.approx(0.04)
        between = histogram(server, "vllm:inter_token_latency_seconds")
        assert (between["0.01"], between["0.025"], between["_count"]) == (0, 8, 8)
        samples = [*samples_of(server.model.metrics())]
        lines = server.model.metrics().splitlines()
        assert len(samples) == len([line for line in lines if line[0] != "#"])
        assert {dict(each.labels)["model_name"] for each in samples} == {"language-model"}

    run(LM, main)


def test_gauges_while_some_run_and_some_wait() -> None:
    settings = replace(LM, max_sequences=2, kv_tokens=500)

    async def main(server: Server) -> list[float]:
        asked = [server.ask(words(20, str(n)), **exactly(30)) for n in range(5)]
        calls = [asyncio.ensure_future(each) for each in asked]
        await asyncio.sleep(0.05)
        names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
        found = [gauge(server, f"vllm:{name}") for name in names]
        for call in calls:
            call.cancel()
        return found

    assert run(settings, main) == pytest.approx([2, 3, 0.2])


def test_utilisation_is_the_time_with_requests() -> None:
    async def main(server: Server) -> list[dict[str, float]]:
        await server.ask(**exactly(50))  # one second
        await asyncio.sleep(1)
        told = [json.loads((await server.get("/utilization")).body)]
        await asyncio.sleep(1)
        return [*told, json.loads((await server.get("/utilization")).body)]

    busy, idle = run(LM, main)
    assert busy["GPUUtilization"] == pytest.approx(50)
    assert idle["GPUUtilization"] == 0
    assert 0 < idle["CPUUtilization"] < busy["CPUUtilization"] <= 100


def test_a_cold_start() -> None:
    async def main(server: Server) -> list[int]:
        found = []
        for _ in range(3):
            found.append((await server.get("/ping")).status)
            await asyncio.sleep(4)
        return [*found, (await server.get("/nothing")).status]

    assert run(replace(LM, cold_start=5), main) == [503, 503, 200, 404]


# ----------------------------------------------------------------------------------- the page

PAGE = (Path(__file__).parents[1] / "docs" / "language-models.md").read_text("utf-8")


def test_the_page_names_every_field_but_those_of_every_server() -> None:
    common = {"in_process", "seed", "cold_start"}
    for each in fields(LanguageModelServer):
        assert re.search(rf"\b{each.name}\b", PAGE) or each.name in common, each.name


def test_the_page_names_the_metrics_that_there_are() -> None:
    async def main(server: Server) -> set[str]:
        lines = server.model.metrics().splitlines()
        return {line.split()[2] for line in lines if line.startswith("# TYPE")}

    assert set(re.findall(r"`(vllm:\w+)`", PAGE)) == run(LM, main)
