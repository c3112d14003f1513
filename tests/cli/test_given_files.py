"""Whatever is in a file that a user gives, a command ends with its result or with a code."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import io
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from low_latency_endpoint.cli.application import COMMANDS, app
from low_latency_endpoint.cli.process import guarded
from low_latency_endpoint.errors.given_files import text_of
from low_latency_endpoint.facts import warm_up_rules as rules
from low_latency_endpoint.load_test import Payloads
from low_latency_endpoint.options.warm_up import WarmUpPayload
from low_latency_endpoint.plan.load_test_validity import SCHEMA
from tests.depth import examples
from tests.pinned_models import written_lock
from tests.refusals import refused
from tests.report.test_visible import acting

ROOT = Path(__file__).parents[2]
SETTINGS = (ROOT / "endpoint.yaml").read_text("utf-8")
RESULT = {
    "schema": SCHEMA,
    "source": "load test",
    "endpoint": "sentiment",
    "mode": "find-limit",
    "instances": 1,
    "rate": 3.63,
    "slope": 0.1,
    "concurrency": 4,
    "fleet": {"instance_type": "ml.g5.xlarge"},
    "latency_target": {"targets_ms": {"p99": 100.0}, "allowed_errors": 0.001},
    "limit": {
        "tps_per_instance": 3.63,
        "concurrency_per_instance": 11.7,
        "lower_bound": False,
        "how": "a search",
        "low": 3.63,
        "high": 3.8,
        "unsteady": "it drifts",
        "assured": {"tps_per_instance": 3.6, "failures": 0.02, "requests": 145, "when": "at noon"},
    },
    "verdicts": [{"severity": "note", "kind": "a", "evidence": ["b"]}],
    "steps": [
        {
            "purpose": "search",
            "completed": 100,
            "step": {"arrivals": {"kind": "poisson"}},
            "tokens": {"prompt_tokens": 900, "cached_tokens": 100, "output_tokens": 400},
        }
    ],
    "service_time_ms": {"quantiles": {"0": 9.0, "0.5": 20.0, "0.99": 30, "1": 50.0}},
}
POINTS = [
    {"Timestamp": f"2026-11-20T10:{minute:02}:00Z", "Sum": 60.0 + minute} for minute in range(5)
]
SERIES = {"Timestamps": [1.7e9, 1.7e9 + 60, 1.7e9 + 120], "Values": [5, 6.0, 7]}
QUERY = {"MetricDataResults": [{"Id": "a", "StatusCode": "Complete", **SERIES}]}
ANSWERED = {"usage": {"prompt_tokens": 30, "completion_tokens": 9}}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "a b"}, "finish_reason": "stop"}
CAPTURED = {"object": "chat.completion", "choices": [CHOICE], **ANSWERED}
CAPTURE = {"captureData": {"endpointOutput": {"data": json.dumps(CAPTURED)}}}
PRICES = """\
item,region,usd,unit,published,version,read,source
ml.m5.xlarge,us-east-1,0.23,instance-hour,2026-09-20,1,2026-11-23,https://example.com
"""

Given = dict[str, Callable[[Path], list[str]]]
#: Option by what it is called in the command's function: the arguments that let it read a file, and
#: files that it takes; JSON as its value.
RESULTS: list[Any] = [RESULT, {**RESULT, "service_time_ms": {"samples": [20.0, 30]}}]
TRAFFIC: list[Any] = [{"Datapoints": POINTS}, QUERY, "0,5\n60,7\n120,9\n", "time\n1\n2\n5\n"]
TOKENS: list[Any] = [
    "input,output\n300,20\n500,30\n",
    {"input": 300, "output": 20},
    {"input_lens": [300, 200], "output_lens": [20, 10]},
    ANSWERED,
    CAPTURE,
]
LOADED = ["load-test", "sentiment", "--region", "us-east-1"]
JOB = ["--role-arn", "arn:aws:iam::123456789012:role/a"]
SENT = ["compare-routing", "a", "b", "--users", "2", "--region", "us-east-1"]
READ: dict[tuple[str, str], tuple[Callable[[Path], list[str]], list[Any]]] = {
    ("plan", "settings"): (lambda file: ["plan", "--settings", str(file)], [SETTINGS]),
    ("plan", "against"): (lambda file: ["plan", "--against", str(file)], [SETTINGS]),
    ("plan", "from_load_test"): (lambda file: ["plan", "--from-load-test", str(file)], RESULTS),
    ("plan", "traffic_from"): (lambda file: ["plan", "--traffic-from", str(file)], TRAFFIC),
    ("prices", "from_"): (
        lambda file: ["prices", "--from", str(file), "--region", "us-east-1"],
        [PRICES],
    ),
    ("prices", "settings"): (lambda file: ["prices", "--settings", str(file)], [SETTINGS]),
    ("pin", "lock"): (lambda file: ["pin", "--check", "--lock", str(file)], ["LOCK"]),
    ("stage", "lock"): (lambda file: ["stage", "--bucket", "b", "--lock", str(file)], ["LOCK"]),
    ("simulate", "settings"): (
        lambda file: ["simulate", "--settings", str(file), "--tps", "5"],
        [SETTINGS],
    ),
    ("simulate", "from_load_test"): (
        lambda file: ["simulate", "--from-load-test", str(file)],
        RESULTS,
    ),
    ("simulate", "traffic_from"): (lambda file: ["simulate", "--traffic-from", str(file)], TRAFFIC),
    ("load-test", "replay"): (
        lambda file: [*LOADED, "--payload", "{}", "--replay", str(file)],
        TRAFFIC,
    ),
    ("load-test", "payload"): (
        lambda file: [*LOADED, "--tps", "5", "--payload", str(file)],
        ['{"inputs": "a"}'],
    ),
    ("load-test", "tokens"): (
        lambda file: [*LOADED, "--tps", "5", "--tokens", f"file={file}"],
        TOKENS,
    ),
    ("compare-routing", "payload"): (lambda file: [*SENT, "--payload", str(file)], ["{}"]),
    ("compare-routing", "tokens"): (lambda file: [*SENT, "--tokens", f"file={file}"], TOKENS),
    **{
        (command, "settings"): (
            lambda file, command=command: [command, "--settings", str(file)],
            [SETTINGS],
        )
        for command in ("preflight", "verify", "diagnose")
    },
    ("recommend", "settings"): (
        lambda file: ["recommend", *JOB, "--payload", "s3://b/a.tar.gz", "--settings", str(file)],
        [SETTINGS],
    ),
    ("optimize", "settings"): (
        lambda file: ["optimize", *JOB, "--quantize", "awq", "--settings", str(file)],
        [SETTINGS],
    ),
    ("load-test", "settings"): (
        lambda file: ["load-test", "--tps", "5", "--settings", str(file)],
        [SETTINGS],
    ),
    ("compare-routing", "settings"): (
        lambda file: ["compare-routing", "--users", "2", "--settings", str(file)],
        [SETTINGS],
    ),
}
#: What AWS's own file, of gigabytes, and a model of the settings would be needed for.
REFUSED = {("prices", "from_"), ("optimize", "settings")}
#: Files that a command writes and does not read.
WRITTEN = {"output", "html", "csv", "file"}
#: No files: an object of S3, and a job's request that is one.
NO_FILES = {("recommend", "payload")}


def options_of_files() -> Iterator[tuple[str, str]]:
    """Every option that takes a file, by what its command says of it."""
    for command, function in COMMANDS.items():
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
            told = [*getattr(parameter.annotation, "__metadata__", ()), None][0]
            metavar, words = getattr(told, "metavar", "") or "", getattr(told, "help", "") or ""
            of_path = "Path" in str(getattr(parameter.annotation, "__origin__", ""))
            if re.search("FILE|SOURCE|OLD", metavar) or "file=" in words or of_path:
                yield command, name


def test_every_option_of_a_file_has_its_row() -> None:
    """A new one is tried as all others are: add to READ how it is called, and what it takes."""
    known = {*READ, *NO_FILES, ("init", "folder")}
    missing = [each for each in options_of_files() if each not in known and each[1] not in WRITTEN]
    assert missing == []


class _ReachedError(SystemExit):
    """The command has read its files, and would go on in an account."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a usual settings file and no account."""

    def reached(*_: Any, **__: Any) -> Any:
        raise _ReachedError(0)

    # What a module takes when it is first imported stays there after this test.
    importlib.import_module("low_latency_endpoint.cli.canary_adoption")
    for place in (
        "load_test.search.load_testing.load_test",
        "load_test.compare.compare_routing.compare_routing",
        "hugging_face.hub_reading.HubReader",
        "operate.price_list.urlopen",
        "simulate.simulating.simulate",
        "account.sessions.open_clients",
    ):
        monkeypatch.setattr(f"low_latency_endpoint.{place}", reached, raising=False)
    monkeypatch.setattr("low_latency_endpoint.cli.pin.HubReader", reached, raising=False)
    monkeypatch.chdir(tmp_path)
    Path("endpoint.yaml").write_text(SETTINGS, "utf-8")
    return tmp_path


