"""The CDK app: a settings file in, one stack out.

``cdk deploy`` reads ``endpoint.yaml``; ``cdk deploy -c settings=other.yaml`` another file.
``-c load-test-fleet=true`` adds a stack of load generators: docs/how-to/load-test-fleet.md.
"""

from __future__ import annotations

import sys

from aws_cdk import App

from low_latency_endpoint.errors import LowLatencyEndpointError
from stacks.serving_stack import ServingStack
from stacks.testing_stack import TestingStack


def main() -> None:
    """Synthesise the stack of the settings file."""
    app = App()
    serving = ServingStack.of_app(app)
    TestingStack.if_wanted(app, serving)
    serving.synth()


if __name__ == "__main__":
    try:
        main()
    except LowLatencyEndpointError as error:
        sys.exit(str(error))
