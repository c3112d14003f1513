"""Two generations in a race: only on request, the loser hung up on, all of it counted."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ConnectionClosedError

from low_latency_endpoint.client.async_runtime_client import AsyncRuntimeClient
from low_latency_endpoint.client.client_timing import ClientCounts
from low_latency_endpoint.client.generation_streams import raced_in_tasks, raced_in_threads
from low_latency_endpoint.client.generations import GenerationFailedError, GenerationTimeoutError
from low_latency_endpoint.client.hedging import Claim, Hedging, HedgingState, RaceLost, Watch
from low_latency_endpoint.errors import ConfigurationError

from .callers import Caller, options
from .model_stream_server import (
    BOTH,
    CUT,
    HANG,
    ROLE,
    SEEN,
    ModelStreamServer,
    event,
    part,
    sse,
    whole,
    word,
)
from .test_generations import SHORT, Call, asked, call, kind

__all__ = ["call", "kind"]  # the fixtures

# So late that the first has reached the server on a busy machine, too.
SOON: dict[str, Any] = {"hedging": Hedging(delay=timedelta(milliseconds=150), budget=0.5)}
LATE: dict[str, Any] = {"hedging": Hedging(delay=timedelta(seconds=15), budget=0.5)}
BODY = b'{"messages": [{"role": "user", "content": "Tell me"}]}'


def counted(seen: Any) -> tuple[int, int, int]:
    counts = seen.counts
    return counts.hedges, counts.hedges_won, counts.generations_cancelled


@pytest.mark.parametrize(
    ("scripts", "more", "hang_ups", "texts", "counts"),
    [
        pytest.param([[HANG], whole("a", "b")], {}, 1, "ab", (1, 1, 1), id="second wins"),
        pytest.param(
            [[part(sse(ROLE)), HANG], whole("a", "b")], {}, 1, "ab", (1, 1, 1), id="after a role"
        ),
        pytest.param([[BOTH, *whole("a")], [HANG]], {}, 1, "a", (1, 0, 1), id="first wins"),
        pytest.param([[BOTH, 0.3, *whole("a")], 503], {}, 0, "a", (1, 0, 0), id="second fails"),
        pytest.param(
            [[0.4, *whole("a")]], {"hedge_generations": False}, 0, "a", (0, 0, 0), id="unasked"
        ),
        pytest.param([whole("a")], {"client": LATE}, 0, "a", (0, 0, 0), id="fast"),
    ],
)
def test_who_answers_and_who_is_hung_up_on(
    call: Call,
    scripts: list[Any],
    more: dict[str, Any],
    hang_ups: int,
    texts: str,
    counts: tuple[int, int, int],
) -> None:
    with ModelStreamServer(*scripts) as server:
        seen = call(server, **{"client": SOON, "hedge_generations": True, **more})
        server.wait_for_hang_ups(hang_ups)
    assert (seen.texts, seen.error) == (list(texts), None)
    assert len(server.requests) == 1 + counts[0]
    assert counted(seen) == counts


def test_the_loser_is_hung_up_on_at_the_first_token(call: Call) -> None:
    """Not at the winner's end, which comes only once the server has seen the hang-up, nor at a
    limit: the loser's is later than the winner's.
    """
    first = [part(sse(ROLE)), HANG]
    limits = {"first_token_timeout": timedelta(minutes=5), "total_timeout": timedelta(minutes=5)}
    with ModelStreamServer(first, [part(sse(word("a"))), SEEN, *whole("b")]) as server:
        seen = call(server, client=SOON, hedge_generations=True, **limits)
    assert (seen.texts, seen.error) == (["a", "b"], None)
    assert len(server.hung_up) == 1


def test_whoever_wins_there_is_one_result_and_no_connection_is_left(call: Call) -> None:
    script = [BOTH, part(sse(word("a"))), HANG]
    with ModelStreamServer(script) as server:
        seen = call(server, client=SOON, hedge_generations=True, leave_after=1)
        server.wait_for_hang_ups(2)
    assert (seen.texts, seen.error) == (["a"], None)
    assert seen.counts.generations_cancelled == 1


def test_when_both_fail_the_first_ones_error_is_told(call: Call) -> None:
    failing = event("exception", "ModelStreamError", b'{"Message": "first"}')
    with ModelStreamServer([BOTH, failing], [CUT]) as server:
        seen = call(server, client=SOON, hedge_generations=True)
    assert isinstance(seen.error, GenerationFailedError)
    assert counted(seen) == (1, 0, 0)


def test_a_first_token_that_neither_has_is_a_timeout(call: Call) -> None:
    with ModelStreamServer([HANG]) as server:
        seen = call(server, client=SOON, hedge_generations=True, first_token_timeout=SHORT)
        server.wait_for_hang_ups(len(server.requests))
    assert isinstance(seen.error, GenerationTimeoutError)
    assert (seen.error.limit, seen.error.tokens) == ("first_token_timeout", 0)


def test_a_session_is_not_hedged(call: Call) -> None:
    with ModelStreamServer(whole("a")) as server:
        seen = call(server, client=SOON, hedge_generations=True, SessionId="s1")
    assert isinstance(seen.error, ConfigurationError)
    assert seen.error.code == "LLC116"
    assert server.requests == []


@pytest.mark.parametrize(("more", "requests"), [({}, 1), ({"Idempotent": True}, 2)])
@pytest.mark.parametrize("kind", ["boto3", "threads", "asyncio"])
def test_whole_answers_of_language_models_are_not_hedged_either(
    kind: str, more: dict[str, Any], requests: int
) -> None:
    with ModelStreamServer([0.4, b"{}"]) as server, Caller(kind, url=server.url, **SOON) as caller:
        caller.call("invoke_endpoint", EndpointName="chat", Body=BODY, **more)
        assert len(server.requests) == requests


def test_whole_answers_of_language_models_are_not_asked_for_again() -> None:
    with ModelStreamServer([CUT]) as server, Caller("threads", url=server.url) as caller:
        for name, body, requests in (("chat", BODY, 1), ("sentiment", b'{"inputs": "fine"}', 3)):
            with pytest.raises(ConnectionClosedError):
                caller.ask(EndpointName=name, Body=body)
            assert len(server.requests) == requests


def test_a_cancelled_caller_hangs_up_on_both() -> None:
    async def inside(server: ModelStreamServer) -> None:
        async with AsyncRuntimeClient(**options(url=server.url, **SOON)) as client:
            task = asyncio.ensure_future(client.stream(**asked({"hedge_generations": True})))
            while len(server.requests) < 2:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_for_hang_ups, 2)

    with ModelStreamServer([HANG]) as server:
        asyncio.run(inside(server))


class Connection:
    ends = 0

    def interrupt(self) -> None:
        self.ends += 1

    abort = interrupt


def test_a_racer_that_has_given_its_connection_back_ends_no_other_call() -> None:
    mine, others = Connection(), Connection()
    claim = Claim(Future())
    claim.watch(others)  # type: ignore[arg-type]
    claim.watch(None)
    claim.watch(mine)  # type: ignore[arg-type]
    claim.cancel()
    assert (mine.ends, others.ends) == (1, 0)
    late = Connection()
    with pytest.raises(RaceLost):
        claim.watch(late)  # type: ignore[arg-type]
    assert late.ends == 1


class Begun:
    """In place of a generation."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


