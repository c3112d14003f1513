"""Whatever is answered, and by whom: a function's line and its memory stay small, and it ends.

Servers of raw sockets send what no HTTP server would.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.facts.canary_metrics import NAMESPACE, PUBLISHED
from low_latency_endpoint.warm_up.warm_up_function import canary, controller, exchanges, sender
from tests.depth import examples

LONGEST_LINE = 8 * 1024  # bytes; CloudWatch takes 1 MiB, and cuts what is longer
MOST_MEMORY = 8 * 1024 * 1024
SECRET = "secret-words"  # of the payload, which a container may repeat

OK = b"HTTP/1.1 200 OK\r\n"
REFUSED = b"HTTP/1.1 403 Forbidden\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def slowly(begin: bytes, drop: bytes) -> Iterator[bytes]:
    yield begin
    while True:
        time.sleep(0.05)
        yield drop


MANY = b"".join(b"x-amzn-h%d: %s\r\n" % (n, b"v" * 600) for n in range(90))
#: By name, what comes after a request; each is sent until the function hangs up.
ANSWERS: dict[str, Callable[[], Iterable[bytes]]] = {
    "90 headers of 60 kB": lambda: [
        OK,
        *(b"x-amzn-h%d: %s\r\n" % (n, b"v" * 60_000) for n in range(90)),
        b"\r\n",
    ],
    "90 headers that fit": lambda: [OK + MANY + b"Content-Length: 2\r\n\r\n[]"],
    "a header without an end": lambda: itertools.chain([OK], itertools.repeat(b"x" * 65536)),
    "a line without an end": lambda: itertools.repeat(b"H" * 65536),
    "headers without an end": lambda: itertools.chain([OK], itertools.repeat(b"a: b\r\n" * 9999)),
    "interim answers without an end": lambda: itertools.repeat(b"HTTP/1.1 100 C\r\n\r\n" * 999),
    "other interim answers": lambda: itertools.repeat(b"HTTP/1.1 103 E\r\na: b\r\n\r\n" * 999),
    "the request, in what a container writes": lambda: [
        OK + b"x-amzn-sagemaker-custom-attributes: " + SECRET.encode() + b"\r\n"
        b"x-amzn-sagemaker-new-session-id: " + SECRET.encode() + b"\r\n"
        b"Content-Length: 2\r\n\r\n[]"
    ],
    "a request ID of 60 kB": lambda: [
        OK + b"x-amzn-RequestId: " + b"i" * 60_000 + b"\r\nContent-Length: 2\r\n\r\n[]"
    ],
    "an error's kind of 60 kB": lambda: [
        REFUSED + b"x-amzn-ErrorType: " + b"\xff" * 60_000 + b"\r\nContent-Length: 2\r\n\r\n{}"
    ],
    "a body without an end": lambda: itertools.chain(
        [OK + b"\r\n"], itertools.repeat(b"b" * 65536)
    ),
    "a body of 600 MB, said before": lambda: itertools.chain(
        [OK + b"Content-Length: 600000000\r\n\r\n"], itertools.repeat(b"b" * 65536)
    ),
    "a length of 5,000 digits": lambda: [
        OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + b"b" * 65536
    ],
    "chunks without an end": lambda: itertools.chain(
        [OK + b"Transfer-Encoding: chunked\r\n\r\n"], itertools.repeat(chunk(b"c" * 60_000))
    ),
    "a chunk of a terabyte": lambda: itertools.chain(
        [OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n"], itertools.repeat(b"c" * 65536)
    ),
    "trailers without an end": lambda: itertools.chain(
        [OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"], itertools.repeat(b"t: t\r\n" * 9999)
    ),
    "an error's body without an end": lambda: itertools.chain(
        [REFUSED + b"\r\n"], itertools.repeat(b"e" * 65536)
    ),
    "an error of 20 MB of objects": lambda: [
        REFUSED + b"Content-Length: 20000003\r\n\r\n[" + b"{}," * 6_666_667 + b"]"
    ],
    "an error of nested lists": lambda: [
        REFUSED + b"Content-Length: 60000\r\n\r\n" + b"[" * 60_000
    ],
    "an error in control characters": lambda: [
        REFUSED + b'Content-Length: 60014\r\n\r\n{"Message": "' + b"\x01" * 60_000 + b'"}'
    ],
    "a body that is said to be packed": lambda: [
        OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n[]"
    ],
    "a slow head": lambda: slowly(OK, b"a"),
    "a slow body": lambda: slowly(OK + b"Content-Length: 1000\r\n\r\n", b"b"),
    "slow interim answers": lambda: slowly(b"", b"HTTP/1.1 100 C\r\n\r\n"),
    "nothing": list,
    "a half": lambda: [OK + b"Content-Length: 1000\r\n\r\nhalf"],
}


@pytest.fixture(scope="module")
def answer_with() -> Iterator[Callable[[Callable[[], Iterable[bytes]]], int]]:
    """Serve these bytes after each request; gives the port."""
    current: list[Callable[[], Iterable[bytes]]] = [list]
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(20)
            request = b""
            while SECRET.encode() not in request:
                piece = connection.recv(65536)
                if not piece:
                    return  # one of the connections that the canary only opens
                request += piece
            for data in current[0]():
                connection.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=listening.accept()[:1], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()

    def begin(answer: Callable[[], Iterable[bytes]]) -> int:
        current[0] = answer
        return int(listening.getsockname()[1])

    yield begin
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """Run a function against a port; gives what it printed."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "payloads").mkdir()
    (folder / "payloads" / "0").write_text(json.dumps({"inputs": SECRET}))
    (folder / "payloads" / "payloads.json").write_text(json.dumps([{"File": "0"}]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchanges, "READ_TIMEOUT", 0.5)
        patch.setattr(sender, "_clients", {})
        patch.setattr(sender, "PAUSE_SECONDS", 0.01)
        printed: list[str] = []
        for module in (canary, sender, controller):
            patch.setattr(module, "print", printed.append, raising=False)

        def run(which: str, port: int) -> list[str]:
            printed.clear()
            order = {
                "endpoint": "Sentiment",
                "zone": "use1-az1",
                "names": {"callers": "127.0.0.1"},
                "zones": {"use1-az1": "127.0.0.1"},
                "namespace": NAMESPACE,
                "metrics": PUBLISHED,
            }
            environment = {
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_REGION": "us-east-1",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": f"http://127.0.0.1:{port}",
                "LAMBDA_TASK_ROOT": str(folder),
                "CANARY": json.dumps(order),
                "WARM_UP": json.dumps(order),
            }
            patch.setattr(canary, "HTTPS", port)
            with pytest.MonkeyPatch.context() as within:
                for name, value in environment.items():
                    within.setenv(name, value)
                if which == "canary":
                    canary.handler({}, None)
                else:
                    event = {"run": {"seconds": 0.1, "requests": 1}}
                    printed.append(json.dumps(sender.handler(event, None)))
            return list(printed)

        yield run


def checked(lines: list[str]) -> list[str]:
    assert lines
    for line in lines:
        assert len(line.encode()) < LONGEST_LINE
        assert SECRET not in line
        json.loads(line)
    return lines


@pytest.mark.parametrize("which", ["canary", "sender"])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_costs_little(answer_with, functions, which, name):
    port = answer_with(ANSWERS[name])
    functions(which, answer_with(ANSWERS["a half"]))  # what is imported and cached once
    answer_with(ANSWERS[name])
    tracemalloc.start()
    began = time.monotonic()
    lines = functions(which, port)
    took, (_, peak) = time.monotonic() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    checked(lines)
    served = 22 * 1024 * 1024 if name == "an error of 20 MB of objects" else 0  # by the test itself
    assert peak - 3 * served < MOST_MEMORY
    assert took < 15


#: Metrics of an answer: whether it counts as lost, and whether as refused.
_COUNTED = {
    "90 headers that fit": (0, 0),
    "a request ID of 60 kB": (0, 0),
    "the request, in what a container writes": (0, 0),
    "an error's kind of 60 kB": (1, 1),
    "an error in control characters": (1, 1),
    "an error of nested lists": (1, 1),
    "other interim answers": (1, 1),
    "interim answers without an end": (1, 0),
    "90 headers of 60 kB": (1, 0),
    "a body without an end": (1, 0),
    "a slow body": (1, 0),
    "a half": (1, 0),
    "nothing": (1, 0),
}


@pytest.mark.parametrize("name", _COUNTED)
def test_what_no_caller_could_use_is_counted(answer_with, functions, name):
    (line,) = map(json.loads, functions("canary", answer_with(ANSWERS[name])))
    assert (line["CanaryUnreachable"], line["CanaryRefused"]) == _COUNTED[name]


def _error(status: int, kind: str) -> bytes:
    body = json.dumps({"Message": "no", "OriginalStatusCode": 500}).encode()
    return b"HTTP/1.1 %d X\r\nx-amzn-ErrorType: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        status,
        kind.encode(),
        len(body),
        body,
    )


