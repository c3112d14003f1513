"""What a run does in the account; `STEPS` has the order. What each step saw decides claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

from low_latency_endpoint.operate.preflight import run_preflight
from low_latency_endpoint.operate.verify import run_verification
from low_latency_endpoint.settings import parse_settings

from . import observations
from .app import (
    BESIDE,
    HUB_INSTANCES,
    HUB_REQUEST,
    IMAGE,
    INSTANCE_TYPE,
    INSTANCES,
    ROLE,
    hub_endpoint_name,
    role_name,
    stack_name,
)
from .clean_up import remaining
from .hub_model import HubModel, NotPinned
from .observations import Document
from .world import World, traffic


class StepFailed(Exception):
    """A step found something missing that it and the later steps need."""


class NotReached(Exception):
    """A step is not done, because an earlier one has failed."""


@dataclass(frozen=True)
class Pace:
    """Minutes of the target's clock that the waiting steps take."""

    traffic: float = 10
    after_update: float = 20
    longest_for_page: float = 20


@dataclass(frozen=True)
class Step:
    """One step: how many minutes it takes at AWS, how many instances run meanwhile, what does it."""

    name: str
    minutes: float
    instances: int
    act: Callable[[Run], Document]


@dataclass
class Run:
    """One run: the account, its names, and what its steps have seen so far."""

    world: World
    hub: HubModel
    suffix: str
    pace: Pace = field(default_factory=Pace)
    zones: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    stack_id: str = ""
    seen: dict[str, Document] = field(default_factory=dict)
    stopped: str = ""
    """Why no other step can be done."""

    def do(self, step: Step) -> Document:
        """Do a step and, before it, those that every step needs; return what it saw.

        A step is done once. After one that failed, or that left a stack which cannot be deployed
        any more, the others raise NotReached.
        """
        for needed in (*NEEDED, step):
            if needed.name in self.seen:
                continue
            if self.stopped:
                raise NotReached(self.stopped)
            self.stopped = f"the step {needed.name} failed"
            self.seen[needed.name] = needed.act(self)
            self.stopped = self._unusable(needed)
        return self.seen[step.name]

    def _unusable(self, step: Step) -> str:
        """Say why the stack cannot be deployed any more, if it cannot."""
        status = self.seen[step.name].get("left_as", "")
        if status == "ROLLBACK_COMPLETE" or status.endswith("_FAILED"):
            return f"after the step {step.name} the stack is {status}"
        return ""

    @property
    def name(self) -> str:
        """The stack's name and its first endpoint's."""
        return stack_name(self.suffix)

    @property
    def hub_names(self) -> dict[str, str]:
        """The Hub endpoint's names: the one it has first, and the one it gets."""
        return {
            "old": hub_endpoint_name(self.suffix),
            "new": hub_endpoint_name(self.suffix, renamed=True),
        }

    def deploy(self, variant: str) -> str:
        """Deploy a variant; return what went wrong."""
        return self.world.deployer.deploy(self.suffix, self.zones, variant)

    def destroy(self, variant: str) -> str:
        """Destroy the stack of a variant; return what went wrong."""
        return self.world.deployer.destroy(self.suffix, self.zones, variant)


def _pin(run: Run) -> Document:
    try:
        run.commits = run.hub.pin(run.suffix)
    except NotPinned as problem:
        raise StepFailed(f"pin: {problem}") from None
    return {"model": run.hub.name, "commits": run.commits}


def _preflight(run: Run) -> Document:
    world = run.world
    run.zones = _zones(world)
    common = {"instance_type": INSTANCE_TYPE, "latency": {"p99": "500ms"}}
    image = {"dlc": {"repository": IMAGE[0], "tag": IMAGE[1]}}
    pinned = {
        "model": run.hub.name,
        "lock": str(run.hub.lock(run.suffix, 1).resolve()),
        "hub_endpoint": run.hub.endpoint,
    }
    stated = {
        "stack_name": run.name,
        "region": world.region,
        "client_zones": {"ids": run.zones},
        "endpoints": {
            "accept": {
                **common,
                "endpoint_name": run.name,
                "containers": [{"image": image}],
                "throughput": {"peak_tps": 40, "tps_per_instance": 40, "safety_factor": 0.6},
                "instances": {"min": INSTANCES, "max": INSTANCES + 1},
            },
            "hub": {
                **common,
                "endpoint_name": run.hub_names["old"],
                "hugging_face": pinned,
                "throughput": {"peak_tps": 4, "tps_per_instance": 40, "safety_factor": 0.6},
                "instances": {"min": HUB_INSTANCES, "max": HUB_INSTANCES + 1},
            },
        },
    }
    settings = parse_settings(json.dumps(stated))  # which is YAML
    report = run_preflight(settings, world.client, world.region)
    bad = [f"{each.id} {each.evidence}" for each in report.results if each.status == "fail"]
    if bad:
        raise StepFailed("preflight: " + "; ".join(bad))
    return {"checks": {each.id: str(each.status) for each in report.results}}


