"""CloudFormation's intrinsic functions."""

from __future__ import annotations

import base64
import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from ..protocols import ServiceError


class _NoValue:
    """What `Ref: AWS::NoValue` gives: the property is not there at all."""


NO_VALUE = _NoValue()


class Resolver(ABC):
    """Resolves intrinsic functions; what they ask of the world a subclass answers.

    Parameters
    ----------
    template
        The whole template (its mappings and conditions are used).
    values
        Parameters and pseudo parameters by name.
    """

    def __init__(self, template: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self.template = template
        self.values = values

    @abstractmethod
    def ref(self, logical_id: str) -> str:
        """Answer `Ref` of a resource."""

    @abstractmethod
    def attribute(self, logical_id: str, name: str) -> Any:
        """Answer `Fn::GetAtt`."""

    @abstractmethod
    def import_value(self, name: str) -> Any:
        """Answer `Fn::ImportValue`."""

    @abstractmethod
    def stack_output(self, region: str | None, stack: str, output: str) -> Any:
        """Answer `Fn::GetStackOutput`; the region is None for the stack's own."""

    @abstractmethod
    def zones(self, region: str) -> list[str]:
        """Answer `Fn::GetAZs`: the zone names of a region."""

    @abstractmethod
    def dynamic(self, service: str, reference: str) -> str:
        """Answer `{{resolve:service:reference}}`."""

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
                lambda match: self.dynamic(match[1], match[2]),
                value,
            )
        return value

    def condition(self, name: str) -> bool:
        """Evaluate a condition by name."""
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
        return self.ref(name)

    def _function(self, name: str, argument: Any) -> Any:
        method = _FUNCTIONS.get(name)
        if method is None:
            raise ServiceError(f"Template error: {name} is not emulated by the local AWS")
        return method(self, argument)

    def _get_att(self, argument: Any) -> Any:
        parts = argument.split(".", 1) if isinstance(argument, str) else argument
        return self.attribute(parts[0], self.resolve(parts[1]))

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

    def _get_azs(self, argument: Any) -> list[str]:
        return self.zones(self.resolve(argument) or self.values["AWS::Region"])

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

    def _import(self, argument: Any) -> Any:
        return self.import_value(str(self.resolve(argument)))

    def _stack_output(self, argument: Any) -> Any:
        if unknown := set(argument) - {"OutputName", "Region", "StackName"}:
            raise ServiceError(
                f"Template error: Fn::GetStackOutput with {', '.join(sorted(unknown))} is not "
                "emulated by the local AWS"
            )
        given = {key: self.resolve(item) for key, item in argument.items()}
        return self.stack_output(given.get("Region"), given["StackName"], given["OutputName"])


_FUNCTIONS: dict[str, Callable[[Resolver, Any], Any]] = {
    "Fn::GetAtt": Resolver._get_att,
    "Fn::Sub": Resolver._sub,
    "Fn::Join": Resolver._join,
    "Fn::Select": Resolver._select,
    "Fn::Split": Resolver._split,
    "Fn::FindInMap": Resolver._find_in_map,
    "Fn::GetAZs": Resolver._get_azs,
    "Fn::If": Resolver._if,
    "Fn::Base64": Resolver._base64,
    "Fn::Cidr": Resolver._cidr,
    "Fn::ImportValue": Resolver._import,
    "Fn::GetStackOutput": Resolver._stack_output,
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
