"""The invoker against a runtime on loopback: answers, errors by name, streams, connections."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import gevent
import pytest
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import ParamValidationError

from client.tests.loopback_runtime import LoopbackRuntime
from low_latency_endpoint.load_test.engine import invoking
from low_latency_endpoint.load_test.engine.connections import GeneratorConnection
from low_latency_endpoint.load_test.engine.invoking import SageMakerInvoker
from low_latency_endpoint.load_test.engine.measurement import (
    MOST_KINDS,
    Invocation,
    Measurement,
    brief,
)
from low_latency_endpoint.load_test.engine.target import Target
from tests.refusals import refused

from .servers import Scripted

SESSION = boto3.Session("AKIDEXAMPLE", "secret", "token", "us-east-1")
REGION = "us-east-1"
Make = Callable[..., SageMakerInvoker]


@pytest.fixture
def server(tls: Path | None) -> Iterator[LoopbackRuntime]:
    with LoopbackRuntime(tls) as made:
        yield made


@pytest.fixture
def make(server: LoopbackRuntime, folder: Path) -> Iterator[Make]:
    """Makes invokers of the server's endpoints, by name."""
    made = []

    def invoker(
        name: str, *urls: str, session: boto3.Session = SESSION, **more: Any
    ) -> SageMakerInvoker:
        target = Target(name, REGION, urls or (server.url,), **more)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_CA_BUNDLE", str(folder / "ca.pem"))
            made.append(SageMakerInvoker(target, session=session))
        return made[-1]

    yield invoker
    for one in made:
        one.close()


def invoker_of(url: str, *others: str, **more: Any) -> SageMakerInvoker:
    """An invoker without the test's own authority."""
    return SageMakerInvoker(Target("plain", REGION, (url, *others), **more), session=SESSION)


def free_url() -> str:
    """A URL that refuses connections."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_an_answer_with_its_times(make: Make, server: LoopbackRuntime) -> None:
    before = time.perf_counter()
    answer = make("slow-50").invoke(b"{}")

    assert (answer.status, answer.error, answer.length) == (200, None, len(answer.body))
    assert answer.body.startswith(b'{"label": "POSITIVE"')
    assert before <= answer.started
    assert 0.045 <= answer.ended - answer.started <= time.perf_counter() - before
    assert answer.first_byte is None
    assert answer.url == server.url


def test_one_connection_per_request_under_way_and_kept(make: Make, server: LoopbackRuntime) -> None:
    invoker = make("slow-50")
    for _ in range(3):
        jobs = [gevent.spawn(invoker.invoke, b"{}") for _ in range(8)]
        gevent.joinall(jobs, raise_error=True)
        assert [job.value.error for job in jobs] == [None] * 8
    assert invoker.connections == server.runtime.connections == 8


def test_waiting_greenlets_do_not_stop_each_other(make: Make) -> None:
    """Handshakes and answers of 40 requests overlap: together hardly longer than one."""
    invoker = make("slow-200")
    started = time.perf_counter()
    jobs = [gevent.spawn(invoker.invoke, b"{}") for _ in range(40)]
    gevent.joinall(jobs)
    assert [job.value.error for job in jobs] == [None] * 40
    assert time.perf_counter() - started < 40 * 0.2 / 3


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("status-400", "400 ValidationError", "asked for 400"),
        ("status-424", "424 ModelError 500", "out of memory"),
        ("status-429", "429 ModelNotReadyException", "asked for 429"),
        ("status-500", "500 InternalFailure", "asked for 500"),
        ("status-503", "503 ServiceUnavailable", "asked for 503"),
    ],
)
def test_errors_are_named_by_the_code_of_the_service(
    make: Make, name: str, error: str, message: str
) -> None:
    invoker = make(name)
    for _ in range(2):
        answer = invoker.invoke(b"{}")
        assert (answer.status, answer.error, answer.message) == (int(error[:3]), error, message)
    assert invoker.connections == 1  # an error is an answer: its connection is kept


def test_a_connection_that_the_server_closes_is_replaced(make: Make) -> None:
    invoker = make("close")
    assert [invoker.invoke(b"{}").error for _ in range(3)] == [None] * 3
    assert invoker.connections == 3


def test_a_request_without_an_answer_is_an_error_and_sent_once(
    make: Make, server: LoopbackRuntime
) -> None:
    answer = make("drop").invoke(b"{}")
    assert (answer.status, answer.error) == (0, "connection closed")
    assert server.runtime.requests["drop"] == 1


def test_a_connection_that_has_ended_is_not_used(make: Make, server: LoopbackRuntime) -> None:
    invoker = make("slow-1")
    assert invoker.invoke(b"{}").error is None
    server.stop()
    server.start()
    assert invoker.invoke(b"{}").error is None
    assert server.runtime.requests["slow-1"] == invoker.connections == 2
    assert invoker.reconnects == 0


@pytest.mark.parametrize(
    ("ends", "stale", "error"),
    [
        # The end overtakes the request: a look at the connection before could not have seen it.
        ("before", 60.0, None),
        # As load balancers do after a pause, the first bytes get a reset; at work that is an error.
        ("unread", 0.0, None),
        ("unread", 60.0, "connection closed"),
        # A model that dies of a request dies once, and the load test says so.
        ("read", 60.0, "connection closed"),
    ],
)
def test_a_kept_connection_that_ends_as_it_is_used(
    monkeypatch: pytest.MonkeyPatch, ends: str, stale: float, error: str | None
) -> None:
    monkeypatch.setattr(invoking, "STALE_SECONDS", stale)
    monkeypatch.setattr(GeneratorConnection, "ended", lambda self: False)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            kept, _ = listener.accept()
            kept.recv(65536)
            kept.sendall(answer)
            if ends != "before":
                select.select([kept], [], [], 10)
            if ends == "read":
                kept.recv(65536)
            kept.close()  # with bytes that nobody has read, which makes it a reset
            ended.set()
            if error is not None:
                return  # nothing is sent again
            another, _ = listener.accept()
            another.recv(65536)
            another.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        invoker = invoker_of(f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert invoker.invoke(b"{}").error is None
        assert ends != "before" or ended.wait(5)
        assert invoker.invoke(b"{}").error == error
    assert invoker.reconnects == (error is None)


def test_a_timeout_ends_the_request_and_its_connection(make: Make) -> None:
    invoker = make("slow-2000", timeout_seconds=0.2)
    answer = invoker.invoke(b"{}")
    assert (answer.status, answer.error) == (0, "timeout")
    assert answer.ended - answer.started >= 0.19
    assert invoker.invoke(b"{}").error == "timeout"
    assert invoker.connections == 2


def test_a_caller_that_is_killed_takes_its_connection_along(make: Make) -> None:
    """Locust kills users at a test's end; half an answer must not meet the next request."""
    invoker = make("slow-500")
    caller = gevent.spawn(invoker.invoke, b"{}")
    gevent.sleep(0.2)
    caller.kill()
    assert not any(one.idle for one in invoker._destinations)
    assert invoker.invoke(b"{}").error is None
    assert invoker.connections == 2