def _zones(world: World) -> list[str]:
    """Return two zones that have the runtime's interface endpoint, the same in every run."""
    ec2 = world.client("ec2")
    listed = ec2.describe_availability_zones()["AvailabilityZones"]
    service = f"com.amazonaws.{world.region}.sagemaker.runtime"
    details = ec2.describe_vpc_endpoint_services(ServiceNames=[service])["ServiceDetails"]
    served = {name for detail in details for name in detail["AvailabilityZones"]}
    available = [zone for zone in listed if zone.get("State") == "available"]
    zones = sorted(zone["ZoneId"] for zone in available if zone["ZoneName"] in served)
    if len(zones) < 2:
        raise StepFailed(f"{world.region} has {len(zones)} zones with {service}")
    return zones[:2]


def _deployed(
    run: Run,
    variant: str,
    *,
    endpoint: str = "",
    request: Mapping[str, Any] | None = None,
    calls: bool = True,
) -> Document:
    """Deploy a variant while requests are sent; return what CloudFormation and SageMaker did.

    One endpoint gets the requests and is watched, by default the first.
    """
    world = run.world
    endpoint = endpoint or run.name
    observations.usable(world, run.name)
    before = observations.serving(world, endpoint)
    last_event = _last_event(run)
    sent: AbstractContextManager[Mapping[str, int]] = nullcontext({})
    if calls:
        sent = traffic(world, endpoint, request)
    watched = observations.watch(world, lambda: observations.serving(world, endpoint))
    with watched as timeline, sent as answers:
        problem = run.deploy(variant)
    stack = observations.usable(world, run.name)
    if stack is None:
        raise StepFailed(f"{variant}: there is no stack. {problem}")
    run.stack_id = stack["StackId"]
    events = observations.stack_events(world, run.stack_id, last_event)
    of_stack = [event["status"] for event in events if event["physical"] == run.stack_id]
    ended = [status for status in of_stack if not status.endswith("_IN_PROGRESS")]
    return {
        "variant": variant,
        "cli": "failed" if problem else "ok",
        "events": events,
        # The first one: what was continued after a rollback that failed is another matter.
        "stack_status": ended[0] if ended else stack["StackStatus"],
        "left_as": stack["StackStatus"],
        "endpoint_timeline": timeline,
        "before": before,
        "after": observations.serving(world, endpoint),
        "answers": dict(answers),
    }


def _last_event(run: Run) -> str:
    """Return the ID of the stack's last event; empty before there is a stack."""
    if not run.stack_id:
        return ""
    return str(observations.stack_events(run.world, run.stack_id)[-1]["id"])


def _answers(run: Run, endpoint: str, request: Mapping[str, Any] | None = None) -> dict[str, int]:
    """Return what a minute's requests got."""
    with traffic(run.world, endpoint, request) as answers:
        run.world.wait(60)
    return dict(answers)


def _commits(run: Run) -> dict[str, str]:
    """Return where the files of each pinned commit begin in the models' bucket."""
    old, new = run.commits
    return {"old": f"hub/{run.hub.name}/{old}/", "new": f"hub/{run.hub.name}/{new}/"}


