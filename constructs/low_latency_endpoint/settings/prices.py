"""``prices`` of a settings file: items with their prices, and a file of prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BeforeValidator, ValidationInfo
from pydantic.json_schema import WithJsonSchema

from ..errors import ConfigurationError
from ..errors.findings import Finding, breaches, finding
from ..facts.limits import INSTANCE_TYPE
from ..facts.prices import PRICE, PRICED_ITEM, Price, priced_items, your_price
from ..options.rules import WRONG_KIND
from ..plan.hourly_cost import read_price_file
from .breach import BreachError
from .fields import path_beside

_FILE = "file"


def _prices(given: Any, info: ValidationInfo) -> dict[str, Price]:
    """The prices of the file, and over them those that are stated here."""
    if not isinstance(given, Mapping):
        raise BreachError(
            [finding(WRONG_KIND, got=given, allowed="a mapping of items to US dollars")]
        )
    found: dict[str, Price] = {}
    problems: list[Finding] = []
    for item, value in given.items():
        if value is None:
            continue
        if item == _FILE:
            folder = (info.context or {}).get("folder")
            try:
                # Without the settings file's folder nobody knows where it lies.
                listed = read_price_file(path_beside(str(value), info)) if folder else {}
            except ConfigurationError as error:
                problems.append(((item,), error))
            except BreachError as breach:
                problems += [((item,), error) for _, error in breach.findings]
            else:
                found = {**listed, **found}
        elif isinstance(value, Price):
            found[item] = value
        else:
            wrong = [
                *breaches((item,), PRICED_ITEM.check, item),
                *breaches((item,), PRICE.check, value),
            ]
            problems += wrong
            if not wrong:
                found[item] = your_price(value)
    if problems:
        raise BreachError(problems)
    return found


_AMOUNT = {"type": "number", "minimum": 0, "maximum": 100_000}

#: How a file states them: a file of prices is beneath those that stand beside it.
PRICES = (
    BeforeValidator(_prices),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {_FILE: {"type": "string"}, **dict.fromkeys(priced_items(), _AMOUNT)},
            "patternProperties": {f"^(?:{INSTANCE_TYPE.regex})$": _AMOUNT},
            "additionalProperties": False,
        }
    ),
)