def racing() -> tuple[HedgingState, ClientCounts]:
    counts = ClientCounts()
    return HedgingState(SOON["hedging"], timedelta(seconds=1), counts), counts


def test_a_loser_whose_first_token_came_as_well_is_closed() -> None:
    state, counts = racing()
    made: list[Begun] = []
    done = threading.Event()

    def begin(claim: Claim) -> Any:
        claim.watch(cast(Any, Connection()))
        made.append(mine := Begun())
        if len(made) == 1:
            done.wait(20)
        return mine

    with ThreadPoolExecutor(2) as threads:
        won = raced_in_threads(begin, state, threads, counts)
        done.set()
    assert won is made[1]  # type: ignore[comparison-overlap]
    assert made[0].closed.wait(20)
    assert not made[1].closed.is_set()
    assert (counts.hedges_won, counts.generations_cancelled) == (1, 1)


def test_of_two_first_tokens_at_once_one_is_closed() -> None:
    state, counts = racing()
    made: list[Begun] = []

    async def inside() -> None:
        both = asyncio.Event()

        async def begin(sent: Watch) -> Any:
            sent(True)
            made.append(mine := Begun())
            if len(made) == 2:
                both.set()
            await both.wait()
            return mine

        assert await raced_in_tasks(begin, state, counts, lambda: False) is made[0]  # type: ignore[comparison-overlap]

    asyncio.run(inside())
    assert [one.closed.is_set() for one in made] == [False, True]
    assert (counts.hedges_won, counts.generations_cancelled) == (0, 1)


def test_the_percentile_is_of_first_tokens_not_of_whole_calls() -> None:
    """A hundred calls that take no time would make each generation seem late."""
    client = {
        "hedging": Hedging(percentile=50, budget=0.5),
        "latency_target": timedelta(seconds=15),
    }

    with (
        ModelStreamServer([b"{}"]) as server,
        Caller("threads", url=server.url, **client) as caller,
    ):
        for _ in range(100):
            caller.invoke("e")
        server.scripts = [[0.3, *whole("a")]]
        with caller.call("stream", **asked({"hedge_generations": True})) as generation:
            assert [one.text for one in generation] == ["a"]
        assert caller.client.counts.hedges == 0