def test_a_stream_is_put_together_and_timed(make: Make) -> None:
    invoker = make("stream-3", streaming=True)
    for _ in range(2):
        answer = invoker.invoke(b"{}")
        assert (answer.error, answer.body, answer.length) == (None, b"part 0;part 1;part 2;", 21)
        assert answer.first_byte is not None
        assert answer.started < answer.first_byte <= answer.ended
    assert invoker.connections == 1


def test_an_error_in_a_stream_is_an_error(make: Make) -> None:
    answer = make("broken-stream-2", streaming=True).invoke(b"{}")
    assert (answer.status, answer.error) == (200, "stream ModelStreamError")
    assert answer.message == "the model stopped"


def test_a_stream_that_stops_halfway_has_its_first_byte(make: Make) -> None:
    answer = make("half-stream-1", streaming=True, timeout_seconds=0.5).invoke(b"{}")
    assert (answer.error, answer.unanswered) == ("timeout", True)
    assert answer.first_byte is not None
    assert answer.started < answer.first_byte < answer.ended - 0.2

    killed: list[float] = []

    def call() -> None:
        try:
            make("half-stream-1", streaming=True).invoke(b"{}")
        except gevent.GreenletExit as stop:
            killed.append(stop.args[0])
            raise

    caller = gevent.spawn(call)
    gevent.sleep(0.5)
    caller.kill()
    assert len(killed) == 1
    assert time.perf_counter() - 5 < killed[0] < time.perf_counter()


@pytest.mark.parametrize(
    ("status", "kind", "message", "unanswered"),
    [
        (200, None, "", False),
        (200, "check failed", "it timed out, said the model", False),
        (0, "timeout", "", True),
        (0, "connection timeout", "", True),
        (0, "connection refused", "", False),
        (0, "connection closed", "", False),
        (503, "503 ServiceUnavailable", "", False),
        (504, "504 Gateway Timeout", "", True),
        (424, "424 ModelError", "out of memory", False),
        (
            424,
            "424 ModelError",
            "Your invocation timed out while waiting for a response from container "
            "primary. Review the latency metrics for each container in Amazon "
            "CloudWatch, resolve the issue, and try again.",
            True,
        ),
    ],
)
def test_who_waited_in_vain(status: int, kind: str | None, message: str, unanswered: bool) -> None:
    assert Invocation(status, 0, kind, 0, 1, None, b"", message, "").unanswered is unanswered


