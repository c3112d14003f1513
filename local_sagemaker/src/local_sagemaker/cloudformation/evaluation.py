"""A template evaluated for one stack: conditions, functions, properties; and which resource needs which."""

from __future__ import annotations

import base64
import copy
import ipaddress
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ..connections import local_client
from ..protocols import ServiceError
from ..resources.resource_type import Place
from ..resources.table import TYPES, find_type, is_custom
from ..schemas import violations
from .stacks import DeployedResource, Output, Stack, StackStore
from .stacks import store as stack_store
from .template import Submission


def references(value: Any) -> Iterator[str]:
    """Give every name that a piece of template refers to (resources and parameters alike)."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref" and isinstance(item, str):
                yield item
            elif key == "Fn::GetAtt":
                yield item.split(".")[0] if isinstance(item, str) else item[0]
            elif key == "Fn::Sub":
                text = item if isinstance(item, str) else item[0]
                own = {} if isinstance(item, str) else item[1]
                for name in re.findall(r"\$\{([^!}][^}]*)\}", text):
                    if name not in own:
                        yield name.strip().split(".")[0]
                yield from references(own)
            else:
                yield from references(item)


def dependencies(resource: Mapping[str, Any], names: set[str]) -> set[str]:
    """Give the resources (out of `names`) that must exist before this one."""
    return (_explicit(resource) | set(references(resource.get("Properties") or {}))) & names


def _explicit(resource: Mapping[str, Any]) -> set[str]:
    depends_on = resource.get("DependsOn") or []
    return {depends_on} if isinstance(depends_on, str) else set(depends_on)


def creation_order(resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Order resources so that each comes after what it needs; a circle is refused."""
    names = set(resources)
    needs = {name: dependencies(resource, names) for name, resource in resources.items()}
    order: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in path:
            circle = ", ".join(path[path.index(name) :])
            raise ServiceError(f"Circular dependency between resources: [{circle}]")
        for needed in sorted(needs[name]):
            visit(needed, (*path, name))
        done.add(name)
        order.append(name)

    for name in resources:
        visit(name, ())
    return order


