"""A start with an argument of another kind says so, and starts nothing."""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from local_sagemaker import LocalAws, RuntimeOptions

VALUES = ["simulated", 7, 1.5, True, b"x", ["x"], {"x": "simulated"}, {1: 2}, Path("x"), object()]


def hints_of(make: Any) -> dict[str, Any]:
    """Give the annotation of each argument."""
    hints = get_type_hints(getattr(make, "__func__", make))
    return {name: hints[name] for name in inspect.signature(make).parameters}


def of_kind(value: object, hint: Any) -> bool:
    """Say whether the value's type stands in the annotation; no mapping here has right entries."""
    kinds = get_args(hint) if get_origin(hint) not in (None, Literal, Mapping) else (hint,)
    types = {str if get_origin(kind) is Literal else kind for kind in kinds}
    if isinstance(value, (bool, dict)):
        return type(value) in types
    if type(value) is int and float in types:
        return True
    return any(isinstance(kind, type) and isinstance(value, kind) for kind in types)


WRONG = [
    (make, name, value)
    for make in (LocalAws.start, LocalAws.in_process, RuntimeOptions)
    for name, hint in hints_of(make).items()
    for value in VALUES
    if not of_kind(value, hint)
]


@pytest.mark.parametrize(("make", "name", "value"), WRONG)
def test_another_kind_is_refused_by_the_arguments_name(
    make: Any, name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process began"))
    with pytest.raises(TypeError, match=rf"^{name} is .* is needed$"):
        make(**{name: value})


@pytest.mark.parametrize(
    "given", [{"port": -1}, {"port": 65536}, {"region": "mars"}, {"region": "us-east-1\n"}]
)
def test_what_no_machine_has_is_refused(given: dict[str, Any]) -> None:
    name = next(iter(given))
    with pytest.raises(ValueError, match=f"^{name} is "):
        LocalAws.start(**given)
