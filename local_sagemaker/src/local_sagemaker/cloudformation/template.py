"""Reading a template: JSON or YAML, its parameters, mappings and conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from ..patterns import match_all
from ..protocols import ServiceError, read_json
from .template_shape import check_template


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms (`!Ref`, `!GetAtt`, ...), and without what those have not."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Leave `<<` a key like any other."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise ServiceError(
                "Template error: YAML aliases are not allowed in CloudFormation templates"
            )
        return super().compose_node(parent, index)


def _short_form(loader: _Loader, suffix: str, node: yaml.Node) -> Any:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(cast(yaml.MappingNode, node), deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)
# "2010-09-09" must stay a string.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_template(body: str) -> dict[str, Any]:
    """Read a template, and refuse what CloudFormation refuses of it by itself."""
    try:
        template = _read(body)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ServiceError(f"Template format error: {error}") from error
    if not isinstance(template, dict) or not template.get("Resources"):
        raise ServiceError("Template format error: At least one Resources member must be defined.")
    if "Transform" in template:
        raise ServiceError(
            f"Template transform {template['Transform']} is not emulated by the local AWS"
        )
    if "Hooks" in template:
        raise ServiceError("The template section Hooks is not emulated by the local AWS")
    check_template(template)
    return template


def _read(body: str) -> Any:
    """Read JSON or YAML; what begins as JSON is no YAML, whose reader takes minutes for a megabyte."""
    if body.lstrip().startswith("{"):
        return read_json(body)
    try:
        return yaml.load(body, Loader=_Loader)
    except (AttributeError, KeyError, TypeError) as error:  # a tag's reader, at another text
        raise ValueError(f"a YAML tag with a value that is none of its kind: {error}") from error


@dataclass(frozen=True)
class ParameterValue:
    """A parameter's value as given, and as `Ref` gives it (they differ for SSM-typed ones)."""

    given: str
    value: Any
    from_ssm: bool = False


@dataclass(frozen=True)
class Submission:
    """What a stack is, or is to become: a template with its parameters, tags and capabilities."""

    body: str = ""
    template: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, ParameterValue] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    capabilities: list[str] = field(default_factory=list)


def read_parameters(
    template: Mapping[str, Any],
    given: Mapping[str, str | None],
    previous: Mapping[str, ParameterValue],
    read_ssm: Callable[[str], str],
) -> dict[str, ParameterValue]:
    """Settle the template's parameters; a given None stands for UsePreviousValue."""
    declared = template.get("Parameters") or {}
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise ServiceError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    result, missing = {}, []
    for name, declaration in declared.items():
        value = given.get(name)
        if name in given and value is None and name in previous:
            value = previous[name].given
        if value is None and "Default" in declaration:
            value = _as_text(declaration["Default"])
        if value is None:
            missing.append(name)
            continue
        _check_parameter(name, declaration, value)
        result[name] = _typed(declaration.get("Type", "String"), value, read_ssm)
    if missing:
        raise ServiceError(f"Parameters: [{', '.join(missing)}] must have values")
    return result


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _refusal(name: str, declaration: Mapping[str, Any], rule: str) -> ServiceError:
    """Word what a parameter must be, as the template does if it says so."""
    return ServiceError(
        declaration.get("ConstraintDescription") or f"Parameter '{name}' must {rule}"
    )


_LONGEST_VALUE = 4096
"""Bytes; source: CloudFormation user guide, "CloudFormation quotas"."""


def _check_parameter(name: str, declaration: Mapping[str, Any], value: str) -> None:
    items = _items(str(declaration.get("Type")), value)
    for item in items:
        _check_item(name, declaration, item)
    _check_pattern(name, declaration, items)
    _check_numbers(name, declaration, value)
    if len(value.encode()) > _LONGEST_VALUE:
        raise ServiceError(f"Parameter '{name}' must be at most {_LONGEST_VALUE} bytes long")
    _check_size(name, declaration, len(value), "Length", "length")


def _check_item(name: str, declaration: Mapping[str, Any], item: str) -> None:
    """Hold a value, or one of a list, against what the template allows."""
    allowed = declaration.get("AllowedValues")
    if allowed is not None and item not in [_as_text(choice) for choice in allowed]:
        raise _refusal(name, declaration, "be one of AllowedValues")


def _check_pattern(name: str, declaration: Mapping[str, Any], items: list[str]) -> None:
    pattern = declaration.get("AllowedPattern")
    if pattern is None:
        return
    try:
        matches = match_all(pattern, items)
    except ValueError as error:
        raise ServiceError(f"Parameter '{name}': AllowedPattern {error}") from None
    if not matches:
        raise _refusal(name, declaration, f"match pattern {pattern}")


def _items(kind: str, value: str) -> list[str]:
    """The values of a list, and a value that is no list alone.

    Source: CloudFormation user guide, "Parameters": on a CommaDelimitedList a pattern "must match
    each value in the list", and each must be one of the allowed values.
    """
    if kind == "CommaDelimitedList" or kind.startswith("List<"):
        return [item.strip() for item in value.split(",")]
    return [value]


_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def _check_numbers(name: str, declaration: Mapping[str, Any], value: str) -> None:
    kind = declaration.get("Type")
    if kind not in ("Number", "List<Number>"):
        return
    for item in _items(kind, value):
        if not _NUMBER.fullmatch(item.strip()):
            raise ServiceError(f"Parameter '{name}' must be a number.")
        _check_size(name, declaration, float(item), "Value", "value")


def _check_size(
    name: str, declaration: Mapping[str, Any], size: float, bound: str, words: str
) -> None:
    for key, relation in ((f"Min{bound}", "at least"), (f"Max{bound}", "at most")):
        if key not in declaration:
            continue
        limit = float(declaration[key])
        outside = size < limit if key.startswith("Min") else size > limit
        if outside:
            rule = f"have a {words} of {relation} {declaration[key]}"
            raise _refusal(name, declaration, rule)


def _typed(kind: str, value: str, read_ssm: Callable[[str], str]) -> ParameterValue:
    ssm = re.fullmatch(r"AWS::SSM::Parameter::Value<(.+)>", kind)
    text = read_ssm(value) if ssm else value
    inner = ssm[1] if ssm else kind
    if inner == "CommaDelimitedList" or inner.startswith("List<"):
        items = [item.strip() for item in text.split(",")] if text else []
        return ParameterValue(value, items, bool(ssm))
    return ParameterValue(value, text, bool(ssm))