@pytest.mark.parametrize(
    ("status", "kind", "refused"),
    [
        (403, "AccessDeniedException", 1),
        (429, "ThrottlingException", 1),
        (500, "InternalFailure", 1),
        (503, "ServiceUnavailable", 1),
        (302, "", 1),
        (407, "", 1),
        (424, "ModelError", 0),
        (400, "ValidationError", 0),
    ],
)
def test_refusals_are_not_the_models_errors(answer_with, functions, status, kind, refused):
    port = answer_with(lambda: [_error(status, kind)])
    (line,) = map(json.loads, functions("canary", port))
    assert (line["CanaryUnreachable"], line["CanaryRefused"]) == (refused, refused)


_TEXT = st.binary(max_size=300)
_HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                b"x-amzn-RequestId",
                b"x-amzn-Invoked-Production-Variant",
                b"x-amzn-ErrorType",
                b"x-amzn-sagemaker-custom-attributes",
                b"x-amzn-x",
                b"Content-Length",
                b"Transfer-Encoding",
                b"Content-Type",
                b"Connection",
                b"Location",
            ]
        )
        | _TEXT,
        st.sampled_from([b"chunked", b"0", b"-1", b"2", b"close", b"gzip", SECRET.encode()])
        | _TEXT,
    ),
    max_size=12,
)
_HEADS = st.builds(
    lambda status, headers: (
        b"HTTP/1.1 %s\r\n%s\r\n" % (status, b"".join(b"%s: %s\r\n" % each for each in headers))
    ),
    st.sampled_from([b"200 OK", b"403 F", b"424 D", b"100 C", b"204 N", b"302 F", b"999 X"])
    | _TEXT,
    _HEADERS,
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_HEADS, max_size=3), st.binary(max_size=2000))
def test_any_answer_gives_one_line(answer_with, functions, heads, body):
    answer = b"".join(heads) + body
    port = answer_with(lambda: [answer])
    for which in ("canary", "sender"):
        lines = functions(which, port)
        assert all(len(line.encode()) < LONGEST_LINE for line in lines)
        assert len([line for line in lines if '"event"' in line]) == 1


def test_a_failure_of_the_controller_is_one_short_line(functions, monkeypatch, capsys):
    """What the sender's own failure says is the words of whatever it met."""

    def fails(*_, **__):
        raise RuntimeError("x" * 10_000_000)

    answered: list[str] = []
    lines: list[str] = []
    monkeypatch.setattr(controller, "warm_up", fails)
    monkeypatch.setattr(controller, "print", lines.append, raising=False)
    monkeypatch.setattr(controller, "_answer", lambda *given: answered.append(given[2]))

    class Context:
        log_group_name = log_stream_name = "log"

    controller.custom_resource({"RequestType": "Create", "ResourceProperties": {}}, Context())
    checked(lines)
    assert len(answered[0]) < LONGEST_LINE