def test_an_error_instead_of_a_stream(make: Make) -> None:
    answer = make("status-424", streaming=True).invoke(b"{}")
    assert (answer.error, answer.first_byte) == ("424 ModelError 500", None)


def from_script(*pieces: bytes, **more: Any) -> Invocation:
    with Scripted(pieces) as server:
        return invoker_of(server.url, timeout_seconds=5, **more).invoke(b"{}")


def test_answers_may_come_in_pieces_of_any_size() -> None:
    whole = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-Empty:\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    )
    for cut in range(0, len(whole), 7):
        answer = from_script(*filter(None, (whole[:cut], whole[cut:])))
        assert (answer.status, answer.error, answer.body) == (200, None, b"abcdefg"), cut


def test_nothing_is_left_of_the_answer_before() -> None:
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    bad = b"HTTP/1.1 503 X\r\nX-Amzn-ErrorType: Busy\r\nContent-Length: 2\r\n\r\n{}"
    with Scripted((good,), (bad[:3], bad[3:]), (good[:3], good[3:]), (good[:20],)) as server:
        invoker = invoker_of(server.url)
        answers = [invoker.invoke(b"{}") for _ in range(4)]
    assert [answer.error for answer in answers] == [None, "503 Busy", None, "connection closed"]
    assert [answer.body for answer in answers] == [b"ok", b"{}", b"ok", b""]


def test_an_error_in_pieces_keeps_its_name() -> None:
    answer = from_script(
        b"HTTP/1.1 429 X\r\nX-Amzn-Err",
        b"orType: Throttling",
        b"Exception:http\r\nContent-Length: 17\r\n\r\n",
        b'{"Message":',
        b' "no"}',
    )
    assert (answer.error, answer.message) == ("429 ThrottlingException", "no")


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",), "connection closed"),
        (
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",),
            "connection closed",
        ),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), "connection malformed answer"),
        ((b"HTTP/1.1 502 Bad\r\nContent-Length: 6\r\n\r\n<html>",), "502 Bad Gateway"),
    ],
)
def test_answers_that_are_none(pieces: tuple[bytes, ...], error: str) -> None:
    assert from_script(*pieces).error == error


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    answer = from_script(b"HTTP/1.1 200 OK\r\n\r\nabc", b"def")
    assert (answer.error, answer.body) == (None, b"abcdef")


def test_a_stream_of_other_bytes_is_an_error() -> None:
    answer = from_script(
        b"HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n" + b"{" * 32, streaming=True
    )
    assert answer.error == "stream malformed"


def test_the_response_check(make: Make) -> None:
    assert make("plain", expected='"score": 0\\.9').invoke(b"{}").error is None
    wrong = make("plain", expected="NEGATIVE").invoke(b"{}")
    assert (wrong.status, wrong.error) == (200, "check failed")
    assert "NEGATIVE" in wrong.message
    assert make("status-503", expected="x").invoke(b"{}").error == "503 ServiceUnavailable"


def test_urls_are_taken_in_turn(make: Make, server: LoopbackRuntime) -> None:
    with LoopbackRuntime() as other:
        invoker = make("plain", server.url, other.url)
        urls = {invoker.invoke(b"{}").url for _ in range(2)}
        for _ in range(8):
            invoker.invoke(b"{}")
    assert urls == {server.url, other.url}
    assert server.runtime.requests["plain"] == other.runtime.requests["plain"] == 5
    assert invoker.connections == 2


def test_a_url_that_refuses_is_left_alone_for_a_while(make: Make, server: LoopbackRuntime) -> None:
    invoker = make("plain", free_url(), server.url)
    answers = [invoker.invoke(b"{}") for _ in range(6)]
    assert [answer.error for answer in answers] == [None] * 6
    assert invoker.failovers == 1
    for one in invoker._destinations:
        one.closed_until = 0.0  # the while is over
    for _ in range(2):
        assert invoker.invoke(b"{}").error is None
    assert invoker.failovers == 2


def test_connections_that_cannot_be_are_named(folder: Path) -> None:
    with LoopbackRuntime(folder) as server:  # whose certificate none of boto3's authorities signed
        for urls, kind in (
            ((free_url(), free_url()), "refused"),
            (("https://no-such-name.invalid",), "name unknown"),
            ((server.url,), "not trusted"),
        ):
            answer = invoker_of(*urls).invoke(b"{}")
            assert (answer.status, answer.error) == (0, f"connection {kind}")


