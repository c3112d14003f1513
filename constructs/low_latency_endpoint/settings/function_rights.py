"""What the functions of a settings file's stack are allowed, role by role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from ..plan.rights import (
    IDS,
    MADE_BUCKET,
    Own,
    Statement,
    being_in_vpc,
    calling_endpoint,
    calling_function,
    closing_group,
    keys_apart,
    looking_at_endpoint,
    looking_at_interfaces,
    looking_at_stack,
    looking_at_traffic,
    made_arn,
    on_stated_role,
    reading_secret,
    sending_dead_letters,
    stack_id,
    staging,
    writing_log,
)
from .planned import warms
from .served import hub_models
from .stack import Settings

_LONGEST_ENDPOINT = 63


_NO_LETTER = re.compile("[^A-Za-z0-9]")


class Rights(NamedTuple):
    """One policy on a role."""

    role: str  # the ARN of one that is stated, or any name of one that the stack makes
    statements: Sequence[Statement]
    key: str | None  # the endpoint that needs it; None for what is of the whole stack
    in_role: bool = False  # whether the role is made with it, so that it is no resource of its own


def function_rights(settings: Settings, own: Own) -> Iterator[Rights]:
    """In the order in which the stack makes them."""
    stack = _Stack(settings, own)
    own_vpc = settings.network.vpc_id is None
    if own_vpc:
        group = closing_group(own, "x" * IDS["security-group"])
        yield from stack.function(("Network", "DefaultSecurityGroup"), group)
    if own_vpc or settings.private_link.names_what_it_serves(own_vpc=own_vpc):
        yield from stack.function(("FormerNames",), [])
    for key, endpoint in settings.endpoints.items():
        yield from _staging(stack, key)
        drain = ("LowLatencyEndpointDrain",)
        looking = looking_at_stack(stack.id)
        yield from stack.function(drain, [looking_at_interfaces(), looking])
        yield stack.also(drain, [calling_function(stack.arn(*drain, "Function"))], None)
        if endpoint.confirm_updates:
            check = ("EndpointServingCheck",)
            yield from stack.function(check, [looking])
            yield stack.also(check, [looking_at_endpoint(stack.endpoint(key))], key)
        if warms(settings, key):
            yield from _warm_up(stack, key)


class _Stack:
    """How the functions of a stack, and what they write to, are called."""

    def __init__(self, settings: Settings, own: Own) -> None:
        self.settings, self.own = settings, own
        self._stated = settings.safeguards.function_role_arn
        self.key_arn = settings.safeguards.kms_key_arn
        self.id = stack_id(len(settings.stack_name))

    def arn(self, *ids: str) -> str:
        logical_id = _NO_LETTER.sub("", "".join(ids)) + _digest(*ids)
        return made_arn(self.own, logical_id, stack_name=len(self.settings.stack_name))

    def endpoint(self, key: str) -> str:
        stated = self.settings.endpoints[key].endpoint_name
        made = f"{self.settings.stack_name}-{_NO_LETTER.sub('', key)}-endpoint-{_digest(key)}"
        return self.own.arn("sagemaker", f"endpoint/{stated or made[-_LONGEST_ENDPOINT:]}")

    def function(
        self, ids: tuple[str, ...], statements: Sequence[Statement], key: str | None = None
    ) -> Iterator[Rights]:
        """What a function may do from the start, and write its log."""
        logs = writing_log(
            self.arn(*ids, "Logs"),
            key_arn=self.key_arn,
            service=f"logs.{self.own.region}.amazonaws.com",
        )
        # Of all that a function is made with, only the length and what is equal matter here.
        both = [*statements, *logs]
        if self._stated is not None:
            of_one, of_all = on_stated_role(both, ("*", self.id, self.key_arn))
            yield Rights(self._stated, of_one, key)
            yield from (Rights(self._stated, [each], None) for each in of_all)
            return
        standing, for_keys = keys_apart(both)
        yield Rights("/".join(ids), standing, key, in_role=True)
        if for_keys:
            yield Rights("/".join(ids), for_keys, key)

    def also(
        self, ids: tuple[str, ...], statements: Sequence[Statement], key: str | None
    ) -> Rights:
        """What a function may do besides."""
        return Rights(self._stated or "/".join(ids), statements, key)


def _digest(*ids: str) -> str:
    """As long as CDK's at the end of names: two names of the same length are not the same."""
    return sha256("/".join(ids).encode()).hexdigest()[:8]


def _staging(stack: _Stack, key: str) -> Iterator[Rights]:
    ids = ("HubModelStaging",)
    for stated in hub_models(stack.settings.endpoints[key]):
        yield from stack.function(ids, [])
        bucket = f"arn:aws:s3:::{stated.bucket}" if stated.bucket else MADE_BUCKET
        rights = staging(bucket, None if stated.bucket else stack.key_arn)
        yield stack.also(ids, rights, None)
        if stated.token_secret_arn:
            yield stack.also(ids, reading_secret(stated.token_secret_arn, None), None)


def _warm_up(stack: _Stack, key: str) -> Iterator[Rights]:
    dead_letters = sending_dead_letters(
        stack.arn(key, "WarmUp", "DeadLetters", "Queue"), stack.key_arn
    )
    sender, controller = (key, "WarmUp", "Sender"), (key, "WarmUp", "Controller")
    yield from stack.function(sender, [*dead_letters, *being_in_vpc(stack.own)], key)
    yield stack.also(sender, [calling_endpoint(stack.endpoint(key))], key)
    calls = calling_function(stack.arn(*sender, "Function"))
    looks = looking_at_stack(stack.id)
    yield from stack.function(controller, [calls, looks, *dead_letters], key)
    warm_up = stack.settings.endpoints[key].warm_up
    if warm_up and warm_up.keep_warm is not None:
        shared = stack.settings.safeguards.function_role_arn is not None
        yield stack.also(controller, [looking_at_traffic()], None if shared else key)
