"""A warm-up and what it needs."""

from __future__ import annotations

import pytest

from low_latency_endpoint import RuntimePrivateLink
from low_latency_endpoint.warm_up.warm_up import WarmUp
from tests.synth.warm_up.in_template import PAYLOAD


@pytest.fixture
def make(stack, parts):
    """Make a warm-up and what it needs; keyword arguments are the warm-up's."""

    def make(**given):
        network = given.pop("network", None) or parts.network(stack)
        link = given.pop("private_link", None) or RuntimePrivateLink(stack, "Link", network=network)
        endpoint = given.pop("endpoint", None) or parts.endpoint(stack)
        given = {"payload": PAYLOAD, **given}
        return WarmUp(
            stack, "WarmUp", endpoint=endpoint, private_link=link, network=network, **given
        )

    return make
