"""Each option of a settings file is read by the plan or by a construct; one that nobody reads does nothing.

Rules of its own group read an option too, and so does what compares two files: neither counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import low_latency_endpoint
from low_latency_endpoint import DeploymentPolicy
from low_latency_endpoint.options.option import Options, options_of
from low_latency_endpoint.settings import load_settings
from tests.option_groups import groups
from tools.fuzzing.agreement import synthesised, text_of

from .settings_changes import (
    ADOPTED,
    AT_ONCE,
    BASE,
    BUILT,
    CANARY,
    CAPTURE,
    DUMP,
    HUB,
    LENGTHS,
    LINEAR,
    OF_FILE,
    OWN,
    PEAKS,
    POOLS,
    PREFIX,
    PRIVATE,
    ROLLING,
    SCHEDULE,
    SLOW,
    STEPS,
    TWO,
    below,
    changed,
)

OURS = Path(low_latency_endpoint.__file__).parent
MACHINERY = str(OURS / "options" / "option.py")
ERRORS = str(OURS / "errors")  # with errors/frozen.py, which compares dataclasses and hashes them
#: Properties of options, and the spy itself.
BETWEEN = (str(OURS / "options"), __file__)
VARS = "__dict__"
#: Endpoints that together have every group of options, each of which takes a fifth of a second.
ENDPOINTS = {
    "canary": {**PRIVATE, **CANARY, **CAPTURE, **DUMP, **SLOW, **PREFIX, **SCHEDULE},
    "linear": {**HUB, **LINEAR, **LENGTHS, ".variants": {"b": {"weight": 1}}},
    "rolling": {**POOLS, **OWN, **ROLLING, **PEAKS},
    "at-once": {
        **below("", **TWO),
        **AT_ONCE,
        **STEPS,
        ".warm_up.payload.target_container": "one",
        ".shadow": {"name": "b"},
    },
    "built": {
        **BUILT,
        ".warm_up": {"payload": OF_FILE, "keep_warm": {"every": "2m"}},
        ".canary": {"payload": OF_FILE},
        ".metrics": {"enhanced": True},
    },
}
#: Options that something else reads than what makes a template.
READ_ELSEWHERE = {"Settings.prices": "low-latency plan --cost"}
Read = set[tuple[type, str]]


class Reads:
    """Who reads which option: what makes a template, or ``taken``, for another group."""

    def __init__(self) -> None:
        self.read: Read = set()
        self.handed_on: dict[tuple[type, str], set[type]] = {}
        self._names = {each.name for group in groups() for each in options_of(group)} | {VARS}

    def note(self, options: Options, name: str) -> None:
        """One look at an attribute, by whoever is two calls away; ``vars`` looks at all of them."""
        frame: Any = sys._getframe(2) if name in self._names else None
        while frame is not None and frame.f_code.co_filename.startswith(BETWEEN):
            if frame.f_code.co_filename == MACHINERY:
                if frame.f_code.co_name == "taken":
                    target = frame.f_locals["group"]
                    self.handed_on.setdefault((type(options), name), set()).add(target)
                if frame.f_code.co_name != "<dictcomp>":
                    return
            frame = frame.f_back
        reader = frame.f_code.co_filename if frame is not None else ""
        if reader.startswith(str(OURS)) and not reader.startswith(ERRORS):
            whole = [each.name for each in options_of(type(options))] if name == VARS else [name]
            self.read |= {(type(options), each) for each in whole}

    def reads(self, group: type, name: str, seen: tuple[type, ...] = ()) -> bool:
        """Whether the option is read there, or where it is handed on to."""
        if group in seen:
            return False
        if any(each == name and akin(group, of) for of, each in self.read):
            return True
        targets = [self.handed_on[key] for key in self.handed_on if key[1] == name]
        sources = [key[0] for key in self.handed_on if key[1] == name]
        return any(
            self.reads(target, name, (*seen, group))
            for source, reached in zip(sources, targets, strict=True)
            for target in reached
            if akin(group, source)
        )


def akin(one: type, other: type) -> bool:
    return issubclass(one, other) or issubclass(other, one)


def files() -> Iterator[dict[str, Any]]:
    """All of them in a network of their own, and one in somebody else's."""
    recorded = changed(BASE, {"network.flow_logs": "all"})
    yield {**recorded, "endpoints": {key: endpoint(change) for key, change in ENDPOINTS.items()}}
    functions = {
        "safeguards.function_subnet_ids": ["subnet-0123456789abcdef0"],
        "safeguards.function_security_group_ids": ["sg-0123456789abcdef0"],
    }
    yield changed(BASE, {**ADOPTED, **functions})


def endpoint(change: dict[str, Any]) -> dict[str, Any]:
    values = changed(BASE, {".endpoint_name": None, **change})["endpoints"]["sentiment"]
    return {name: value for name, value in values.items() if name != "endpoint_name"}


def unread(reads: Reads) -> list[str]:
    """The options that nothing reads, by group and name."""
    return sorted(
        f"{group.__name__}.{each.name}"
        for group in groups()
        for each in options_of(group)
        if each.option is not None and not reads.reads(group, each.name)
    )


@contextmanager
def watched_by(reads: Reads) -> Iterator[None]:
    """Each look at an attribute of options is noted."""

    def spied(self: Options, name: str) -> Any:
        reads.note(self, name)
        kept = getattr(type(self), name, None)
        if isinstance(kept, cached_property):  # else only the first who asks would be seen
            return kept.func(self)
        return object.__getattribute__(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Options, "__getattribute__", spied, raising=False)
        yield


@pytest.fixture(scope="module")
def reads(folder: Path) -> Reads:
    found = Reads()
    path = folder / "read.yaml"
    with watched_by(found):
        for each in files():
            path.write_text(text_of(each), encoding="utf-8")
            synthesised(load_settings(path))
    return found


def test_every_option_is_read_by_the_plan_or_by_a_construct(reads: Reads) -> None:
    forgotten = sorted(set(unread(reads)) - READ_ELSEWHERE.keys())
    assert forgotten == [], (
        "read it in its construct (such as to_cfn of hosting/variant.py), or in the plan; if "
        "something else reads it, say what in READ_ELSEWHERE; if no endpoint of ENDPOINTS has its "
        "group, add one that has"
    )


def test_what_is_read_needs_no_reason(reads: Reads) -> None:
    assert READ_ELSEWHERE.keys() <= set(unread(reads))


def test_an_option_that_nothing_reads_is_found(reads: Reads) -> None:
    others = Reads()
    others.handed_on = reads.handed_on
    others.read = {each for each in reads.read if each[1] != "batch_percent"}
    assert set(unread(others)) - set(unread(reads)) == {"Rolling.batch_percent"}


def test_to_compare_hash_check_or_print_an_option_is_not_to_read_it() -> None:
    found = Reads()
    with watched_by(found):
        one, other = DeploymentPolicy.rolling(), DeploymentPolicy.rolling(batch_percent=20)
        assert one != other
        assert hash(one) != hash(other)
        assert repr(one) != repr(other)
    assert found.read == set()
