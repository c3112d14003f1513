"""Shows a :class:`~low_latency_endpoint.operations.deployed.DeployedStack` and compares two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from .deployed import DeployedAlarm, DeployedEndpoint, DeployedStack, DeployedVariant

__all__ = ["Change", "changes", "changes_table", "tables"]

_COMPARISONS = {
    "GreaterThanThreshold": ">",
    "GreaterThanOrEqualToThreshold": ">=",
    "LessThanThreshold": "<",
    "LessThanOrEqualToThreshold": "<=",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs between two readings; ``None`` where there was or is nothing."""

    path: str
    before: str | None
    after: str | None


def tables(stack: DeployedStack) -> list[Table]:
    """The stack as tables for ``rich.print``: network, PrivateLink, variants, scaling, alarms."""
    found = [_subnet_table(stack), _private_link_table(stack)]
    for endpoint in stack.endpoints:
        found += [_endpoint_table(endpoint), _alarm_table(endpoint)]
    return [table for table in found if table.row_count]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=Text(title, style="bold"), title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    """Add a row of plain text: brackets in names are no markup."""
    table.add_row(*map(Text, cells))


def _subnet_table(stack: DeployedStack) -> Table:
    table = _table("Zones and subnets", "zone ID", "zone", "subnet", "CIDR", "holds")
    for subnet in stack.subnets:
        holds = [
            f"interface endpoint {interface_endpoint.service.rpartition('.sagemaker.')[2]}"
            for interface_endpoint in stack.interface_endpoints
            if subnet.subnet_id in interface_endpoint.subnet_ids
        ] + [
            f"model of {endpoint.name}/{variant.name}"
            for endpoint in stack.endpoints
            for variant in endpoint.variants
            if subnet.subnet_id in variant.subnet_ids
        ]
        _add(table, subnet.zone_id, subnet.zone, subnet.subnet_id, subnet.cidr, "\n".join(holds))
    return table


def _private_link_table(stack: DeployedStack) -> Table:
    table = _table("PrivateLink", "interface endpoint", "service", "private DNS", "zonal DNS names")
    for endpoint in stack.interface_endpoints:
        _add(
            table,
            f"{endpoint.interface_endpoint_id}\n{endpoint.state}",
            endpoint.service,
            "on" if endpoint.private_dns else "off",
            "\n".join(f"{zone}: {name}" for zone, name in endpoint.zonal_dns_names.items()),
        )
    return table


def _endpoint_table(endpoint: DeployedEndpoint) -> Table:
    table = _table(f"Endpoint {endpoint.name}: {endpoint.status}", "setting", "value")
    for variant in endpoint.variants:
        for setting, value in _variant_rows(variant):
            _add(table, f"{variant.name}: {setting}", value)
    if endpoint.deployment:
        _add(table, "deployment", endpoint.deployment)
    return table


def _variant_rows(variant: DeployedVariant) -> Iterator[tuple[str, str]]:
    yield "instance type", variant.instance_type
    yield "instances", f"{variant.current_instances} of {variant.desired_instances} wanted"
    yield "routing strategy", variant.routing
    yield "model subnets", "\n".join(variant.subnet_ids) or "none: outside your VPC"
    yield "model security groups", "\n".join(variant.security_group_ids) or "none"
    if variant.max_instances is None:
        yield "scaling", "off"
        return
    yield "scaling", f"{variant.min_instances} to {variant.max_instances} instances"
    for policy in variant.scaling_policies:
        aim = f"{policy.metric} at {policy.target:g}" if policy.target is not None else policy.kind
        yield "scaling target", aim


def _alarm_table(endpoint: DeployedEndpoint) -> Table:
    table = _table(
        f"Alarms on {endpoint.name}", "metric", "statistic", "alarm when", "rolls back", "name"
    )
    for alarm in endpoint.alarms:
        rolls_back = "updates" if alarm.name in endpoint.rollback_alarms else ""
        _add(table, alarm.metric, alarm.statistic, _alarm_condition(alarm), rolls_back, alarm.name)
    return table


def _alarm_condition(alarm: DeployedAlarm) -> str:
    sign = _COMPARISONS.get(alarm.comparison, alarm.comparison)
    return f"{sign} {alarm.threshold:g} {alarm.unit}".strip()


def changes(before: DeployedStack, after: DeployedStack) -> list[Change]:
    """Every value that differs, by its path; items of a list are told apart by their names.

    Examples
    --------
    >>> from low_latency_endpoint.operations.deployed import DeployedStack
    >>> before = DeployedStack("Shop", "CREATE_COMPLETE", 40, (), (), ())
    >>> after = DeployedStack("Shop", "UPDATE_COMPLETE", 40, (), (), ())
    >>> changes(before, after)
    [Change(path='status', before='CREATE_COMPLETE', after='UPDATE_COMPLETE')]
    """
    old, new = dict(_flat(before)), dict(_flat(after))
    paths = [*old, *(path for path in new if path not in old)]
    return [
        Change(path, old.get(path), new.get(path))
        for path in paths
        if old.get(path) != new.get(path)
    ]


def changes_table(found: Iterable[Change]) -> Table:
    """Changes as a table: path, before, after."""
    table = _table("What changed", "value", "before", "after")
    for change in found:
        _add(table, change.path, change.before or "", change.after or "")
    return table


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if is_dataclass(value):
        for field in fields(value):
            yield from _flat(getattr(value, field.name), _join(path, field.name))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{path}[{key}]")
    elif isinstance(value, tuple) and any(map(is_dataclass, value)):
        for item in value:
            yield from _flat(item, f"{path}[{_identity(item)}]")
    else:
        yield path, ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _identity(item: Any) -> str:
    """What stays the same while an item's values change: its name or its ID."""
    names: Iterable[str] = ("name", "subnet_id", "interface_endpoint_id")
    return next(str(getattr(item, name)) for name in names if hasattr(item, name))