def _deploy(run: Run) -> Document:
    """Deploy the stack of the role and the stack under test; return how the endpoints serve.

    Where the first deployment fails, only what CloudFormation did.
    """
    world = run.world
    hub_endpoint = run.hub_names["old"]
    if problem := run.deploy(ROLE):
        raise StepFailed(f"the stack of the role: {problem}")
    seen = _deployed(run, "first", calls=False)
    if seen["stack_status"] != "CREATE_COMPLETE":
        return seen
    report = run_verification(run.name, world.client, world.region)
    outputs = observations.told(world, run.suffix)
    (link,) = world.client("ec2").describe_vpc_endpoints(
        VpcEndpointIds=[outputs["interface_endpoint"]]
    )["VpcEndpoints"]
    return {
        **seen,
        "warm_ups": observations.warm_ups(world, run.stack_id, run.name),
        "verify": {result.id: str(result.status) for result in report.results},
        "probes": observations.probes(world, run.suffix),
        "dns_entries": [entry["DnsName"] for entry in link.get("DnsEntries", [])],
        "zone_names": [zone["zone_name"] for zone in outputs["zones"].values()],
        "hub": {
            **observations.staged_model(world, hub_endpoint, _commits(run)),
            "serving": observations.serving(world, hub_endpoint),
        },
        "answers_of": {
            "first": _answers(run, run.name),
            "hub": _answers(run, hub_endpoint, HUB_REQUEST),
        },
    }


def _traffic(run: Run) -> Document:
    with traffic(run.world, run.name) as answers:
        run.world.wait(run.pace.traffic * 60)
    return {
        "answers": dict(answers),
        "invocations": _by_fleet(run),
        "alarms": observations.alarms(run.world, run.name),
        "canary": observations.canary(run.world, run.name),
    }


def _by_fleet(run: Run) -> Document:
    """Return the invocations of all instances, and those of the fleet in service."""
    found = cast(Document, observations.serving(run.world, run.name))
    return observations.invocations(run.world, run.name, found["configuration"])


def _update(run: Run) -> Document:
    seen = _deployed(run, "changed")
    return {**seen, "invocations": _by_fleet(run)}


def _after_update(run: Run) -> Document:
    with traffic(run.world, run.name) as answers:
        run.world.wait(run.pace.after_update * 60)
    return {
        "answers": dict(answers),
        "minutes": run.pace.after_update,
        "invocations": _by_fleet(run),
    }


def _page(run: Run) -> Document:
    """Let every request fail until somebody is paged, or for the longest that this may take."""
    world = run.world
    queue = observations.told(world, run.suffix)["pages"]

    def paged() -> bool:
        messages = observations.messages(world, queue)
        return any(message.get("NewStateValue") == "ALARM" for message in messages)

    waited = 0.0
    with traffic(world, run.name, {"fail": True}) as answers:
        while not (arrived := paged()) and waited < run.pace.longest_for_page * 60:
            world.wait(30)
            waited += 30
    with traffic(world, run.name):  # so that the alarms are not on when the next step starts
        world.wait(5 * 60)
    return {"arrived": arrived, "within_minutes": waited / 60, "answers": dict(answers)}


def _bad(variant: str) -> Callable[[Run], Document]:
    """Return a step that deploys a variant which is rolled back, and reads what alarms did."""

    def act(run: Run) -> Document:
        observations.usable(run.world, run.name)
        before = observations.alarms(run.world, run.name)
        history_before = {alarm["alarm"]: alarm["history"] for alarm in before}
        seen = _deployed(run, variant)
        after = observations.alarms(run.world, run.name)
        for alarm in after:
            old = history_before.get(alarm["alarm"], [])
            alarm["history"] = [entry for entry in alarm["history"] if entry not in old]
        return {**seen, "alarms": after}

    return act


def _scaling_off_and_on(run: Run) -> Document:
    off = _deployed(run, "unscaled")
    on = _deployed(run, "changed")
    return {"off": off, "on": on, "left_as": on["left_as"]}


def _captured(run: Run) -> Document:
    seen = _deployed(run, "captured")
    with traffic(run.world, run.name):
        run.world.wait(5 * 60)
    return {**seen, "metrics": observations.metrics(run.world, run.name)}


def _repin(run: Run) -> Document:
    endpoint = run.hub_names["old"]
    seen = _deployed(run, "repinned", endpoint=endpoint, request=HUB_REQUEST)
    return {**seen, "hub": observations.staged_model(run.world, endpoint, _commits(run))}


