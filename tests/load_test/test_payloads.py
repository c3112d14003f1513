"""Request bodies: where they come from, how they reach workers, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.facts.limits import LARGEST_BODY_BYTES
from low_latency_endpoint.load_test.engine.payloads import Payloads
from tests.refusals import refused

MODULE = """\
def text(number): return f"request {number}"
def data(number): return {"number": number}
def raw(number): return bytes([number])
def view(number): return memoryview(b"view")
def bad(number): return {1, 2}
def large(number): return b"x" * (25 * 1024 * 1024 + 1)
def broken(number): return 1 / 0
constant = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder, under a name of its own."""
    name = f"made_payloads_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_file_is_one_body_and_jsonl_is_one_per_line(tmp_path: Path) -> None:
    whole = tmp_path / "body.json"
    whole.write_bytes(b'{"a": 1}\n{"a": 2}\n')
    lines = tmp_path / "bodies.jsonl"
    lines.write_bytes(b'{"a": 1}\r\n\n{"a": 2}\n')

    assert Payloads.of_file(whole).bodies == (b'{"a": 1}\n{"a": 2}\n',)
    assert Payloads.of_file(lines).bodies == (b'{"a": 1}', b'{"a": 2}')


def test_an_empty_file_is_an_empty_body(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert Payloads.of(tmp_path / "empty").next(7) == b""


def test_a_folder_is_one_body_per_file_by_name(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".hidden"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()

    payloads = Payloads.of(tmp_path)

    assert [payloads.next(number) for number in range(3)] == [b"a.txt", b"b.txt", b"a.txt"]
    assert payloads.source == f"folder {tmp_path.name}, 2 files"


@pytest.mark.parametrize(
    ("function", "body"),
    [("text", b"request 3"), ("data", b'{"number": 3}'), ("raw", b"\x03"), ("view", b"view")],
)
def test_a_function_makes_the_body_of_each_request(module: str, function: str, body: bytes) -> None:
    payloads = Payloads.of(f"{module}:{function}")
    assert payloads.next(3) == body
    assert Payloads.of_dict(json.loads(json.dumps(payloads.to_dict()))).next(3) == body


@pytest.mark.parametrize(("function", "code"), [("bad", "LLT104"), ("large", "LLT103")])
def test_what_a_function_must_not_return(module: str, function: str, code: str) -> None:
    payloads = Payloads.of_generator(f"{module}:{function}")
    with refused(code):
        payloads.next(0)


def test_the_errors_of_a_function_are_its_own(module: str) -> None:
    with pytest.raises(ZeroDivisionError):
        Payloads.of_generator(f"{module}:broken").next(0)


@pytest.mark.parametrize("name", ["{module}:missing", "{module}:constant", "no_such_module:make"])
def test_functions_that_are_not_there(module: str, name: str) -> None:
    with refused("LLT102"):
        Payloads.of(name.format(module=module))


REFUSED: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "no file": ("LLT101", lambda folder: Payloads.of(folder / "missing.json")),
    "not a path": ("LLT101", lambda folder: Payloads.of_file("a\0b")),
    "a name too long": ("LLT101", lambda folder: Payloads.of("x" * 5000)),
    "empty folder": ("LLT101", lambda folder: Payloads.of(folder)),
    "no folder": ("LLT101", lambda folder: Payloads.of_folder(folder / "missing")),
    "no line": ("LLT101", lambda folder: Payloads.of_file(_written(folder / "x.jsonl", b"\n \n"))),
    "no body": ("LLT101", lambda folder: Payloads.of_bytes()),
    "text for bytes": ("LLT101", lambda folder: Payloads.of_bytes("text")),  # type: ignore[arg-type]
    "not bytes but a number": ("LLT101", lambda folder: Payloads.of_bytes(5)),  # type: ignore[arg-type]
    "no function": ("LLT102", lambda folder: Payloads.of_generator("module")),
    "too large": ("LLT103", lambda folder: Payloads.of_bytes(b"x" * (LARGEST_BODY_BYTES + 1))),
}


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("case", REFUSED)
def test_bad_payloads_have_a_code(case: str, tmp_path: Path) -> None:
    code, make = REFUSED[case]
    with refused(code) as caught:
        make(tmp_path)
    assert caught.value.fix


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8), st.integers(0, 10**9))
def test_bodies_reach_other_processes_unchanged(bodies: list[bytes], number: int) -> None:
    payloads = Payloads.of_bytes(*bodies)
    received = Payloads.of_dict(json.loads(json.dumps(payloads.to_dict())))
    assert received == payloads
    assert received.next(number) == bodies[number % len(bodies)]
