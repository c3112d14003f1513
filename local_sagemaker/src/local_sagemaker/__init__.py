"""A local AWS around SageMaker: no account, no Docker, nothing but loopback.

It is moto's server with a CloudFormation engine of its own, SageMaker endpoints that answer with
model servers, alarms that are judged, and the resource types that moto lacks, so that boto3 and the
unmodified CDK CLI create, call, update and destroy. README.md shows the first call; docs/ says what
it does, and what it does not prove.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .deployment import DeployedStack, DeploymentFailed, delete_stack, deploy_template
    from .runtime.options import RuntimeOptions
    from .server import LocalAws, LocalAwsError

__version__ = "0.1.0"
__all__ = [
    "DeployedStack",
    "DeploymentFailed",
    "LocalAws",
    "LocalAwsError",
    "RuntimeOptions",
    "delete_stack",
    "deploy_template",
]
# Imported when they are asked for: pytest imports this package wherever it is installed.
_MODULES = {"RuntimeOptions": "runtime.options", "LocalAws": "server", "LocalAwsError": "server"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES.get(name, 'deployment')}", __name__), name)


def __dir__() -> list[str]:
    return __all__
