"""The CDK app: a settings file in, one stack out.

``cdk deploy`` reads ``endpoint.yaml``; ``cdk deploy -c settings=other.yaml`` another file.
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
    LowLatencyEndpointStack(
        app,
        settings.stack_name,
        settings=settings,
        # What the settings leave open, the CLI's credentials and region decide.
        env=Environment(
            account=settings.account or os.environ.get("CDK_DEFAULT_ACCOUNT"),
            region=settings.region or os.environ.get("CDK_DEFAULT_REGION"),
        ),
    )
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except LowLatencyEndpointError as error:
        sys.exit(str(error))
