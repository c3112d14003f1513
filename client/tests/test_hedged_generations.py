"""Two generations in a race: only on request, the loser hung up on, all of it counted."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from low_latency_client import ConfigurationError
from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_client.generations import GenerationFailedError, GenerationTimeoutError
from low_latency_client.hedging import (
    Claim,
    Hedging,
    HedgingState,
    RaceLost,
    TaskRace,
    ThreadRace,
    raced,
)
from low_latency_client.timing import ClientCounts

from .callers import Caller, options, run_core
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
from .test_generations import KINDS, SHORT, Call, asked, call

__all__ = ["KINDS", "call"]  # of its fixtures

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


@pytest.mark.parametrize("more", [{"SessionId": "s1"}, {"Idempotent": False}])
def test_what_must_not_run_twice_is_not_hedged(call: Call, more: dict[str, Any]) -> None:
    with ModelStreamServer(whole("a")) as server:
        seen = call(server, client=SOON, hedge_generations=True, **more)
    assert isinstance(seen.error, ConfigurationError)
    assert seen.error.code == "LLC116"
    assert server.requests == []


@pytest.mark.parametrize(("more", "requests"), [({}, 1), ({"Idempotent": True}, 2)])
@pytest.mark.parametrize("kind", ["threads", "asyncio"])
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

    def doubt(self) -> None:
        """Says nothing of a peer."""

    def interrupt(self) -> None:
        self.ends += 1

    abort = interrupt


def test_a_racer_that_has_given_its_connection_back_ends_no_other_call() -> None:
    mine, others = Connection(), Connection()
    claim = Claim(Future())
    claim.watch(others)
    claim.watch(None)
    claim.watch(mine)
    claim.cancel()
    assert (mine.ends, others.ends) == (1, 0)
    late = Connection()
    with pytest.raises(RaceLost):
        claim.watch(late)
    assert late.ends == 1


class Begun:
    """In place of a generation."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


@pytest.mark.parametrize(
    ("kind", "waits", "winner"), [("threads", [True, False], 1), ("asyncio", [True, True], 0)]
)
def test_a_loser_whose_first_token_came_as_well_is_closed(
    kind: str, waits: list[bool], winner: int
) -> None:
    """In threads long after the winner's, in tasks in the same turn of the event loop."""
    counts, made, over = ClientCounts(), list[Begun](), threading.Event()
    state = HedgingState(SOON["hedging"], timedelta(seconds=1), counts)

    async def inside() -> Any:
        both = asyncio.Event() if kind == "asyncio" else None

        async def begin(claim: Claim) -> Any:
            claim.watch(Connection())
            made.append(mine := Begun())
            if both is not None:
                if len(made) == 2:
                    both.set()
                await both.wait()
            elif waits[len(made) - 1]:
                over.wait(20)
            return mine

        race = TaskRace() if kind == "asyncio" else ThreadRace()
        return await raced(begin, state, race, lambda: False, counts)

    assert run_core(kind, inside) is made[winner]
    over.set()
    assert made[1 - winner].closed.wait(20)
    assert not made[winner].closed.is_set()
    assert (counts.hedges_won, counts.generations_cancelled) == (winner, 1)


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