def test_parameters_and_overrides_are_headers(make: Make, server: LoopbackRuntime) -> None:
    invoker = make(
        "echo",
        accept="application/json",
        target_variant="primary",
        target_model="m.tar.gz",
        inference_component="small",
    )
    for overrides, component in ((None, "small"), ({"InferenceComponentName": "large"}, "large")):
        assert invoker.invoke(b"{}", {"TargetModel": None, **(overrides or {})}).error is None
        sent = server.runtime.last_headers
        assert sent["Accept"] == "application/json"
        assert sent["X-Amzn-SageMaker-Target-Variant"] == "primary"
        assert sent["X-Amzn-SageMaker-Inference-Component"] == component
        assert "X-Amzn-SageMaker-Target-Model" not in sent
    with pytest.raises(ParamValidationError):
        invoker.invoke(b"{}", {"Sesion": "typing error"})


def test_an_idle_connection_keeps_no_answer(make: Make) -> None:
    """Ten thousand of them would keep as many answers."""
    invoker = make("slow-50")
    assert invoker.invoke(b"{}").body
    (destination,) = invoker._destinations
    (connection,) = destination.idle
    assert connection._parser.parts == []


def test_large_bodies_go_out_whole(make: Make, server: LoopbackRuntime) -> None:
    assert make("plain").invoke(b"x" * 5_000_000).error is None
    assert server.runtime.requests["plain"] == 1


def test_credentials_that_cannot_be_refreshed_are_an_error(make: Make) -> None:
    session = boto3.Session(region_name=REGION)
    session._session._credentials = RefreshableCredentials(
        "a", "s", "t", datetime.now(UTC) - timedelta(hours=1), dict, "test"
    )
    answer = make("plain", session=session).invoke(b"{}")
    assert answer.error == "credentials CredentialRetrievalError"


def test_boto3s_own_settings_say_where_to(
    monkeypatch: pytest.MonkeyPatch, server: LoopbackRuntime, folder: Path
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(folder / "ca.pem"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", server.url)
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name=REGION)
    assert SageMakerInvoker(Target("plain", REGION), session=session).invoke(b"{}").error is None
    monkeypatch.delenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME")
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name=REGION)
    assert SageMakerInvoker(Target("plain", REGION), session=session).urls == (
        "http://127.0.0.1:1",
    )
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name="eu-west-1")
    invoker = SageMakerInvoker(Target("plain", "eu-west-1"), session=session)
    assert invoker.urls == ("https://runtime.sagemaker.eu-west-1.amazonaws.com",)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("LLT105", {"endpoint_name": ""}),
        ("LLT105", {"endpoint_name": "https://sentiment"}),
        ("LLT106", {"accept": "a\r\nb: c"}),
        ("LLT106", {"target_variant": ""}),
        ("LLT107", {"expected": "("}),
        ("LLC101", {"timeout_seconds": 0}),
        ("LLC101", {"timeout_seconds": "60"}),
        ("LLC107", {"endpoint_urls": ("host:443",)}),
        ("LLC108", {"region": ""}),
        ("LLC110", {"endpoint_urls": ("http://192.0.2.1:8080",)}),
        ("LLC110", {"endpoint_urls": ("https://a.example", "http://runtime.example.com")}),
    ],
)
def test_bad_targets_have_a_code(code: str, given: dict[str, Any]) -> None:
    with refused(code):
        Target(**{"endpoint_name": "sentiment", "region": REGION, **given})


def test_plain_http_to_another_machine_is_there_for_who_asks() -> None:
    url = "http://runtime.example.com"
    assert Target("e", REGION, (url,), allow_plain_http=True).endpoint_urls == (url,)
    for here in ("http://localhost:8080", "http://127.0.0.1", "http://[::1]:80"):
        assert Target("e", REGION, (here,)).endpoint_urls == (here,)


def test_the_environments_url_is_held_to_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", "http://runtime.example.com")
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name=REGION)
    with refused("LLC110"):
        SageMakerInvoker(Target("e", REGION), session=session)
    assert SageMakerInvoker(Target("e", REGION, allow_plain_http=True), session=session).urls == (
        "http://runtime.example.com",
    )


def test_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with refused("LLC109"):
        SageMakerInvoker(Target("sentiment", REGION), session=boto3.Session(region_name=REGION))


def test_a_servers_words_are_short_and_obeyed_by_no_terminal() -> None:
    assert brief("7c1f9dd2-8a4e-4c1d-9a: no worker is\n available.\x1b[31m") == (
        "…: no worker is available. [31m"
    )
    assert len(brief("x" * 9999)) == 200


def test_of_many_kinds_the_rest_is_one_kind() -> None:
    records = Measurement()
    for number in range(200):
        records.count_failed(f"424 ModelError {number}", f"of {number}")
    again = Measurement.sum(
        [Measurement.of_message(each.to_message()) for each in (records, records)]
    )
    assert len(again.errors) == MOST_KINDS + 1
    assert sum(again.errors.values()) == 400
    assert again.messages["424 ModelError 0"] == "of 0"
