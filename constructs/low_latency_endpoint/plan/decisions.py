"""A plan explained: decisions in order, each with rule, inputs and source, and the warnings."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ..errors import rule
from ..errors.frozen import dataclass
from ..errors.impossible import out_of_range, refuse
from ..facts.token_values import is_token
from ..report.numbers import readable

if TYPE_CHECKING:
    from ..report.document import Cell, Part, Row

IMPOSSIBLE = rule(
    "LLE640",
    "the plan has a number that cannot be right",
    fix="Do not use the plan. Please report it with the settings file.",
)

_MAGNITUDE = 10  # between two numbers for one thing, one of which must be wrong

# Titles where the name alone does not read well
_TITLES = {
    "alarm_error_rate": "Alarm on server errors",
    "alarm_slow_requests": "Alarm on slow requests",
    "call_duration": "Duration of a call",
    "caller_connections": "Connections of all callers",
    "caller_keepalive": "TCP keep-alive of callers",
    "hourly_cost": "Cost of the instances",
    "hourly_cost_at_first": "Cost of the instances at first",
    "hourly_cost_at_least": "Cost of the instances at least",
    "hourly_cost_at_most": "Cost of the instances at most",
    "hourly_cost_in_an_update": "Cost of the instances in an update",
    "concurrent_requests": "Requests of full length at a time",
    "hugging_face_model": "Hugging Face model",
    "inference_ami": "Inference AMI",
    "initial_instances": "Initial instances",
    "inter_token_floor": "Shortest time between tokens",
    "max_instances": "Maximum instances",
    "min_instances": "Minimum instances",
    "requests_in_kv_cache": "Requests in the KV cache",
    "scale_in_cooldown": "Scale-in cooldown",
    "scale_out_cooldown": "Scale-out cooldown",
    "warm_up_requests": "Warm-up requests",
    "zone_hops_caller_to_interface_endpoint": "Zone hops, caller to interface endpoint",
    "zone_hops_interface_endpoint_to_instance": "Zone hops, interface endpoint to instance",
}


Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Decision(Generic[Value]):
    """A value of the plan with its reason, as the branch that decides it returns them."""

    name: str  # stable name, such as instances_at_peak
    value: Value  # text, number, list, or None when nothing is decided. JSON-safe
    unit: str = ""  # of the value; empty when it has none
    rule: str  # the rule that gives it, in words
    inputs: dict[str, Any] = field(default_factory=dict, hash=False)  # what went into the rule
    source: str = ""  # page that states the rule; empty when the rule is this library's own
    overridden: bool = False  # whether the caller chose the value and the rule did not
    note: str = ""  # what the rule would have given, what is not certain

    def __post_init__(self) -> None:
        values = {"value": self.value, **self.inputs}
        refuse(IMPOSSIBLE, self.name, out_of_range(numbers_of(values)))

    def overridden_by(self, value: Value | None) -> Decision[Value]:
        """This decision with the value that the caller states in its place, if there is one."""
        return self if value is None else replace(self, value=value, overridden=True)

    @property
    def title(self) -> str:
        """The name in words."""
        if "metric" in self.inputs:
            return f"Alarm on {self.inputs['metric']} {self.inputs['statistic']}"
        if "measures" in self.inputs:
            return f"Alarm on {self.inputs['measures']} {self.inputs['percentile']}"
        if self.name in _TITLES:
            return _TITLES[self.name]
        words = self.name.replace("_", " ")
        return words[0].upper() + words[1:]

    @property
    def value_text(self) -> str:
        """The value with its unit, for people."""
        if self.value is None:  # what has a unit is a number, which nobody knows
            return "not known" if self.unit else "none"
        text = _text(self.value)
        if not self.unit:
            return text
        noun, *more = self.unit.split()
        if self.value == 1 and noun not in ("ms", "bytes"):
            noun = noun.removesuffix("s")
        return " ".join((text, noun, *more))

    @property
    def inputs_text(self) -> str:
        """The inputs, for people."""
        return "; ".join(f"{name}: {_text(value)}" for name, value in self.inputs.items())

    def to_dict(self) -> dict[str, Any]:
        """The decision as JSON-safe data, keys always in the same order."""
        return asdict(self)


def numbers_of(values: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among values; a token of CDK stands for one that only the deployment knows."""
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, (int, float)) and not is_token(value)
    }


def contradicts(stated: Any, right: float | None) -> bool:
    """Whether two numbers for one thing are an order of magnitude apart."""
    if not stated or not right or is_token(stated):
        return False
    return not right / _MAGNITUDE < stated < right * _MAGNITUDE


def alarm_name(metric: str, statistic: str) -> str:
    """The name of the decision on an alarm's threshold."""
    words = metric.replace("Latency", "_latency").lower()
    return f"alarm_{words}_{statistic.lower().replace('.', '_')}"


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return readable(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item) for item in value)
    return str(value)


class PlanWarning(str):
    """A warning: text with a stable ``id``, by which it can be acknowledged."""

    __slots__ = ("id",)
    id: str

    def __new__(cls, id: str, text: str) -> PlanWarning:
        warning = super().__new__(cls, text)
        warning.id = id
        return warning


