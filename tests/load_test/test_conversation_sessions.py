"""Sessions of a load test: each conversation's own, opened ahead, closed when it has ended."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gevent
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from typer.testing import CliRunner

import low_latency_client
from low_latency_endpoint.cli import app
from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.conversation_sessions import ConversationSessions
from low_latency_endpoint.load_test.engine.generator_process import GeneratorProcess
from low_latency_endpoint.load_test.engine.measurement import Invocation
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.prompts import Prompts
from low_latency_endpoint.load_test.engine.steps import Step
from low_latency_endpoint.load_test.engine.target import Target
from tests.refusals import refused

TURNS, AT_ONCE = 3, 4
PROMPTS = Prompts.of(f"input=9,output=2,turns={TURNS},conversations={AT_ONCE}", sessions=True)
STEP = Step("s", 10, ConstantArrivals(1))
REFUSED = ClientError(
    {"Error": {"Code": "ModelError"}, "ResponseMetadata": {"HTTPStatusCode": 424}}, "InvokeEndpoint"
)


class Container:
    """Stands for the client, and for the endpoint behind it."""

    def __init__(self, *_: Any, **options: Any) -> None:
        self.options = options
        self.open: set[str] = set()
        self.asked: list[dict[str, Any]] = []
        self.opened = 0
        self.fails: Exception | None = None
        self.takes = 0.0

    def open_session(self, **parameters: Any) -> str:
        self.asked.append(parameters)
        gevent.sleep(self.takes)
        if self.fails is not None:
            raise self.fails
        self.opened += 1
        self.open.add(name := f"session-{self.opened}")
        return name

    def close_session(self, session: str, **parameters: Any) -> None:
        self.asked.append(parameters)
        gevent.sleep(self.takes)
        self.open.remove(session)


class Sent:
    """What reached the endpoint."""

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, dict[str, Any]]] = []

    def __call__(self, body: bytes, parameters: dict[str, Any]) -> Invocation:
        self.requests.append((body, parameters))
        return Invocation(200, 0, None, 0.0, 0.0, None, b"", "", "")


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Container:
    made = Container()
    monkeypatch.setattr(low_latency_client, "RuntimeClient", lambda *_, **options: made)
    return made


def others_run() -> None:
    """Let every other greenlet come to where it waits."""
    for _ in range(20):
        gevent.sleep(0)


def of(sent: Sent, prompts: Prompts = PROMPTS, **target: Any) -> ConversationSessions:
    session: Any = None
    return ConversationSessions(
        Target("chat", "us-east-1", **target), Payloads.of_prompts(prompts), sent, session
    )


def test_each_conversation_has_a_session_of_its_own(container: Container) -> None:
    sent, numbers = Sent(), range(40)
    sessions = of(sent)
    for number in numbers:
        assert sessions.invoke(number).error is None
    assert [body for body, _ in sent.requests] == [PROMPTS.body(number) for number in numbers]
    told = [parameters["SessionId"] for _, parameters in sent.requests]
    pairs = {
        (PROMPTS.turn(number)[0], session) for number, session in zip(numbers, told, strict=True)
    }
    conversations, names = zip(*pairs, strict=True)
    assert max(Counter(conversations).values()) == max(Counter(names).values()) == 1


def test_sessions_are_there_before_they_are_needed(container: Container) -> None:
    """Those of the step's first conversations, and the next one where another has ended."""
    sent = Sent()
    sessions = of(sent)
    sessions.begin(STEP, 0, 1)
    others_run()
    assert container.opened == AT_ONCE
    ended = 0
    for number in range(40):
        before = container.opened
        sessions.invoke(number)
        assert container.opened == before  # none was opened while its turn waited
        ended += PROMPTS.turn(number)[1] == TURNS - 1
        others_run()
        assert container.opened == AT_ONCE + ended
        assert len(container.open) == AT_ONCE


def test_each_process_opens_those_of_its_own_conversations(container: Container) -> None:
    of(Sent()).begin(STEP, 1, 2)
    others_run()
    assert container.opened == AT_ONCE / 2


@pytest.mark.parametrize("takes", [0.0, 0.01])
def test_none_is_left_open_when_the_step_has_ended(container: Container, takes: float) -> None:
    container.takes = takes
    sessions = of(Sent(), Prompts.of("input=9,output=2,turns=3,conversations=100", sessions=True))
    sessions.begin(STEP, 0, 1)
    for number in range(30):
        sessions.invoke(number)
    sessions.end()
    assert container.opened >= 30
    assert container.open == set()


def test_they_are_asked_of_the_part_of_the_endpoint_that_is_loaded(container: Container) -> None:
    sessions = of(Sent(), target_variant="blue", inference_component="chat-1")
    for number in range(3 * AT_ONCE):
        sessions.invoke(number)
    sessions.end()
    assert len(container.asked) > container.opened
    assert all(
        each
        == {"EndpointName": "chat", "TargetVariant": "blue", "InferenceComponentName": "chat-1"}
        for each in container.asked
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (REFUSED, "session 424 ModelError"),
        (ConnectTimeoutError(endpoint_url="https://x"), "session ConnectTimeoutError"),
    ],
)
def test_a_turn_without_its_session_is_not_sent_and_said(
    container: Container, error: Exception, kind: str
) -> None:
    sent = Sent()
    sessions = of(sent)
    container.fails = error
    failed = sessions.invoke(0)
    assert (failed.error, failed.message) == (kind, str(error))
    assert sent.requests == []
    container.fails = None
    assert sessions.invoke(AT_ONCE).error is None  # the next turn of the conversation


def test_the_hint_for_the_router_goes_out_beside_the_session(container: Container) -> None:
    sent = Sent()
    prompts = Prompts.of(
        "input=9,output=2,turns=3,conversations=4", sessions=True, tell_prefix=True
    )
    of(sent, prompts).invoke(5)
    ((_, parameters),) = sent.requests
    assert parameters == {**(prompts.parameters(5) or {}), "SessionId": "session-1"}


# ------------------------------------------------------------------------------ what does not fit


def test_sessions_without_turns_are_refused() -> None:
    with refused("LLT169"):
        Prompts.of("input=9,output=2", sessions=True)


def test_processes_do_not_share_a_session() -> None:
    with refused("LLT169", says="4 conversations for 3 processes"):
        GeneratorProcess(Target("chat", "us-east-1"), Payloads.of_prompts(PROMPTS), 3)
    PROMPTS.check_processes(2)
    Prompts.of("input=9,output=2,turns=3,conversations=4").check_processes(3)


def test_the_command_wants_turns_for_sessions(tmp_path: Path) -> None:
    options = ("--tps", "1", "--sessions", "--payload", "{}", "--region", "us-east-1")
    done = CliRunner().invoke(app, ["load-test", "chat", *options])
    assert done.exit_code == 2
    assert "--sessions are of conversations" in " ".join((done.output + done.stderr).split())