def deletion_order(resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Order resources so that each goes before what it needs, custom ones as late as may be."""
    # CloudFormation deletes at once what does not need each other. A custom resource may wait for
    # what others leave behind, so of several the one goes that could have gone for the longest.
    names = set(resources)
    needs = {name: dependencies(resource, names) for name, resource in resources.items()}
    users: dict[str, int] = dict.fromkeys(names, 0)
    for needed in needs.values():
        for name in needed:
            users[name] += 1
    backwards = list(reversed(creation_order(resources)))
    free = [name for name in backwards if not users[name]]
    order: list[str] = []
    while free:
        chosen = next((name for name in free if not is_custom(resources[name]["Type"])), free[0])
        free.remove(chosen)
        order.append(chosen)
        for name in needs[chosen]:
            users[name] -= 1
        free += [name for name in backwards if name in needs[chosen] and not users[name]]
    return order


def check_references(template: Mapping[str, Any]) -> None:
    """Refuse references to what is not in the template, before anything is created."""
    resources = template["Resources"]
    known = {*resources, *(template.get("Parameters") or {})}
    named: dict[str, set[str]] = {
        "Resources": {
            name
            for resource in resources.values()
            for name in {*references(resource.get("Properties") or {})} - known
            | _explicit(resource)
            if name not in resources
        },
        "Outputs": {*references(template.get("Outputs") or {})} - known,
    }
    for block, names in named.items():
        if missing := sorted(name for name in names if not name.startswith("AWS::")):
            raise ServiceError(
                "Template format error: Unresolved resource dependencies "
                f"[{', '.join(missing)}] in the {block} block of the template"
            )


PENDING = "\0known after deployment:"
"""Marks a value that a change set cannot know: it belongs to a resource that is yet to be made."""


class _NoValue:
    """What `Ref: AWS::NoValue` gives: the property is not there at all."""


NO_VALUE = _NoValue()


class Evaluation:
    """A template evaluated for a stack; resources that are `pending` do not exist by now."""

    def __init__(
        self,
        place: Place,
        stacks: StackStore,
        stack: Stack,
        submitted: Submission,
        pending: Collection[str] = (),
    ) -> None:
        self._place = place
        self._stacks = stacks
        self._existing = stack.resources
        self._pending = pending
        self._tags = submitted.tags
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
        self.order = creation_order(self.resources)

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Resolve a resource's properties, and add the stack's tags where the type takes them."""
        declared = self.resources[logical_id].get("Properties") or {}
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
        for key, declared in (self.template.get("Outputs") or {}).items():
            if "Condition" in declared and not self.condition(declared["Condition"]):
                continue
            value = self.resolve(declared["Value"])
            if value is NO_VALUE or isinstance(value, (dict, list)):
                raise ServiceError(
                    f"Template format error: Output {key} is malformed: its value is no string"
                )
            export = declared.get("Export")
            result.append(
                Output(
                    key,
                    str(value).lower() if isinstance(value, bool) else str(value),
                    declared.get("Description"),
                    str(self.resolve(export["Name"])) if export else None,
                )
            )
        return result

    def refusals(self) -> dict[str, str]:
        """Find what CloudFormation or this emulation refuses, before a stack half exists."""
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
            elif wrong := violations(declared["Type"], declared.get("Properties") or {}):
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
            return re.sub(
                r"\{\{resolve:([a-z-]+):([^}]+)\}\}",
                lambda match: self._dynamic(match[1], match[2]),
                value,
            )
        return value

    def condition(self, name: str) -> bool:
        conditions = self.template.get("Conditions") or {}
        if name not in conditions:
            raise ServiceError(f"Template format error: Unresolved condition {name}")
        return self._test(conditions[name])

    def _test(self, expression: Any) -> bool:
        name, argument = next(iter(expression.items()))
        if name == "Condition":
            return self.condition(argument)
        if name == "Fn::Equals":
            left, right = (self.resolve(item) for item in argument)
            return _text(left) == _text(right)
        if name == "Fn::And":
            return all(self._test(item) for item in argument)
        if name == "Fn::Or":
            return any(self._test(item) for item in argument)
        if name == "Fn::Not":
            return not self._test(argument[0])
        raise ServiceError(f"Template error: {name} is not a condition function")

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self.values:
            return self.values[name]
        if name in self._pending:
            return f"{PENDING}{name}\0"
        return self._found(name).physical_id

    def _function(self, name: str, argument: Any) -> Any:
        method = _FUNCTIONS.get(name)
        if method is None:
            raise ServiceError(f"Template error: {name} is not emulated by the local AWS")
        return method(self, argument)

    def _get_att(self, argument: Any) -> Any:
        parts = argument.split(".", 1) if isinstance(argument, str) else argument
        return self._attribute(parts[0], self.resolve(parts[1]))

    def _sub(self, argument: Any) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else argument
        own = {key: self.resolve(item) for key, item in own.items()}

        def replace(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            if name in own:
                return _text(own[name])
            if "." in name:
                return _text(self._get_att(name))
            return _text(self._ref(name))

        return re.sub(r"\$\{([^}]+)\}", replace, text)

    def _join(self, argument: Any) -> str:
        items = self.resolve(argument[1])
        return argument[0].join(_text(item) for item in items)

    def _select(self, argument: Any) -> Any:
        index, items = int(self.resolve(argument[0])), self.resolve(argument[1])
        if not isinstance(items, list) or not 0 <= index < len(items):
            raise ServiceError(
                f"Template error: Fn::Select cannot select nonexistent value at index {index}"
            )
        return items[index]

    def _split(self, argument: Any) -> list[str]:
        return str(self.resolve(argument[1])).split(argument[0])

    def _find_in_map(self, argument: Any) -> Any:
        default = None
        keys = []
        for item in argument:
            if isinstance(item, dict) and "DefaultValue" in item:
                default = self.resolve(item["DefaultValue"])
            else:
                keys.append(self.resolve(item))
        found: Any = self.template.get("Mappings") or {}
        for key in keys:
            if not isinstance(found, dict) or key not in found:
                if default is not None:
                    return default
                raise ServiceError(f"Template error: Unable to get mapping for {'::'.join(keys)}")
            found = found[key]
        return found

    def _if(self, argument: Any) -> Any:
        return self.resolve(argument[1] if self.condition(argument[0]) else argument[2])

    def _base64(self, argument: Any) -> str:
        return base64.b64encode(_text(self.resolve(argument)).encode()).decode()

    def _cidr(self, argument: Any) -> list[str]:
        block, count, *rest = (self.resolve(item) for item in argument)
        network = ipaddress.ip_network(block)
        bits = int(rest[0]) if rest else network.max_prefixlen - network.prefixlen
        subnets = network.subnets(new_prefix=network.max_prefixlen - bits)
        return [str(next(subnets)) for _ in range(int(count))]

    def _stack_output(self, argument: Any) -> Any:
        if unknown := set(argument) - {"OutputName", "Region", "StackName"}:
            raise ServiceError(
                f"Template error: Fn::GetStackOutput with {', '.join(sorted(unknown))} is not "
                "emulated by the local AWS"
            )
        given = {key: self.resolve(item) for key, item in argument.items()}
        region, stack, output = (given.get(n) for n in ("Region", "StackName", "OutputName"))
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
        if logical_id in self._pending:
            return f"{PENDING}{logical_id}.{name}\0"
        resource = self._found(logical_id)
        if name in resource.attributes:
            return resource.attributes[name]
        if is_custom(resource.type):
            raise ServiceError(
                "CustomResource attribute error: Vendor response doesn't contain "
                f"{name} attribute in object {resource.physical_id}"
            )
        raise ServiceError(
            f"Template error: resource {logical_id} does not support attribute type {name} in "
            f"Fn::GetAtt. {resource.type} has: {', '.join(sorted(resource.attributes)) or 'none'}"
        )

    def _found(self, logical_id: str) -> DeployedResource:
        if logical_id not in self._existing:
            raise ServiceError(f"Template error: resource {logical_id} does not exist")
        return self._existing[logical_id]

    def _import(self, argument: Any) -> str:
        name = str(self.resolve(argument))
        exports = self._stacks.exports()
        if name not in exports:
            raise ServiceError(f"No export named {name} found.")
        self.imports.add(name)
        return exports[name][1].value

    def _get_azs(self, argument: Any) -> list[str]:
        region = self.resolve(argument) or self.values["AWS::Region"]
        answer = local_client("ec2", region, self._place.url).describe_availability_zones()
        return [zone["ZoneName"] for zone in answer["AvailabilityZones"]]

    def _dynamic(self, service: str, reference: str) -> str:
        if service != "ssm":
            raise ServiceError(f"Dynamic references to {service} are not emulated")
        name = reference.split(":")[0]
        return str(self._place.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])


_FUNCTIONS: dict[str, Callable[[Evaluation, Any], Any]] = {
    "Fn::GetAtt": Evaluation._get_att,
    "Fn::Sub": Evaluation._sub,
    "Fn::Join": Evaluation._join,
    "Fn::Select": Evaluation._select,
    "Fn::Split": Evaluation._split,
    "Fn::FindInMap": Evaluation._find_in_map,
    "Fn::GetAZs": Evaluation._get_azs,
    "Fn::If": Evaluation._if,
    "Fn::Base64": Evaluation._base64,
    "Fn::Cidr": Evaluation._cidr,
    "Fn::ImportValue": Evaluation._import,
    "Fn::GetStackOutput": Evaluation._stack_output,
    "Fn::Equals": lambda self, argument: self._test({"Fn::Equals": argument}),
    "Fn::And": lambda self, argument: self._test({"Fn::And": argument}),
    "Fn::Or": lambda self, argument: self._test({"Fn::Or": argument}),
    "Fn::Not": lambda self, argument: self._test({"Fn::Not": argument}),
}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
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
