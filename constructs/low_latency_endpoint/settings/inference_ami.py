"""The version of the instances' system image, as settings state it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic.json_schema import WithJsonSchema

from ..errors.findings import finding
from ..plan import limits
from .breach import BreachError
from .fields import checked
from .rules import CUSTOM_AMI


def _ami(value: Any) -> Any:
    """A version that is known, or any other one that is marked as custom."""
    if isinstance(value, Mapping) and set(value) == {"custom"}:
        return checked(CUSTOM_AMI, value["custom"])
    if isinstance(value, str) and limits.INFERENCE_AMI.holds(value):
        return value
    raise BreachError(
        [
            finding(
                limits.INFERENCE_AMI.rule,
                got=value,
                allowed=limits.INFERENCE_AMI.allowed,
                fix="Choose one of the versions, or write {custom: name} for one that AWS added since.",
            )
        ]
    )


#: Held as the version's text, custom or not.
InferenceAmi = Annotated[
    str,
    BeforeValidator(_ami),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(limits.INFERENCE_AMI.values)},
                {
                    "type": "object",
                    "properties": {"custom": {"type": "string"}},
                    "required": ["custom"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