def _rename(run: Run) -> Document:
    """Rename the Hub endpoint while a function in the VPC calls both names."""
    names = run.hub_names
    with observations.calls_in_vpc(run.world, run.suffix, names, HUB_REQUEST) as calls:
        seen = _deployed(run, "renamed", endpoint=names["new"], calls=False)
    return {
        **seen,
        "calls": calls,
        "policy_names": observations.link_policy_names(run.world, run.suffix, names),
    }


def _remove(run: Run) -> Document:
    """Remove the first endpoint, then update the other one."""
    other = run.hub_names["new"]
    removed = _deployed(run, "removed", endpoint=other, request=HUB_REQUEST)
    updated = _deployed(run, "updated", endpoint=other, request=HUB_REQUEST)
    return {
        "removed": removed,
        "updated": updated,
        "left_as": updated["left_as"],
        "first_is_there": observations.serving(run.world, run.name) is not None,
    }


def _share(run: Run) -> Document:
    """Deploy another stack on the stated role, and delete it; return what became of the role."""
    world = run.world
    role = role_name(run.suffix)
    before = observations.role_policies(world, role)
    run.deploy(BESIDE)
    stack = observations.settled(world, stack_name(run.suffix, BESIDE))
    if stack is None:
        raise StepFailed("share: there is no second stack")
    both = observations.role_policies(world, role)
    run.destroy(BESIDE)
    gone = observations.find_stack(world, stack["StackId"])
    after = observations.role_policies(world, role)
    names = run.hub_names.values()
    other = next(name for name in names if observations.serving(world, name) is not None)
    return {
        "made": stack["StackStatus"],
        "deleted": gone["StackStatus"] if gone else "DELETE_COMPLETE",
        "policies": {"before": len(before), "with_both": len(both), "after": len(after)},
        "lost": [policy for policy in before if after.get(policy) != before[policy]],
        "answers": _answers(run, other, HUB_REQUEST),
    }


def _destroy(run: Run) -> Document:
    """Destroy both stacks at once and once; return what is left of them."""
    world = run.world
    observations.settled(world, run.name)
    group = observations.told(world, run.suffix)["group"]
    names = (run.name, *run.hub_names.values())

    def look() -> Document:
        return {
            "endpoint": any(observations.serving(world, name) is not None for name in names),
            "interfaces": observations.interfaces(world, group),
        }

    with observations.watch(world, look) as timeline:
        problem = run.destroy("changed")
        gone = observations.settled(world, run.stack_id)
    run.destroy(ROLE)
    return {
        "cli": "failed" if problem else "ok",
        "stack_status": gone["StackStatus"] if gone else "DELETE_COMPLETE",
        "interface_timeline": timeline,
        "left": remaining(world, run.suffix),
    }


_FLEETS = INSTANCES + HUB_INSTANCES
_UPDATES = 2 * INSTANCES + HUB_INSTANCES  # of the first endpoint

NEEDED = (
    Step("pin", 1, 0, _pin),
    Step("preflight", 1, 0, _preflight),
    Step("deploy", 20, _FLEETS, _deploy),
)
"""The steps that every other one needs."""

STEPS = (
    *NEEDED,
    Step("traffic", 10, _FLEETS, _traffic),
    Step("update", 20, _UPDATES, _update),
    Step("after-update", 20, _FLEETS, _after_update),
    Step("page", 20, _FLEETS, _page),
    Step("crash", 20, _UPDATES, _bad("crashing")),
    Step("slow", 20, _UPDATES, _bad("slow")),
    Step("rolling", 20, _UPDATES, _bad("rolling-failing")),
    Step("scaling", 10, _FLEETS, _scaling_off_and_on),
    Step("capture", 20, _UPDATES, _captured),
    # The first endpoint is not needed any more, and both endpoints are updated after `capture`.
    Step("repin", 20, 2 * _FLEETS, _repin),
    Step("rename", 25, _FLEETS + HUB_INSTANCES, _rename),
    # 20 minutes of it are the wait for interfaces that may be the other endpoint's.
    Step("remove", 60, _FLEETS, _remove),
    Step("share", 20, HUB_INSTANCES, _share),
    Step("destroy", 45, _FLEETS, _destroy),
)
"""All steps, in their order."""
