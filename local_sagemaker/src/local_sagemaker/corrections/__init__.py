"""What moto gets wrong or does not know, put right: importing this does it.

Each module is about one thing in moto 5.2; the tests hold every one of them.
"""

from __future__ import annotations

from importlib import import_module

from ..botocore_data import read_once

with read_once():
    for name in (
        "cloudwatch_alarms",
        "ecs",
        "lambda_functions",
        "networks",
        "policies",
        "private_names",
        "unknown_operations",
    ):
        import_module(f".{name}", __name__)
    from moto.ec2.models import ec2_backends
    from moto.moto_api._internal.models import moto_api_backend


def forget() -> None:
    """Have moto forget everything."""
    ec2_backends.clear()  # a reset would make the thousands of images anew that each one has
    moto_api_backend.reset()
