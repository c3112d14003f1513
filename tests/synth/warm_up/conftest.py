"""A warm-up and what it needs."""

from __future__ import annotations

import pytest

from low_latency_endpoint import RuntimePrivateLink, WarmUp, WarmUpOptions
from tests.synth.warm_up.in_template import PAYLOAD


def warm_up_in(stack, parts, **given):
    network = given.pop("network", None) or parts.network(stack)
    link = given.pop("private_link", None) or RuntimePrivateLink(stack, "Link", network=network)
    endpoint = given.pop("endpoint", None) or parts.endpoint(stack)
    latency = given.pop("latency", None)
    return WarmUp(
        stack,
        "WarmUp",
        endpoint=endpoint,
        private_link=link,
        network=network,
        options=WarmUpOptions(**{"payload": PAYLOAD, **given}),
        latency=latency,
    )


@pytest.fixture
def make(stack, parts):
    """Make a warm-up and what it needs; keyword arguments are the warm-up's."""
    return lambda **given: warm_up_in(stack, parts, **given)


@pytest.fixture(scope="session")
def template(new_stack, parts, template_of):
    """That of the smallest warm-up, for tests that only read it."""
    stack = new_stack()
    warm_up_in(stack, parts)
    return template_of(stack)
