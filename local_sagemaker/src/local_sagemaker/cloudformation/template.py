"""Reading a template: JSON or YAML, its parameters, mappings and conditions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from ..protocols import ServiceError


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms (`!Ref`, `!GetAtt`, ...)."""


def _short_form(loader: _Loader, suffix: str, node: yaml.Node) -> Any:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
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
    try:
        template = json.loads(body)
    except ValueError:
        try:
            template = yaml.load(body, Loader=_Loader)
        except yaml.YAMLError as error:
            raise ServiceError(f"Template format error: {error}") from error
    if not isinstance(template, dict) or not template.get("Resources"):
        raise ServiceError("Template format error: At least one Resources member must be defined.")
    if "Transform" in template:
        raise ServiceError(
            f"Template transform {template['Transform']} is not emulated by the local AWS"
        )
    if "Hooks" in template:
        raise ServiceError("The template section Hooks is not emulated by the local AWS")
    _check_sections(template)
    return template


_SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
        "Rules",
        "Transform",
    }
)
_OUTPUT = frozenset({"Condition", "Description", "Export", "Value"})
_PARAMETER = frozenset(
    {
        "AllowedPattern",
        "AllowedValues",
        "ConstraintDescription",
        "Default",
        "Description",
        "MaxLength",
        "MaxValue",
        "MinLength",
        "MinValue",
        "NoEcho",
        "Type",
    }
)


def _check_sections(template: Mapping[str, Any]) -> None:
    """Refuse names that CloudFormation does not know: it refuses the whole template for one."""
    if unknown := sorted(set(template) - _SECTIONS):
        raise ServiceError(
            f"Template format error: Invalid template property or properties {unknown}"
        )
    for section, known, needed in (
        ("Outputs", _OUTPUT, "Value"),
        ("Parameters", _PARAMETER, "Type"),
    ):
        for name, declared in (template.get(section) or {}).items():
            if not isinstance(declared, dict):
                raise ServiceError(f"Template format error: [/{section}/{name}] is no object")
            if unknown := sorted(set(declared) - known):
                raise ServiceError(
                    f"Template format error: [/{section}/{name}] has invalid properties {unknown}"
                )
            if needed not in declared:
                raise ServiceError(f"Template format error: [/{section}/{name}] needs {needed}")


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


def _check_parameter(name: str, declaration: Mapping[str, Any], value: str) -> None:
    allowed = declaration.get("AllowedValues")
    if allowed is not None and value not in [_as_text(choice) for choice in allowed]:
        raise _refusal(name, declaration, "be one of AllowedValues")
    pattern = declaration.get("AllowedPattern")
    if pattern is not None and not re.fullmatch(pattern, value):
        raise _refusal(name, declaration, f"match pattern {pattern}")
    _check_numbers(name, declaration, value)
    _check_size(name, declaration, len(value), "Length", "length")


def _check_numbers(name: str, declaration: Mapping[str, Any], value: str) -> None:
    kind = declaration.get("Type")
    if kind not in ("Number", "List<Number>"):
        return
    for item in value.split(",") if kind == "List<Number>" else [value]:
        try:
            number = float(item)
        except ValueError:
            raise ServiceError(f"Parameter '{name}' must be a number.") from None
        _check_size(name, declaration, number, "Value", "value")


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
