"""A template evaluated for one stack: conditions, functions, properties."""

from __future__ import annotations

import base64
import copy
import ipaddress
import re
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any

from botocore.exceptions import ClientError
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from ..connections import local_client
from ..protocols import ServiceError
from ..resources.resource_type import Place
from ..resources.table import TYPES, find_type, is_custom
from ..schemas import schema_of, violations
from .resource_order import creation_order, explicit_dependencies, mentions, references
from .result_lengths import ResultLengths
from .stacks import DeployedResource, Output, Stack, StackStore
from .stacks import store as stack_store
from .template import Submission
from .template_shape import check_arguments, in_full

_PSEUDO = {
    "AWS::AccountId",
    "AWS::NoValue",
    "AWS::NotificationARNs",
    "AWS::Partition",
    "AWS::Region",
    "AWS::StackId",
    "AWS::StackName",
    "AWS::URLSuffix",
}


def check_references(template: Mapping[str, Any]) -> None:
    """Refuse references to what is not in the template, before anything is created."""
    resources = template["Resources"]
    parameters = {*template.get("Parameters", {}), *_PSEUDO}
    explicit = {name for resource in resources.values() for name in explicit_dependencies(resource)}
    for block in ("Resources", "Outputs"):
        missing = {*references(template.get(block))} - parameters - set(resources)
        missing |= explicit - set(resources) if block == "Resources" else set()
        if missing:
            raise ServiceError(
                "Template format error: Unresolved resource dependencies "
                f"[{', '.join(sorted(missing))}] in the {block} block of the template"
            )
        for name, attribute in mentions(template.get(block)):
            if name in resources and isinstance(attribute, str):
                _check_attribute(name, resources[name]["Type"], attribute)
    for block in ("Conditions", "Rules"):
        if missing := {*references(template.get(block))} - parameters:
            raise ServiceError(
                f"Template format error: Unresolved dependencies [{', '.join(sorted(missing))}]. "
                f"Cannot reference resources in the {block} block of the template"
            )


def _check_attribute(logical_id: str, type_name: str, attribute: str) -> None:
    """Refuse an attribute that CloudFormation's schema of the type does not have."""
    known = (schema_of(type_name) or {}).get("attributes")
    if known is not None and attribute not in known:
        raise ServiceError(
            f"Template error: resource {logical_id} does not support attribute type {attribute} "
            f"in Fn::GetAtt. {type_name} has: {', '.join(known) or 'none'}"
        )


PENDING = "\0known after deployment:"
"""Marks a value that a change set cannot know: it belongs to a resource that is yet to be made."""


class _NoValue:
    """What `Ref: AWS::NoValue` gives: the property is not there at all."""


NO_VALUE = _NoValue()


_WHOLE = re.compile("[0-9]{1,9}")
_DYNAMIC = re.compile(r"\{\{resolve:([^}]*)\}\}")
_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_INDEX = re.compile(r"[-+]?[0-9]+(?:\.0*)?")


