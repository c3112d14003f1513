"""Which resource needs which, and the order that follows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..protocols import ServiceError


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
        chosen = next((name for name in free if not _is_custom(resources[name])), free[0])
        free.remove(chosen)
        order.append(chosen)
        for name in needs[chosen]:
            users[name] -= 1
        free += [name for name in backwards if name in needs[chosen] and not users[name]]
    return order


def _is_custom(resource: Mapping[str, Any]) -> bool:
    kind = str(resource["Type"])
    return kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource"


def check_references(template: Mapping[str, Any]) -> None:
    """Refuse references to what is not in the template, before anything is created."""
    resources = template["Resources"]
    known = {*resources, *(template.get("Parameters") or {})}
    named: dict[str, set[str]] = {
        "Resources": {
            name
            for each in resources.values()
            for name in {*references(each.get("Properties") or {})} - known | _explicit(each)
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
