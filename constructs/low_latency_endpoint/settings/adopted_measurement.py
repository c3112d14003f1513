"""A settings file with a measured value in it, not written yet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..plan.decisions import Explanation
from .plan_report import explain_variants
from .stack import Settings
from .yaml_editing import YamlEdit


@dataclass(frozen=True, kw_only=True)
class AdoptedMeasurement:
    """What was measured, and the file and its plans before and with it."""

    key: str  # of the endpoint in the settings
    source: str  # what measured it
    how: str  # in words
    # what changes in the file; :func:`.yaml_editing.write_edit` writes it
    edit: YamlEdit
    settings_before: Settings  # what the file says now, and with the measured value
    settings_after: Settings
    after: dict[str, Explanation]  # the plans of all endpoints with it, explained
    measured: dict[str, float]  # the measured values, as JSON-safe data
    # stated numbers of instances that are below what the peak needs now, and are raised too
    raised: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()  # what to know of the measured value before anything else

    @cached_property
    def before(self) -> dict[str, Explanation]:
        """The plans of all endpoints as the file is now, explained."""
        return explain_variants(self.settings_before)
