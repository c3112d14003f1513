"""What this library has deployed in an account and Region: endpoints, their stacks and dashboards."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from .calls import Account
from .endpoints import endpoints_of_region, read_endpoint
from .stacks import owner_of, stack_endpoints, stack_ids, template_resources

_DASHBOARD = "AWS::CloudWatch::Dashboard"


@dataclass(frozen=True)
class ListedVariant:
    """Instances that serve and that are wanted; ``None`` where SageMaker does not tell."""

    name: str
    running: int | None
    wanted: int | None
    instance_types: tuple[str, ...]

    def __str__(self) -> str:
        running, wanted = ("?" if each is None else each for each in (self.running, self.wanted))
        return f"{self.name}: {running} of {wanted} x {', '.join(self.instance_types)}"


@dataclass(frozen=True)
class ListedEndpoint:
    """One endpoint of a stack of this library."""

    endpoint: str
    stack: str
    region: str
    status: str
    variants: tuple[ListedVariant, ...]
    dashboard: str | None  # its name
    # in CloudWatch's console, where that is the one of the commercial partition
    dashboard_url: str | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe data."""
        return asdict(self)


def deployed_endpoints(account: Account) -> list[ListedEndpoint]:
    """All endpoints of the Region whose stack holds a plan of this library, by stack and name."""
    arns = [str(each["EndpointArn"]) for each in endpoints_of_region(account)]
    stacks = {owner[0] for arn in arns if (owner := owner_of(account, arn)) is not None}
    return [found for stack in sorted(stacks) for found in _of_stack(account, stack)]


def _of_stack(account: Account, stack: str) -> Iterable[ListedEndpoint]:
    resources = template_resources(account, stack)
    bodies = {
        physical: json.dumps(resources.get(logical, {}))
        for logical, physical in stack_ids(account, stack, _DASHBOARD).items()
    }
    for each in stack_endpoints(account, stack):
        if not each.plan or not each.arn:
            continue
        deployed = read_endpoint(account, each.name)
        if deployed is None:
            continue
        dashboard = next(
            (
                physical
                for physical, body in bodies.items()
                if each.logical_id in body or f'"{each.name}"' in body.replace("\\", "")
            ),
            None,
        )
        yield ListedEndpoint(
            deployed.name,
            stack,
            account.region,
            deployed.status,
            tuple(
                ListedVariant(
                    name, one.current_instances, one.desired_instances, one.instance_types
                )
                for name, one in deployed.variants.items()
            ),
            dashboard,
            _console(account, dashboard),
        )


def _console(account: Account, dashboard: str | None) -> str | None:
    if dashboard is None or account.partition() != "aws":
        return None
    return (
        f"https://{account.region}.console.aws.amazon.com/cloudwatch/home?region={account.region}"
        f"#dashboards/dashboard/{dashboard}"
    )
