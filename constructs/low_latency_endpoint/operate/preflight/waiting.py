"""Waiting for what passes by itself, before the checks: an endpoint that is being scaled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from ...account.calls import Account
from ...account.endpoints import read_endpoint
from ...account.sessions import ClientFactory, Unreadable
from ...account.stacks import stack_description
from ...settings import Settings
from .context import PreflightContext
from .update_checks import PASSING_STATES, deployed_endpoint

_SECONDS_BETWEEN = 15.0


def wait_for_endpoints(
    settings: Settings,
    client: ClientFactory,
    region: str,
    *,
    seconds: float,
    on_wait: Callable[[str], None] = lambda text: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait while scaling, or SageMaker itself, is at work on an endpoint of the deployed stack.

    Returns as soon as none is, at the latest when the time is over, and at once while an operation
    runs on the stack, or where the account does not tell: the checks say what is so.
    """
    end = clock() + seconds
    told = ""
    while busy := ", ".join(_busy(settings, client, region)):
        rest = min(_SECONDS_BETWEEN, end - clock())
        if rest <= 0:
            return
        if busy != told:
            on_wait(busy)
            told = busy
        sleep(rest)


def _busy(settings: Settings, client: ClientFactory, region: str) -> Iterator[str]:
    account = Account(client, region)  # a new one: it keeps its answers
    with suppress(Unreadable):
        stack = stack_description(account, settings.stack_name)
        if stack is None or stack["StackStatus"].endswith("_IN_PROGRESS"):
            return
        for context in PreflightContext(settings, (), account).endpoints:
            deployed = deployed_endpoint(context)
            found = read_endpoint(account, deployed.name) if deployed else None
            if found and found.status in PASSING_STATES:
                yield f"{found.name} is {found.status}"
