"""A local AWS to deploy into: no account, no Docker, nothing but loopback.

It is moto's server with a CloudFormation engine of its own and the resource types that moto lacks,
so that the unmodified CDK CLI bootstraps, deploys, updates and destroys. See docs/local-aws.md for
what a deployment into it proves and what it does not.
"""

from __future__ import annotations

from .deployment import DeployedStack, DeploymentFailed, delete_stack, deploy_template
from .runtime.options import RuntimeOptions
from .server import LocalAws, LocalAwsError

__all__ = [
    "DeployedStack",
    "DeploymentFailed",
    "LocalAws",
    "LocalAwsError",
    "RuntimeOptions",
    "delete_stack",
    "deploy_template",
]
