"""An update of the deployed stack: what it would meet, and waiting for what passes by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...account.calls import Account
from ...account.endpoints import DeployedEndpoint, read_endpoint
from ...account.scaling import scalable_targets
from ...account.sessions import ClientFactory, Unreadable
from ...account.stacks import (
    ENDPOINT_TYPE,
    StackEndpoint,
    made_at,
    stack_description,
    stack_endpoints,
    stack_ids,
)
from ...account.stuck_stacks import MAY_BE_STUCK
from ...facts.failure_reasons import read_failure
from ...settings import Settings
from ..checking.checks import Outcome, endpoint_check, failed, passed
from .context import PlannedEndpoint, PreflightContext

_UPDATE = "/sagemaker/latest/dg/endpoint-scaling-update.html"
_STATES = "/sagemaker/latest/APIReference/API_DescribeEndpoint.html"
_VALIDATION = "/AWSCloudFormation/latest/UserGuide/validate-stack-deployments.html"

#: What scaling, or SageMaker's own patching, sets an endpoint to for some minutes.
PASSING_STATES = ("Updating", "SystemUpdating")

_TWO_DEPLOYS = (
    "In two deploys: first set `scaling: {enabled: false, keep_counts: true}` and deploy, then "
    "make the change and turn scaling on again; or give the endpoint another `endpoint_name`, "
    "which makes the new one before the old one goes. See docs/how-to/everyday-changes.md."
)


def deployed_endpoint(context: PlannedEndpoint) -> StackEndpoint | None:
    """The deployed stack's endpoint that the settings' key made; ``None`` without one."""
    name = context.stack.settings.stack_name
    if stack_description(context.account, name) is None:
        return None
    endpoints = stack_endpoints(context.account, name)
    return made_at(
        f"{context.key}/Endpoint",
        {endpoint.logical_id: endpoint for endpoint in endpoints if endpoint.arn},
    )


def _current(context: PlannedEndpoint) -> DeployedEndpoint | None:
    deployed = deployed_endpoint(context)
    return read_endpoint(context.account, deployed.name) if deployed else None


@endpoint_check(
    "LLP601",
    "The update changes no scaled variant's instance type, and removes none",
    how="`UpdateEndpoint` would fail. Explains how to change it in two deployments.",
    source=_UPDATE,
)
def allowed_change(context: PlannedEndpoint) -> Outcome | None:
    deployed = deployed_endpoint(context)
    current = _current(context)
    if deployed is None or current is None:
        return None
    stated = context.settings.endpoint_name
    if stated is not None and stated != deployed.name:
        return passed(
            f"{deployed.name} becomes {stated}: a new endpoint, made before the old one goes"
        )
    scaled = scalable_targets(context.account, current.name, current.variants)
    planned = {
        variant.variant: variant.plan.request.serving.instance_type for variant in context.variants
    }
    problems = list(_problems(current, scaled, planned))
    if problems:
        return failed(
            f"{'; '.join(problems)}: AWS refuses such an update. {MAY_BE_STUCK}", _TWO_DEPLOYS
        )
    kept = ", ".join(
        f"{name} {', '.join(variant.instance_types)}" for name, variant in current.variants.items()
    )
    return passed(f"deployed: {kept}; scaling: {', '.join(sorted(scaled)) or 'none'}")


def _problems(
    current: DeployedEndpoint, scaled: Mapping[str, Any], planned: Mapping[str, str]
) -> Iterator[str]:
    for name in sorted(scaled):
        was = ", ".join(current.variants[name].instance_types)
        if name not in planned:
            yield f"the scaled variant {name} would be removed"
        elif was != planned[name]:
            yield f"the scaled variant {name} would change from {was} to {planned[name]}"


@endpoint_check(
    "LLP602",
    "The deployed endpoint is in service",
    how=("`--wait` waits for an update or scaling to end."),
    source=_STATES,
)
def endpoint_healthy(context: PlannedEndpoint) -> Outcome | None:
    deployed = deployed_endpoint(context)
    if deployed is None:
        return None
    current = _current(context)
    if current is None:
        return failed(
            f"{deployed.name} was deleted outside the stack",
            "Give the endpoint another `endpoint_name` and deploy, or restore it.",
        )
    if current.status == "InService":
        counts = ", ".join(
            f"{name}: {'?' if variant.current_instances is None else variant.current_instances} instances"
            for name, variant in current.variants.items()
            if variant.running
        )
        return passed(f"{current.name} is InService; {counts}")
    if current.status in PASSING_STATES:
        what = current.update.words if current.update else "a scaling action or another change runs"
        return failed(
            f"{current.name} is {current.status}: {what}, and UpdateEndpoint is refused meanwhile "
            f'("Cannot update in-progress endpoint"). {MAY_BE_STUCK}',
            "Wait until the endpoint is InService, then deploy: `low-latency preflight --wait "
            "15m` waits, and `make deploy` with it.",
        )
    if current.status in ("Creating", "RollingBack", "Deleting"):
        what = f": {current.update.words}" if current.update else ""
        return failed(f"{current.name} is {current.status}{what}", "Wait until the operation ends.")
    reason = current.failure_reason
    return failed(
        f"{current.name} is {current.status}: {reason or 'no reason given'}",
        f"{read_failure(reason).fix or 'Fix the cause in the reason.'} A failed endpoint is replaced "
        "by giving it another `endpoint_name`.",
    )


@endpoint_check(
    "LLP603",
    "No other key of the stack has the endpoint's name",
    how="Checks `endpoint_name`. A name that an endpoint outside the stack has fails in "
    "CloudFormation's own validation, before anything is created.",
    source=_VALIDATION,
)
def name_stays_with_its_key(context: PlannedEndpoint) -> Outcome | None:
    name = context.settings.endpoint_name
    if name is None:
        return None
    endpoints = stack_ids(context.account, context.stack.settings.stack_name, ENDPOINT_TYPE)
    owners = {
        logical_id: arn for logical_id, arn in endpoints.items() if arn.endswith(f"/{name.lower()}")
    }
    if not owners:
        return passed(f"no endpoint of the stack has the name {name}")
    if made_at(f"{context.key}/Endpoint", owners):
        return passed(f"{name} is this key's own")
    return failed(
        f"{name} is this stack's, and another key made it: CloudFormation makes the new "
        "endpoint before it deletes that one",
        "Choose another `endpoint_name`, or take the old key out and deploy first.",
    )


_SECONDS_BETWEEN = 15.0


def wait_for_endpoints(
    settings: Settings,
    client: ClientFactory,
    region: str,
    *,
    seconds: float,
    on_wait: Callable[[str], None] = lambda text: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait while scaling or SageMaker works on a deployed endpoint; checks say what is unknown."""
    end = clock() + seconds
    told = ""
    while busy := ", ".join(_busy(settings, client, region)):
        rest = min(_SECONDS_BETWEEN, end - clock())
        if rest <= 0:
            return
        if busy != told:
            on_wait(busy)
            told = busy
        sleep(rest)


def _busy(settings: Settings, client: ClientFactory, region: str) -> Iterator[str]:
    account = Account(client, region)  # a new one: it keeps its answers
    with suppress(Unreadable):
        stack = stack_description(account, settings.stack_name)
        if stack is None or stack["StackStatus"].endswith("_IN_PROGRESS"):
            return
        for context in PreflightContext(settings, (), account).endpoints:
            deployed = deployed_endpoint(context)
            endpoint = read_endpoint(account, deployed.name) if deployed else None
            if endpoint and endpoint.status in PASSING_STATES:
                yield f"{endpoint.name} is {endpoint.status}"
