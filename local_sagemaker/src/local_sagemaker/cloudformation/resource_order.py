"""Which resource of a template needs which, and the order in which resources begin and go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..protocols import ServiceError
from ..resources.table import find_type, is_custom
from ..runtime.options import CreationOrder
from .template_shape import in_full


def references(value: Any) -> Iterator[str]:
    """Give every name that a piece of template refers to (resources and parameters alike)."""
    for name, _ in mentions(value):
        yield name


def mentions(value: Any) -> Iterator[tuple[str, Any]]:
    """Give every name that a piece of template refers to, with the attribute that is asked for."""
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, item in value.items() if isinstance(value, dict) else ():
        given = in_full(str(key), item)
        if key == "Ref" and isinstance(item, str):
            yield item, None
        elif key == "Fn::GetAtt" and isinstance(given, list):
            yield given[0], given[1]
            yield from mentions(given[1:])
        elif key == "Fn::Sub" and isinstance(given, list):
            yield from _mentions_in_text(*given)
        else:
            yield from mentions(item)


def _mentions_in_text(text: str, own: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Any]:
    for name in re.findall(r"\$\{([^!}][^}]*)\}", text):
        if name not in own:
            resource, _, attribute = name.partition(".")
            yield resource, attribute or None
    yield from mentions(dict(own))


def dependencies(resource: Mapping[str, Any], names: set[str]) -> set[str]:
    """Give the resources (out of `names`) that must exist before this one."""
    return (
        explicit_dependencies(resource) | set(references(resource.get("Properties") or {}))
    ) & names


def explicit_dependencies(resource: Mapping[str, Any]) -> set[str]:
    depends_on = resource.get("DependsOn") or []
    return {depends_on} if isinstance(depends_on, str) else set(depends_on)


def creation_order(
    resources: Mapping[str, Mapping[str, Any]], order: CreationOrder = "late"
) -> list[str]:
    """Give the resources in an order in which each comes after what it needs; refuses a circle.

    CloudFormation begins at once what does not need each other, in no order that is documented.
    What needs another resource and does not say so fails by chance there, so here it comes before
    that: first what acts when it is created, then what is only there, and last what lets others act
    (`turn` in `table.yaml`). What one order does not show, its reverse may.
    """
    names = set(resources)
    needs = {name: dependencies(resource, names) for name, resource in resources.items()}
    written = _as_written(needs)
    users = _all_users(written, needs)
    turns = {name: getattr(find_type(resources[name]["Type"]), "turn", 0) for name in written}
    step = 1 if order == "late" else -1
    left = written[::step]
    done: dict[str, None] = {}
    while left:
        free = [name for name in left if needs[name] <= done.keys()]
        chosen = min(free, key=lambda name: _rank(name, turns, users[name], step))
        left.remove(chosen)
        done[chosen] = None
    return list(done)


def _as_written(needs: Mapping[str, set[str]]) -> list[str]:
    """Give the order of the template, but for what must come earlier."""
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

    for name in needs:
        visit(name, ())
    return order


def _all_users(order: list[str], needs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Give what needs each resource, also by way of others."""
    users: dict[str, set[str]] = {name: set() for name in order}
    for name in reversed(order):
        for needed in needs[name]:
            users[needed] |= {name} | users[name]
    return users


def _rank(name: str, turns: Mapping[str, int], users: set[str], step: int) -> tuple[int, int]:
    """Give the key by which a resource comes before others that could begin as well."""
    own = turns[name]
    if own > 0:
        # First what something waits for: the others may be missing to that.
        return own, -step * len(users)
    return min(own, *(turns[user] for user in users), 0), 0


def deletion_order(
    resources: Mapping[str, Mapping[str, Any]], order: CreationOrder = "late"
) -> list[str]:
    """Order resources so that each goes before what it needs, custom ones as late as may be."""
    # CloudFormation deletes at once what does not need each other. A custom resource may wait for
    # what others leave behind, so of several the one goes that could have gone for the longest.
    names = set(resources)
    needs = {name: dependencies(resource, names) for name, resource in resources.items()}
    users: dict[str, int] = dict.fromkeys(names, 0)
    for needed in needs.values():
        for name in needed:
            users[name] += 1
    backwards = list(reversed(creation_order(resources, order)))
    free = [name for name in backwards if not users[name]]
    result: list[str] = []
    while free:
        chosen = next((name for name in free if not is_custom(resources[name]["Type"])), free[0])
        free.remove(chosen)
        result.append(chosen)
        for name in needs[chosen]:
            users[name] -= 1
        free += [name for name in backwards if name in needs[chosen] and not users[name]]
    return result
