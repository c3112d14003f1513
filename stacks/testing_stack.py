"""What ``cdk deploy`` on this repository deploys besides, while load is tested."""

from __future__ import annotations

from typing import Self

from aws_cdk import App, Environment

from low_latency_endpoint import LoadTestFleetStack

from .serving_stack import ServingStack


class TestingStack(LoadTestFleetStack):
    """Load generators for the endpoints: there while ``-c load-test-fleet=true`` is said."""

    __test__ = False  # no test class of pytest's

    @classmethod
    def if_wanted(cls, app: App, serving: ServingStack) -> Self | None:
        """None unless it is asked for; without endpoints: ``-c load-test-fleet-endpoints=false``."""
        if not _said(app, "load-test-fleet", "false"):
            return None
        return cls(
            app,
            f"{serving.settings.stack_name}-LoadTestFleet",
            serving=serving,
            env=Environment(account=serving.account, region=serving.region),
            interface_endpoints=_said(app, "load-test-fleet-endpoints", "true"),
        )


def _said(app: App, name: str, default: str) -> bool:
    """A switch of the CLI's ``-c name=true``, or of a cdk.json's."""
    stated = app.node.try_get_context(name)
    return str(default if stated is None else stated).lower() == "true"
