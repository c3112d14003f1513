"""What ``cdk deploy`` on this repository deploys: the endpoints of one settings file."""

from __future__ import annotations

from typing import Self

from aws_cdk import App

from low_latency_endpoint import LowLatencyEndpointStack


class ServingStack(LowLatencyEndpointStack):
    """The endpoints of the file that ``-c settings=other.yaml`` names, or a ``cdk.json``."""

    @classmethod
    def of_app(cls, app: App) -> Self:
        """By default those of ``endpoint.yaml``."""
        return cls.from_settings(app, app.node.try_get_context("settings") or "endpoint.yaml")
