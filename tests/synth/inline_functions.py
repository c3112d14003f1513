"""Inline functions of custom resources, run as they stand in the template."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

Answers = list[tuple[str, str | None, str | None]]


def loaded(
    source: str, clients: dict[str, Any], clock: Any, patch: pytest.MonkeyPatch
) -> tuple[Callable[..., None], Answers]:
    """The handler, and the list that its answers go to: status, physical ID and reason of each."""
    answers: Answers = []

    # The signature of AWS's module.
    def send(
        event: Any,
        context: Any,
        responseStatus: str,
        responseData: Any,
        physicalResourceId: str | None = None,
        noEcho: bool = False,
        reason: str | None = None,
    ) -> None:
        answers.append((responseStatus, physicalResourceId, reason))

    for name, module in {
        "cfnresponse": SimpleNamespace(SUCCESS="SUCCESS", FAILED="FAILED", send=send),
        "boto3": SimpleNamespace(client=clients.__getitem__),  # of another service: a KeyError
        "time": clock,
    }.items():
        patch.setitem(sys.modules, name, module)
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace["handler"], answers