class Evaluation:
    """A template evaluated for a stack; resources that are `pending` do not exist by now."""

    def __init__(
        self,
        place: Place,
        stacks: StackStore,
        stack: Stack,
        submitted: Submission,
        pending: Collection[str] = (),
        asks: Collection[str] = ("exports", "ssm"),
    ) -> None:
        self._place = place
        self._stacks = stacks
        self._existing = stack.resources
        self._pending = pending
        self._asks = asks
        self._conditions: dict[str, bool | None] = {}
        self._tags = submitted.tags
        self._lengths = ResultLengths()
        self.imports: set[str] = set()
        self.template = submitted.template
        self.values = {name: parameter.value for name, parameter in submitted.parameters.items()}
        self.values |= {
            "AWS::AccountId": place.account,
            "AWS::Region": place.region,
            "AWS::StackName": stack.name,
            "AWS::StackId": stack.id,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::NotificationARNs": stack.notification_arns,
        }
        self.resources: dict[str, dict[str, Any]] = {
            name: resource
            for name, resource in self.template["Resources"].items()
            if "Condition" not in resource or self.condition(resource["Condition"])
        }
        self.order = creation_order(self.resources, place.options.creation_order)

    def foresee(self) -> None:
        """Evaluate what waits for no resource: CloudFormation refuses the rest of it at once."""
        for name in self.template.get("Conditions", {}):
            self.condition(name)
        for name, rule in self.template.get("Rules", {}).items():
            self._assert(name, rule)
        for logical_id in self.resources:
            self.properties(logical_id)
        self.outputs()

    def _assert(self, name: str, rule: Mapping[str, Any]) -> None:
        if "RuleCondition" in rule and not self._test(rule["RuleCondition"]):
            return
        for assertion in rule["Assertions"]:
            if not self._test(assertion["Assert"]):
                said = assertion.get("AssertDescription", "an assertion is false")
                raise ServiceError(f"Template validation error: Rule {name}: {said}")

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Resolve a resource's properties, and add the stack's tags where the type takes them."""
        declared = self.resources[logical_id].get("Properties") or {}
        self._lengths.begin(logical_id)
        resolved = self.resolve(copy.deepcopy(declared))
        return self._with_stack_tags(self.resources[logical_id]["Type"], resolved)

    def _with_stack_tags(self, type_name: str, properties: dict[str, Any]) -> dict[str, Any]:
        kind = TYPES.get(type_name)
        if kind is None or kind.tagged is None or not self._tags:
            return properties
        own = properties.get("Tags")
        if kind.tagged == "map":
            return {**properties, "Tags": {**self._tags, **(own or {})}}
        named = {tag["Key"] for tag in own or []}
        added = [{"Key": k, "Value": v} for k, v in self._tags.items() if k not in named]
        return {**properties, "Tags": [*(own or []), *added]}

    def outputs(self) -> list[Output]:
        result = []
        self._lengths.begin("Outputs")
        for key, declared in (self.template.get("Outputs") or {}).items():
            if "Condition" in declared and not self.condition(declared["Condition"]):
                continue
            value = self.resolve(declared["Value"])
            if value is NO_VALUE or isinstance(value, (dict, list)):
                raise ServiceError(
                    f"Template format error: Output {key} is malformed: The Value field of every "
                    "Outputs member must evaluate to a String."
                )
            exported = self._exported(key, declared["Export"]) if "Export" in declared else None
            result.append(Output(key, _text(value), declared.get("Description"), exported))
        return result

    def _exported(self, key: str, export: Mapping[str, Any]) -> str:
        name = _text(self.resolve(export["Name"]))
        _check_independent(f"Outputs {key}", name)
        if not re.fullmatch(r"[A-Za-z0-9:-]+", name):
            raise ServiceError(
                f"Template format error: Output {key} is malformed. The Name field of every Export "
                "member must be specified and consist only of alphanumeric characters, colons, or "
                "hyphens."
            )
        return name

    def refusals(self) -> dict[str, str]:
        """Find what CloudFormation or this emulation refuses, before a stack half exists."""
        ahead = copy.copy(self)
        ahead._pending, ahead._asks = self.template["Resources"], ("exports",)
        ahead.foresee()
        result = {}
        for logical_id in self.order:
            declared = self.resources[logical_id]
            kind = find_type(declared["Type"])
            if kind is None:
                result[logical_id] = f"{declared['Type']} is not emulated by the local AWS"
                continue
            names = [n for n in declared.get("Properties") or {} if not kind.honours(n)]
            if names:
                result[logical_id] = not_emulated(declared["Type"], ", ".join(names))
            elif wrong := (
                violations(declared["Type"], declared.get("Properties") or {})
                or violations(declared["Type"], _judged(ahead.properties(logical_id)))
            ):
                result[logical_id] = invalid(logical_id, wrong)
            unknown = set(declared) - _RESOURCE_KEYS
            if unknown:
                result[logical_id] = (
                    f"{declared['Type']}: {', '.join(sorted(unknown))} is not emulated"
                )
        return result

    def resolve(self, value: Any) -> Any:
        """Give the value with every function in it evaluated."""
        if isinstance(value, list):
            items = [self.resolve(item) for item in value]
            return [item for item in items if item is not NO_VALUE]
        if isinstance(value, dict):
            if len(value) == 1:
                name, argument = next(iter(value.items()))
                if name == "Ref":
                    return self._ref(argument)
                if name.startswith("Fn::"):
                    return self._function(name, argument)
            pairs = {key: self.resolve(item) for key, item in value.items()}
            return {key: item for key, item in pairs.items() if item is not NO_VALUE}
        if isinstance(value, str) and "{{resolve:" in value:
            return self._lengths.replaced(
                _DYNAMIC, lambda found: self._dynamic(found[1]), value, "{{resolve:}}"
            )
        return value

    def condition(self, name: str) -> bool:
        """Evaluate one of the template's conditions, once."""
        if name in self._conditions and self._conditions[name] is None:
            raise ServiceError(f"Template format error: Circular dependency of condition {name}")
        if name not in self._conditions:
            self._conditions[name] = None
            self._conditions[name] = self._test(self.template["Conditions"][name])
        return bool(self._conditions[name])

    def _test(self, expression: Any) -> bool:
        name, argument = next(iter(expression.items()))
        if name == "Condition":
            return self.condition(argument)
        if name in ("Fn::And", "Fn::Or", "Fn::Not"):
            parts = [self._test(item) for item in argument]
            return {"Fn::And": all(parts), "Fn::Or": any(parts), "Fn::Not": not parts[0]}[name]
        given = self.resolve(argument)
        check_arguments(self.template, name, given)
        left, right = (_compared(item) for item in given)
        if name == "Fn::Equals":
            return bool(left == right)
        if name == "Fn::Contains":
            return right in left
        if name == "Fn::EachMemberEquals":
            return all(item == right for item in left)
        return all(item in right for item in left)

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self.values:
            return self.values[name]
        if name in self._pending and name in self.resources:
            return f"{PENDING}{name}\0"
        return self._found(name).physical_id

    def _function(self, name: str, argument: Any) -> Any:
        if name == "Fn::If":  # what is not chosen is not evaluated
            return self.resolve(argument[1] if self.condition(argument[0]) else argument[2])
        given = self.resolve(in_full(name, argument))
        if name in ("Fn::FindInMap", "Fn::ImportValue"):
            _check_independent(name, given)
        if waiting := _waiting(given):
            return waiting
        check_arguments(self.template, name, given)
        return _FUNCTIONS[name](self, given)

    def _get_att(self, argument: Any) -> Any:
        return self._attribute(argument[0], _text(argument[1]))

    def _sub(self, argument: Any) -> str:
        text, own = argument if len(argument) == 2 else (argument[0], {})

        def replace(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            resource, _, attribute = name.partition(".")
            value = own[name] if name in own else self._mentioned(resource, attribute)
            if isinstance(value, (dict, list)):
                raise ServiceError(
                    f"Template error: variable {name} in Fn::Sub expression does not resolve to a "
                    "string"
                )
            return _text(value)

        return self._lengths.replaced(_VARIABLE, replace, text, "Fn::Sub")

    def _mentioned(self, name: str, attribute: str) -> Any:
        return self._attribute(name, attribute) if attribute else self._ref(name)

    def _join(self, argument: Any) -> str:
        delimiter, texts = _text(argument[0]), [_text(item) for item in argument[1]]
        length = len(delimiter) * max(0, len(texts) - 1) + sum(map(len, texts))
        self._lengths.add("Fn::Join", length)
        return delimiter.join(texts)

    def _select(self, argument: Any) -> Any:
        if not _INDEX.fullmatch(_text(argument[0])):
            raise ServiceError(
                "Template error: Fn::Select requires a list argument with a valid index value as its "
                "first element"
            )
        index, items = int(float(argument[0])), argument[1]
        if not 0 <= index < len(items):
            raise ServiceError(
                f"Template error: Fn::Select cannot select nonexistent value at index {index}"
            )
        return items[index]

    def _split(self, argument: Any) -> list[str]:
        delimiter, text = _text(argument[0]), _text(argument[1])
        self._lengths.add("Fn::Split", len(text), texts=text.count(delimiter) + 1)
        return text.split(delimiter)

    def _find_in_map(self, argument: Any) -> Any:
        found: Any = self.template["Mappings"]
        keys = [_text(item) for item in argument]
        for key in keys:
            if key not in found:
                raise ServiceError(f"Template error: Unable to get mapping for {'::'.join(keys)}")
            found = found[key]
        return found

    def _base64(self, argument: Any) -> str:
        content = _text(argument).encode()
        self._lengths.add("Fn::Base64", -(-len(content) // 3) * 4)
        return base64.b64encode(content).decode()

    def _cidr(self, argument: Any) -> list[str]:
        block, count, *rest = (_text(item) for item in argument)
        for number in (count, *rest):
            if not _WHOLE.fullmatch(number):
                raise ServiceError(
                    f"Template error: every Fn::Cidr object requires whole numbers: {number}"
                )
        try:
            network = ipaddress.ip_network(block)
            bits = int(rest[0]) if rest else network.max_prefixlen - network.prefixlen
            subnets = network.subnets(new_prefix=network.max_prefixlen - bits)
            found = [str(subnet) for subnet in islice(subnets, int(count))]
        except ValueError as error:
            raise ServiceError(f"Template error: every Fn::Cidr object requires {error}") from None
        if len(found) < int(count):
            raise ServiceError(
                f"Template error: every Fn::Cidr object requires at most {len(found)} blocks of {block}"
            )
        return found

    def _stack_output(self, argument: Any) -> Any:
        if "exports" not in self._asks:
            return f"{PENDING}Fn::GetStackOutput\0"
        region, stack, output = (argument.get(n) for n in ("Region", "StackName", "OutputName"))
        # Unlike an import, this does not hold the other stack's output there.
        stacks = self._stacks
        if region not in (None, self._place.region):
            stacks = stack_store(self._place.account, str(region))
        with stacks.lock:
            found = stacks.alive.get(str(stack))
            outputs = {output.key: output.value for output in found.outputs} if found else {}
        if output not in outputs:
            raise ServiceError(
                f"Template error: stack {stack} has no output {output}, or does not exist"
            )
        return outputs[output]

    def _attribute(self, logical_id: str, name: str) -> Any:
        if logical_id in self._pending and logical_id in self.resources:
            _check_attribute(logical_id, self.resources[logical_id]["Type"], name)
            return f"{PENDING}{logical_id}.{name}\0"
        resource = self._found(logical_id)
        if name in resource.attributes:
            return resource.attributes[name]
        if is_custom(resource.type):
            raise ServiceError(
                "CustomResource attribute error: Vendor response doesn't contain "
                f"{name} attribute in object {resource.physical_id}"
            )
        _check_attribute(logical_id, resource.type, name)
        raise ServiceError(
            f"Template error: attribute {name} of {resource.type} is not emulated by the local AWS; "
            f"it has: {', '.join(sorted(resource.attributes)) or 'none'}"
        )

    def _found(self, logical_id: str) -> DeployedResource:
        if logical_id not in self._existing:
            raise ServiceError(f"Template error: resource {logical_id} does not exist")
        return self._existing[logical_id]

    def _import(self, argument: Any) -> str:
        if "exports" not in self._asks:
            return f"{PENDING}Fn::ImportValue\0"
        name, exports = _text(argument), self._stacks.exports()
        if name not in exports:
            raise ServiceError(f"No export named {name} found.")
        self.imports.add(name)
        return exports[name][1].value

    def _get_azs(self, argument: Any) -> list[str]:
        region = _text(argument) or self._place.region
        if region not in RegionsAndZonesBackend.zones:
            raise ServiceError(f"Template error: Fn::GetAZs: {region} is no Region")
        answer = local_client("ec2", region, self._place.url).describe_availability_zones()
        return [zone["ZoneName"] for zone in answer["AvailabilityZones"]]

    def _dynamic(self, inner: str) -> str:
        service, _, reference = inner.partition(":")
        name = reference.split(":")[0]
        if not name:
            raise ServiceError(
                f"Incorrect format is used in the following reference: [{{{{resolve:{inner}}}}}]"
            )
        if service != "ssm":
            raise ServiceError(f"Dynamic references to {service} are not emulated")
        if "ssm" not in self._asks:
            return f"{PENDING}ssm:{name}\0"
        try:
            return str(self._place.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])
        except ClientError as error:
            raise ServiceError(f"Parameters: [ssm:{name}]: {error}") from None


_FUNCTIONS: dict[str, Callable[[Evaluation, Any], Any]] = {
    "Fn::GetAtt": Evaluation._get_att,
    "Fn::Sub": Evaluation._sub,
    "Fn::Join": Evaluation._join,
    "Fn::Select": Evaluation._select,
    "Fn::Split": Evaluation._split,
    "Fn::FindInMap": Evaluation._find_in_map,
    "Fn::GetAZs": Evaluation._get_azs,
    "Fn::Base64": Evaluation._base64,
    "Fn::Cidr": Evaluation._cidr,
    "Fn::ImportValue": Evaluation._import,
    "Fn::GetStackOutput": Evaluation._stack_output,
}


def _waiting(argument: Any) -> str:
    """Give the first of a function's arguments that is not known yet, or ""."""
    parts = list(argument.values()) if isinstance(argument, dict) else argument
    parts = parts if isinstance(parts, list) else [parts]
    return next((part for part in parts if isinstance(part, str) and PENDING in part), "")


def _judged(value: Any) -> Any:
    """Put a function back where a value is not known yet: it is judged when it is."""
    if isinstance(value, dict):
        return {key: _judged(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_judged(item) for item in value]
    return {"Ref": value} if _waiting(value) else value


def _check_independent(what: str, argument: Any) -> None:
    """Refuse what CloudFormation has to know before it makes anything."""
    if _waiting(argument):
        raise ServiceError(
            f"Template error: the attribute in {what} must not depend on any resources, imported "
            "values, or Fn::GetAZs"
        )


def _compared(value: Any) -> Any:
    """Give a value as conditions compare it: numbers and booleans as text."""
    if isinstance(value, list):
        return [_compared(item) for item in value]
    return value if isinstance(value, dict) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list, _NoValue)):
        raise ServiceError("Template error: a string was expected where a list or map was given")
    return str(value)


_RESOURCE_KEYS = {
    "Type",
    "Properties",
    "DependsOn",
    "Condition",
    "Metadata",
    "DeletionPolicy",
    "UpdateReplacePolicy",
}


def not_emulated(type_name: str, path: str) -> str:
    return f"{type_name}: property {path} is not emulated by the local AWS"


def invalid(logical_id: str, wrong: list[str]) -> str:
    """Word the refusal of properties that CloudFormation's schema does not allow."""
    return f"Properties validation failed for resource {logical_id} with message:\n" + "\n".join(
        wrong
    )
