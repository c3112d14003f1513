"""The prices that a settings file states: its own, over those of a price file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ConfigurationError
from ..errors.findings import Place
from ..facts.limits import INSTANCE_TYPE
from ..facts.prices import PRICE, PRICED_ITEM, Price, priced_items, your_price
from ..options.compound_kinds import MappingKind
from ..options.kind import (
    WRONG,
    WRONG_KIND,
    FileReading,
    NumberKind,
    Schema,
    TextKind,
    Wrong,
    any_wrong,
)
from ..plan.price_file import read_price_file

_FILE = "file"


class PricesKind(MappingKind):
    """US dollars by item, and under ``file`` a price file, which the stated prices override."""

    def __init__(self) -> None:
        super().__init__(TextKind(PRICED_ITEM), NumberKind(whole=False, limit=PRICE))

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        if not isinstance(value, Mapping):
            allowed = "a mapping of items to US dollars"
            return reading.refuse(WRONG_KIND, place, got=value, allowed=allowed)
        before = len(reading.findings)
        listed: dict[str, Price] = {}
        stated: dict[str, Price] = {}
        for item, amount in value.items():
            if amount is None:
                continue
            if item == _FILE:
                listed = _listed(amount, (*place, item), reading)
            elif isinstance(amount, Price):
                stated[item] = amount
            else:
                key = self.key.read(item, (*place, item), reading)
                dollars = self.value.read(amount, (*place, item), reading)
                if not any_wrong([key, dollars]):
                    stated[item] = your_price(amount)
        return {**listed, **stated} if len(reading.findings) == before else WRONG

    def schema(self) -> Schema:
        amount = self.value.schema()
        return {
            "type": "object",
            "properties": {_FILE: {"type": "string"}, **dict.fromkeys(priced_items(), amount)},
            "patternProperties": {f"^(?:{INSTANCE_TYPE.regex})$": amount},
            "additionalProperties": False,
        }


def _listed(file: Any, place: Place, reading: FileReading) -> dict[str, Price]:
    """The prices of a file; none without the settings' folder, as nobody knows where it lies."""
    name = TextKind(as_text=True).read(file, place, reading)
    if isinstance(name, Wrong) or not reading.folder:
        return {}
    path = reading.path(place, name)
    if isinstance(path, Wrong):
        return {}
    try:
        return read_price_file(path)
    except ConfigurationError as error:
        reading.findings.append((place, error))
        return {}
