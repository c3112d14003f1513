"""CDK's tokens, told by their spelling: values that are known at deployment only."""

from __future__ import annotations

import struct
from typing import Any

from ..errors import rule

_NUMBER_TOKEN = b"\xfb\xff"  # of the double; see createTokenDouble in CDK's encoding.ts

PLAN_NEEDS_VALUES = rule(
    "LLE825",
    "the plan cannot use a value that is known only at deployment",
    fix="State a value that is known at synth: LowLatencyEndpoint and its options take no token here.",
    source="/cdk/v2/guide/tokens.html",
)


def is_token(value: Any) -> bool:
    """Whether CDK will resolve this value later (no call into jsii, so cheap)."""
    if isinstance(value, str):
        return "${Token[" in value or "#{Token[" in value
    if isinstance(value, (int, float)):
        return abs(value) > 1e280 and _encodes_token(value)
    if isinstance(value, list):
        return any(is_token(item) for item in value)
    return False


def _encodes_token(number: float) -> bool:
    try:
        return struct.pack(">d", number).startswith(_NUMBER_TOKEN)
    except struct.error:  # a whole number beyond all doubles
        return False
