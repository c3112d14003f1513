"""What moto gets wrong or does not know, put right.

Each function in an `APPLY` changes one thing in moto 5.2; the tests hold every one of them.
"""

from __future__ import annotations

import functools

from ..botocore_data import read_once

with read_once():
    from . import (
        cloudwatch_alarms,
        ecs,
        lambda_functions,
        networks,
        policies,
        private_names,
        unknown_operations,
    )

_ALL = (
    cloudwatch_alarms,
    ecs,
    lambda_functions,
    networks,
    policies,
    private_names,
    unknown_operations,
)


@functools.cache
def apply() -> None:
    """Apply every correction, once per process."""
    for module in _ALL:
        for correct in module.APPLY:
            correct()
