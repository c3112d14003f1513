"""The CDK app: a settings file in, one stack out.

``cdk deploy`` reads ``endpoint.yaml``; ``cdk deploy -c settings=other.yaml`` another file.
``-c load-test-fleet=true`` adds a stack of load generators: docs/load-test-fleet.md.
"""

from __future__ import annotations

import os
import sys

from aws_cdk import App, Environment

from low_latency_endpoint.errors import LowLatencyEndpointError
from low_latency_endpoint.settings import load_settings
from stacks.low_latency_endpoint_stack import LowLatencyEndpointStack


def main() -> None:
    """Synthesise the stack of the settings file."""
    app = App()
    settings = load_settings(app.node.try_get_context("settings") or "endpoint.yaml")
    # What the settings leave open, the CLI's credentials and region decide.
    env = Environment(
        account=settings.account or os.environ.get("CDK_DEFAULT_ACCOUNT"),
        region=settings.region or os.environ.get("CDK_DEFAULT_REGION"),
    )
    serving = LowLatencyEndpointStack(app, settings.stack_name, settings=settings, env=env)
    if _wanted(app, "load-test-fleet"):
        from stacks.load_test_fleet_stack import LoadTestFleetStack

        LoadTestFleetStack(
            app,
            f"{settings.stack_name}-LoadTestFleet",
            settings=settings,
            serving=serving,
            env=env,
            interface_endpoints=_wanted(app, "load-test-fleet-endpoints", "true"),
        )
    app.synth()


def _wanted(app: App, name: str, default: str = "false") -> bool:
    """A switch of the CLI's ``-c name=true``, or of a cdk.json's."""
    stated = app.node.try_get_context(name)
    return str(default if stated is None else stated).lower() == "true"


if __name__ == "__main__":
    try:
        main()
    except LowLatencyEndpointError as error:
        sys.exit(str(error))