class SummaryLine(NamedTuple):
    """One of a plan's first lines."""

    title: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """Why a plan is what it is, to be printed: nothing is read back out of it."""

    decisions: tuple[Decision[Any], ...]  # in the order in which a reader needs them
    # what is suspicious, assumed, or stated by no page of AWS's: texts, each with an id
    warnings: tuple[PlanWarning, ...] = ()
    summary: tuple[SummaryLine, ...] = ()  # the plan in six lines

    def __getitem__(self, name: str) -> Decision[Any]:
        for decision in self.decisions:
            if decision.name == name:
                return decision
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(decision.name == name for decision in self.decisions)

    def __iter__(self) -> Iterator[Decision[Any]]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-safe data; the same plan always gives the same text."""
        return {
            "decisions": [decision.to_dict() for decision in self.decisions],
            "warnings": [str(warning) for warning in self.warnings],
        }

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_markdown(self) -> str:
        """The plan in Markdown, for a pull request: six lines, warnings, then the decisions."""
        from ..report.document import Document  # loaded when somebody reads the plan
        from ..report.markdown import as_markdown

        return as_markdown(Document("", explained(self, verbose=True)))


def explained(plan: Explanation, *, verbose: bool, said: Container[str] = ()) -> Sequence[Part]:
    """The plan in its lines and its warnings but for those ``said``; verbose with decisions."""
    from ..report.document import Listed, Row, Section, Table

    lines = [Row(line.title, line.text) for line in plan.summary]
    own = [text for text in plan.warnings if text not in said]
    parts: list[Part] = [Listed([*lines, *warned(own)], aligned=True)]
    if verbose:
        heads = ("Decision", "Value", "From", "Why", "Note", "Source")
        table = Table(heads, [*map(_row, plan)], align="l", stacked=True)
        parts.append(Section("", [table]))
    return parts


def warned(texts: Sequence[str]) -> list[Row]:
    """Warnings as lines."""
    from ..report.document import Row

    return [Row("Warning", text, tone="careful") for text in texts]


def _row(decision: Decision[Any]) -> tuple[str | Cell, ...]:
    from ..report.document import Cell

    chosen = " (your choice)" if decision.overridden else ""
    source = Cell("AWS", link=decision.source) if decision.source else ""
    value = Cell(f"{decision.value_text}{chosen}", "strong")
    inputs, rule = Cell(decision.inputs_text, "soft"), decision.rule
    return decision.title, value, inputs, rule, decision.note, source


PLAN_METADATA = "LowLatencyEndpoint::Plan"  # of the first variant; of others with ::name behind
_READ = (
    "subnets",
    "instance_type",
    "routing_strategy",
    "min_instances",
    "max_instances",
    "scaling_metric",
    "scaling_target",
)
_LOAD = {
    "peak TPS": "peak_tps",
    "TPS per instance": "tps_per_instance",
    "safety factor": "safety_factor",
}


def values_in_template(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What the commands read in a deployed template's metadata, of a plan's ``to_dict()``.

    Templates of before have all of the plan there. Thresholds are in milliseconds, as the alarms
    have them; ``peak_tps`` is the highest of the day.
    """
    if "decisions" not in plan:
        return dict(plan)
    found: dict[str, Any] = {}
    alarms: dict[str, float] = {}
    peaks: list[float] = []  # other ones of the day
    for decision in plan["decisions"]:
        name, value, inputs = decision["name"], decision.get("value"), decision.get("inputs", {})
        if name in _READ and value is not None:
            found[name] = value
        if name in ("instances_at_peak", "scaling_target"):
            for words, key in _LOAD.items():
                if words in inputs:
                    found.setdefault(key, inputs[words])
        if name.startswith("peak_range_"):
            peaks.append(inputs["peak TPS"])
        if "metric" in inputs and value is not None:
            exact = inputs.get("threshold in microseconds", 1000 * value) / 1000
            alarms[f"{inputs['metric']} {inputs['statistic']}"] = exact
        if "measures" in inputs and value is not None:
            alarms[f"{inputs['measures']} {inputs['percentile']}"] = 1000 * value
    if "peak_tps" in found:
        found["peak_tps"] = max(found["peak_tps"], *peaks, 0)
    return dict(sorted({**found, "alarms": alarms}.items()))


def changed_decisions(
    before: Mapping[str, Explanation], after: Mapping[str, Explanation]
) -> list[dict[str, Any]]:
    """What differs, by endpoint and decision; values as text, none where it is not decided."""
    changes = []
    for name in dict.fromkeys([*before, *after]):
        old = {decision.name: decision for decision in before.get(name, ())}
        new = {decision.name: decision for decision in after.get(name, ())}
        for decision in dict.fromkeys([*old, *new]):
            was, now = old.get(decision), new.get(decision)
            if was is None or now is None or was.value != now.value:
                changes.append(
                    {
                        "endpoint": name,
                        "decision": decision,
                        "title": (now or was).title,  # type: ignore[union-attr]  # one of them is there
                        "before": was.value_text if was else None,
                        "after": now.value_text if now else None,
                    }
                )
    return changes
