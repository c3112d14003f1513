"""What moto gets wrong or does not know, put right: importing this does it.

Each module is about one thing in moto 5.2; the tests hold every one of them.
"""

from __future__ import annotations

from ..botocore_data import read_once

read_once()

from moto.ec2.models import ec2_backends  # noqa: E402
from moto.moto_api._internal.models import moto_api_backend  # noqa: E402

from . import (  # noqa: E402, F401
    cloudwatch_alarms,
    code_signing,
    deliveries,
    ecs,
    event_rules,
    event_sources,
    keys,
    lambda_functions,
    log_groups,
    networks,
    parameters,
    policies,
    public_buckets,
    queues,
    record_sets,
    repositories,
    shared_vpcs,
    storage,
    unknown_operations,
)


def forget() -> None:
    ec2_backends.clear()  # a reset would make the thousands of images anew that each one has
    moto_api_backend.reset()
