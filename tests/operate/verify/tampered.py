"""Clients of the local AWS whose answers are changed, or refused, on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from local_sagemaker import LocalAws
from local_sagemaker.admission import credentials_at
from local_sagemaker.connections import new_client
from tests.fake_aws import Http, Refused

Change = Callable[[dict[str, Any]], None] | Refused


class Tampered:
    """A client factory; ``changes`` maps ``ec2.DescribeSubnets`` to what is done to its answers.

    The local AWS is asked each question once, unless ``live``: the stack does not change, and
    moto is slow. ``asked`` has every operation that was called.
    """

    _clients: Mapping[tuple[str, str], Any] = {}
    _answers: Mapping[str, Any] = {}
    _active: Tampered | None = None

    def __init__(
        self, aws: LocalAws, changes: Mapping[str, Change] | None = None, *, live: bool = False
    ) -> None:
        self.aws = aws
        self.live = live
        self.changes = dict(changes or {})
        self.asked: list[str] = []

    def __call__(self, service: str) -> Any:
        Tampered._active = self
        key = (self.aws.url, service)
        if key not in Tampered._clients:  # the models of EC2 and SageMaker are large
            Tampered._clients = {**Tampered._clients, key: self._client(service)}
        return Tampered._clients[key]

    def _client(self, service: str) -> Any:
        # A client of our own: the others' answers stay as they are.
        client = new_client(service, self.aws.region, self.aws.url, credentials_at(self.aws.url))

        def remember(params: Any, model: Any, context: Any, **_: Any) -> None:
            # Two readings of the clock are two questions, but the answer is changed anyway.
            asked = {key: value for key, value in params.items() if not key.endswith("Time")}
            context["question"] = json.dumps(
                [self.aws.url, service, model.name, asked], sort_keys=True, default=str
            )

        def before(model: Any, context: Any, **_: Any) -> tuple[Any, Any] | None:
            Tampered._active.asked.append(f"{service}.{model.name}")
            change = Tampered._active.changes.get(f"{service}.{model.name}")
            if isinstance(change, Refused):
                return change.answer()
            answer = Tampered._answers.get(context["question"])
            if Tampered._active.live or answer is None:
                return None
            return Http(200), deepcopy(answer)

        def after(model: Any, parsed: dict[str, Any], context: Any, **_: Any) -> None:
            change = Tampered._active.changes.get(f"{service}.{model.name}")
            kept = "Error" not in parsed  # what is answered again from here is a success
            if kept and not Tampered._active.live and not isinstance(change, Refused):
                Tampered._answers = {context["question"]: deepcopy(parsed), **Tampered._answers}
            if callable(change) and "Error" not in parsed:
                change(parsed)

        client.meta.events.register("before-parameter-build", remember)
        client.meta.events.register("before-call", before)
        client.meta.events.register("after-call", after)
        return client