def ended(arguments: list[str]) -> tuple[int, str]:
    """How a command ends and what it says; an exception that it does not know is the test's end."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = guarded(lambda: app(arguments, prog_name="low-latency"))
    return int(code or 0), out.getvalue() + err.getvalue()


def content_of(example: Any, folder: Path) -> bytes:
    if example == "LOCK":
        (lock,) = {*folder.glob("*.lock*"), written_lock(folder)}
        return Path(lock).read_bytes()
    return (example if isinstance(example, str) else json.dumps(example)).encode()


VALUES = [
    None,
    True,
    -1,
    0,
    10**400,
    1e308,
    1e-320,
    "",
    "x",
    "\ud800",
    "\x1b[31m\n::error::x",
    [],
    {},
]
VALUES += [[[]], {"a": 1}, [None], [-1], "9" * 5000, "x" * 20_000, "2026-13-45", "nan"]


def changed(example: Any, chance: Random) -> bytes:
    """JSON with one place, any of them, changed to any kind or gone; text with some bytes changed."""
    if isinstance(example, str):
        content = bytearray(example.encode())
        for _ in range(chance.choice([1, 1, 5])):
            at = chance.randrange(len(content) + 1)
            put = chance.choice([b"", b"\0", b",", b'"', b"\xff", b"-", b"9" * 400, b"\n", b"nan"])
            content[at : at + chance.choice([0, 1, 10])] = put
        return bytes(content)
    whole = [copy.deepcopy(example)]
    inner: Any = whole
    key: Any = 0
    for _ in range(chance.randrange(7)):
        below = inner[key]
        if not isinstance(below, (dict, list)) or not below:
            break
        inner, key = (
            below,
            chance.choice([*below] if isinstance(below, dict) else range(len(below))),
        )
    if chance.random() < 0.15 and isinstance(inner, dict):
        del inner[key]
    else:
        inner[key] = chance.choice(VALUES)
    return json.dumps(whole[0]).encode()


ODD = {
    "empty": b"",
    "a byte order mark": "\ufeff{}".encode(),
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep and whole": b"[" * 900 + b"]" * 900,
    "no end": b'{"schema": "' + SCHEMA.encode(),
    "a name twice": b'{"schema": 1, "schema": 1}',
    "no numbers": b'{"Datapoints": [{"Timestamp": NaN, "Sum": Infinity}]}',
    "NUL": b"\0" * 100,
    "no text": bytes(range(256)),
    "a long line": b"a" * 300_000,
}


def judge(option: tuple[str, str], file: Path) -> None:
    """It ends with a result or a code, in words that act nowhere."""
    arguments = READ[option][0](file)
    code, told = ended(arguments)
    assert code in (0, 1, 2), told
    assert acting(told, but="\n\t\u200b") == []
    if code == 2:
        assert re.search(r"LL[A-Z]\d{3}|^Error: |: ", told, re.M), told
    assert "Traceback" not in told


@pytest.mark.parametrize("option", READ, ids=" ".join)
def test_what_it_takes_is_taken(option: tuple[str, str], folder: Path) -> None:
    for number, example in enumerate(READ[option][1]):
        file = folder / f"given-{number}.txt"
        file.write_bytes(content_of(example, folder))
        code, told = ended(READ[option][0](file))
        if option not in REFUSED:
            assert code in (0, 1), told


@pytest.mark.parametrize("option", READ, ids=" ".join)
def test_odd_files(option: tuple[str, str], folder: Path) -> None:
    for content in ODD.values():
        file = folder / "given.txt"
        file.write_bytes(content)
        judge(option, file)
    judge(option, folder / "no-such-file\x1b[31m\n::error::x")
    judge(option, folder)
    if option[1] != "payload":  # of which 256 MiB are taken
        judge(option, Path("/dev/zero"))


#: `pin` asks for the Hub first, which the fixture stands for; `stage` reads the lock by the same reader.
@pytest.mark.parametrize("option", sorted(READ.keys() - {("pin", "lock")}), ids=" ".join)
def test_what_is_no_file_is_refused_at_once(option: tuple[str, str], folder: Path) -> None:
    """Nobody writes into the pipe: a reader would wait for ever."""
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket"))
        for name, kind in (
            ("pipe", "a named pipe"),
            ("link", "a named pipe"),
            ("socket", "a socket"),
        ):
            with at_most(15):
                code, told = ended(READ[option][0](folder / name))
            assert code == 2, told
            assert re.search(r"LL[A-Z]\d{3}", told), told
            assert kind in told, told
    with at_most(15):
        code, told = ended(READ[option][0](Path("/dev/zero")))
    assert (code, "a device" in told) == (2, True), told


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise where something waits for longer."""

    def stop(*_: object) -> None:
        raise AssertionError(f"it waits for more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_what_a_shell_has_opened_is_read() -> None:
    """``--settings <(...)``: its pipe has a writer, which may have ended."""
    reading, writing = os.pipe()
    os.write(writing, b"network: {}\n")
    os.close(writing)
    try:
        assert text_of(f"/dev/fd/{reading}", rules.PAYLOAD_READABLE) == "network: {}\n"
    finally:
        os.close(reading)


@pytest.mark.parametrize("option", READ, ids=" ".join)
def test_changed_files(option: tuple[str, str], folder: Path) -> None:
    chance = Random(f"{option}")
    for _ in range(examples(25)):
        example = chance.choice(READ[option][1])
        content = content_of(example, folder).decode() if example == "LOCK" else example
        file = folder / "given.txt"
        file.write_bytes(changed(content, chance))
        try:
            judge(option, file)
        except Exception as problem:
            raise AssertionError(f"{option}: {file.read_bytes()[:3000]!r}") from problem


def test_a_payload_without_an_end_is_a_code(folder: Path) -> None:
    """Of the settings, too: a device has no size beforehand, and never ends."""
    with refused("LLT101"):
        Payloads.of("/dev/zero")
    with refused(rules.PAYLOAD_READABLE.code):
        _ = WarmUpPayload(file="/dev/zero", content_type="text/csv").body
