"""The stack of the load-test fleets: deployed to test, deleted afterwards."""

from __future__ import annotations

from typing import Any

from aws_cdk import Stack, Tags
from constructs import Construct

from ..load_test_fleet.load_test_fleet import LoadTestFleet
from ..options.argument_kinds import checked_arguments
from .low_latency_endpoint_stack import LowLatencyEndpointStack


@checked_arguments
class LoadTestFleetStack(Stack):
    """A fleet for each endpoint of the settings file, in the endpoints' network.

    A stack of its own, because its interface endpoints cost by the hour: it is there while load
    is tested and deleted afterwards, and the endpoints' stack never notices.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        serving: LowLatencyEndpointStack,
        interface_endpoints: bool = True,
        **kwargs: Any,
    ) -> None:
        """A fleet for each endpoint of the settings file, in the endpoints' network.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            serving: The stack with the endpoints.
            interface_endpoints: Make the interface endpoints that the tasks need: ECR (two) and CloudWatch Logs. By default yes; no where the subnets reach these services already.
            **kwargs: Further arguments of a CDK stack, such as ``env``.
        """
        super().__init__(
            scope,
            id,
            description="Load generators for SageMaker endpoints, none while idle",
            **kwargs,
        )
        serving.settings.safeguards.apply_to(self)
        endpoints: bool | LoadTestFleet = interface_endpoints
        self.fleets: dict[str, LoadTestFleet] = {}
        for key, endpoint in serving.endpoints.items():
            fleet = LoadTestFleet(
                self,
                key,
                network=serving.network,
                private_link=serving.private_link,
                endpoint=endpoint.endpoint,
                interface_endpoints=endpoints,
            )
            fleet.output_commands()
            # One VPC takes one endpoint with private DNS for each service: the first fleet's.
            endpoints = fleet if interface_endpoints else False
            self.fleets[key] = fleet
        for name, value in serving.settings.tags.items():
            Tags.of(self).add(name, value)
