"""Our frozen dataclasses against the standard library's: the same but for the time at import."""

from __future__ import annotations

import copy
import dataclasses
from functools import cached_property

import pytest

from low_latency_endpoint.errors import frozen


def declared(dataclass):
    @dataclass(frozen=True, kw_only=True)
    class Group:
        name: str
        parts: list[str] = dataclasses.field(default_factory=list, hash=False)
        secret: str = dataclasses.field(default="", repr=False)
        note: str = dataclasses.field(default="", compare=False)

        def __post_init__(self):
            object.__setattr__(self, "name", self.name.strip())

        @cached_property
        def long(self):
            return self.name * 2

    @dataclass(frozen=True)
    class Nested(Group):
        inner: int = 1

        def __eq__(self, other):
            return True

    return Group, Nested


def answers(dataclass):
    group, nested = declared(dataclass)
    one, other = group(name=" a ", secret="s", note="n"), group(name="a", secret="s")
    yield (
        one == other,
        hash(one) == hash(other),
        one != group(name="b"),
        one == "a",
        {one: 1}[other],
    )
    yield repr(one), repr(nested(name="a")), one.long, nested(name="a") == 3
    yield dataclasses.replace(one, name="c").name, dataclasses.asdict(one), vars(copy.deepcopy(one))
    for wrong in (
        lambda: setattr(one, "name", "b"),
        lambda: setattr(one, "other", "b"),
        lambda: delattr(one, "name"),
        lambda: group("a"),
        lambda: group(),
    ):
        with pytest.raises((AttributeError, TypeError)) as refused:
            wrong()
        yield refused.type, str(refused.value)


def test_they_behave_the_same():
    assert list(answers(frozen.dataclass)) == list(answers(dataclasses.dataclass))
