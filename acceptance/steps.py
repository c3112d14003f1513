"""What a run does, in order. Each step can be done again: after a kill it starts from its top."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from low_latency_endpoint.operate.preflight import run_preflight
from low_latency_endpoint.operate.verify import run_verification
from low_latency_endpoint.settings import parse_settings

from . import looking, sweep
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
from .hub_model import HubModel, NotPinned
from .looking import Document
from .world import World, traffic


class StepFailed(Exception):
    """What the later steps stand on is not there; what the step `saw` may refute a claim."""

    def __init__(self, why: str, saw: Mapping[str, Any] | None = None) -> None:
        super().__init__(why)
        self.saw = dict(saw or {})


@dataclass(frozen=True)
class Pace:
    """Minutes of the target's clock that the waiting steps take."""

    traffic: float = 10
    after_update: float = 20
    longest_for_page: float = 20


@dataclass
class Run:
    """What steps work with."""

    world: World
    suffix: str
    kept: Document = field(default_factory=dict)
    """What outlives a kill: `save` writes it before and after each step."""
    pace: Pace = Pace()
    marker: Document = field(default_factory=dict)
    """Of the step under way: how the stack stood when it was first started."""
    save: Callable[[], None] = lambda: None

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
        """Deploy a variant; gives what went wrong."""
        return self.world.deployer.deploy(self.suffix, self.kept["zones"], variant)

    def destroy(self, variant: str) -> str:
        """Destroy its stack."""
        return self.world.deployer.destroy(self.suffix, self.kept["zones"], variant)

    @property
    def hub(self) -> HubModel:
        """The model of the Hub."""
        assert self.world.hub is not None
        return self.world.hub

    def mark(self) -> Document:
        """How the stack stands, for the step that starts now."""
        events = looking.stack_events(self.world, self.kept["stack_id"]) if self._made else []
        return {
            "event": events[-1]["id"] if events else "",
            "before": {
                name: looking.serving(self.world, name)
                for name in (self.name, *self.hub_names.values())
            },
        }

    @property
    def _made(self) -> bool:
        return "stack_id" in self.kept


@dataclass(frozen=True)
class Step:
    """One step: how long it takes at AWS, how many instances run meanwhile, what does it."""

    name: str
    minutes: float
    instances: int
    asserts: str
    act: Callable[[Run], Document]


def _pin(run: Run) -> Document:
    try:
        run.kept["commits"] = run.hub.pin(run.suffix)
    except NotPinned as problem:
        raise StepFailed(f"pin: {problem}") from None
    return {"model": run.hub.name, "commits": run.kept["commits"]}


def _preflight(run: Run) -> Document:
    world = run.world
    zones = _zones(world)
    run.kept["zones"] = zones
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
        "client_zones": {"ids": zones},
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
    """Two zones that have the runtime's interface endpoint, the same in every run."""
    ec2 = world.client("ec2")
    listed = ec2.describe_availability_zones()["AvailabilityZones"]
    service = f"com.amazonaws.{world.region}.sagemaker.runtime"
    served = ec2.describe_vpc_endpoint_services(ServiceNames=[service])["ServiceDetails"]
    names = {name for each in served for name in each["AvailabilityZones"]}
    found = sorted(
        each["ZoneId"]
        for each in listed
        if each["ZoneName"] in names and each.get("State") == "available"
    )
    if len(found) < 2:
        raise StepFailed(f"{world.region} has {len(found)} zones with {service}")
    return found[:2]


def _deployed(
    run: Run,
    variant: str,
    *,
    endpoint: str = "",
    request: Mapping[str, Any] | None = None,
    calls: bool = True,
    since: str | None = None,
) -> Document:
    """Deploy a variant with traffic on; what CloudFormation and SageMaker made of it.

    Watched is an endpoint, by default the first, since an event, by default the step's first.
    """
    world, endpoint = run.world, endpoint or run.name
    looking.usable(world, run.name)
    sent: AbstractContextManager[Mapping[str, int]]
    sent = traffic(world, endpoint, request) if calls else nullcontext({})
    with looking.watch(world, lambda: looking.serving(world, endpoint)) as seen, sent as answers:
        problem = run.deploy(variant)
    stack = looking.usable(world, run.name)
    if stack is None:
        raise StepFailed(f"{variant}: there is no stack. {problem}")
    run.kept["stack_id"] = stack["StackId"]
    events = looking.stack_events(
        world, stack["StackId"], run.marker["event"] if since is None else since
    )
    verdicts = [
        event["status"]
        for event in events
        if event["physical"] == stack["StackId"] and not event["status"].endswith("_IN_PROGRESS")
    ]
    return {
        "variant": variant,
        "cli": "failed" if problem else "ok",
        "events": events,
        # The first word on it; what was fixed or done again after that is another matter.
        "stack_status": verdicts[0] if verdicts else stack["StackStatus"],
        "left_as": stack["StackStatus"],
        "endpoint_timeline": seen,
        "before": run.marker["before"].get(endpoint),
        "after": looking.serving(world, endpoint),
        "answers": dict(answers),
    }


def _last_event(run: Run) -> str:
    return str(looking.stack_events(run.world, run.kept["stack_id"])[-1]["id"])


def _answers(run: Run, endpoint: str, request: Mapping[str, Any] | None = None) -> dict[str, int]:
    """What a minute's requests get."""
    with traffic(run.world, endpoint, request) as answers:
        run.world.wait(60)
    return dict(answers)


def _commits(run: Run) -> dict[str, str]:
    """Where the files of each pinned commit begin in the models' bucket."""
    old, new = run.kept["commits"]
    return {"old": f"hub/{run.hub.name}/{old}/", "new": f"hub/{run.hub.name}/{new}/"}


def _deploy(run: Run) -> Document:
    world, hub_endpoint = run.world, run.hub_names["old"]
    if problem := run.deploy(ROLE):
        raise StepFailed(f"the stack of the role: {problem}")
    seen = _deployed(run, "first", calls=False)
    if seen["stack_status"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        reasons = [e["reason"] for e in seen["events"] if e["status"].endswith("FAILED")]
        raise StepFailed(f"the stack is {seen['stack_status']}: {'; '.join(reasons[:3])}", seen)
    report = run_verification(run.name, world.client, world.region)
    outputs = looking.told(world, run.suffix)
    (link,) = world.client("ec2").describe_vpc_endpoints(
        VpcEndpointIds=[outputs["interface_endpoint"]]
    )["VpcEndpoints"]
    return {
        **seen,
        "warm_ups": looking.warm_ups(world, run.kept["stack_id"], run.name),
        "verify": {each.id: str(each.status) for each in report.results},
        "probes": looking.probes(world, run.suffix),
        "dns_entries": [each["DnsName"] for each in link.get("DnsEntries", [])],
        "hub": {
            **looking.staged_model(world, hub_endpoint, _commits(run)),
            "serving": looking.serving(world, hub_endpoint),
            "warm_ups": looking.warm_ups(world, run.kept["stack_id"], hub_endpoint),
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
        "metrics": looking.metrics(run.world, run.name),
        "invocations": _by_fleet(run),
        "alarms": looking.alarms(run.world, run.name),
        "canary": looking.canary(run.world, run.name),
    }


def _by_fleet(run: Run) -> Document:
    """Invocations of all, and of the fleet in service; asked for, as new series are listed late."""
    found = looking.serving(run.world, run.name)
    assert found is not None
    return looking.invocations(run.world, run.name, found["configuration"])


def _update(run: Run) -> Document:
    seen = _deployed(run, "changed")
    return {
        **seen,
        "invocations": _by_fleet(run),
        "warm_ups": looking.warm_ups(run.world, run.kept["stack_id"], run.name),
    }


def _after_update(run: Run) -> Document:
    with traffic(run.world, run.name) as answers:
        run.world.wait(run.pace.after_update * 60)
    return {
        "answers": dict(answers),
        "minutes": run.pace.after_update,
        "invocations": _by_fleet(run),
        "metrics": looking.metrics(run.world, run.name),
        "alarms": looking.alarms(run.world, run.name),
    }


def _page(run: Run) -> Document:
    """Every request fails until somebody is paged, or for the longest that this may take."""
    world, queue = run.world, looking.told(run.world, run.suffix)["pages"]

    def paged() -> list[Document]:
        return [m for m in looking.messages(world, queue) if m.get("NewStateValue") == "ALARM"]

    waited = 0.0
    with traffic(world, run.name, {"fail": True}) as answers:
        while not (pages := paged()) and waited < run.pace.longest_for_page * 60:
            world.wait(30)
            waited += 30
    with traffic(world, run.name):  # so that the alarms are not on when the next step starts
        world.wait(5 * 60)
    return {
        "arrived": bool(pages),
        "within_minutes": waited / 60,
        "answers": dict(answers),
        "pages": [
            {k: each.get(k) for k in ("AlarmName", "NewStateValue", "NewStateReason")}
            for each in pages
        ],
        "alarms": looking.alarms(world, run.name),
        "events": looking.messages(world, looking.told(world, run.suffix)["events"]),
    }


def _bad(variant: str) -> Callable[[Run], Document]:
    def act(run: Run) -> Document:
        looking.usable(run.world, run.name)
        before = {each["alarm"]: each["history"] for each in looking.alarms(run.world, run.name)}
        seen = _deployed(run, variant)
        after = looking.alarms(run.world, run.name)
        for each in after:  # what they did in this deployment, not in those before it
            old = before.get(each["alarm"], [])
            each["history"] = [entry for entry in each["history"] if entry not in old]
        return {**seen, "alarms": after}

    return act


def _scaling_off_and_on(run: Run) -> Document:
    off = _deployed(run, "unscaled")
    return {"off": off, "on": _deployed(run, "changed", since=_last_event(run))}


def _captured(run: Run) -> Document:
    seen = _deployed(run, "captured")
    with traffic(run.world, run.name):
        run.world.wait(5 * 60)
    return {**seen, "metrics": looking.metrics(run.world, run.name)}


def _repin(run: Run) -> Document:
    endpoint = run.hub_names["old"]
    seen = _deployed(run, "repinned", endpoint=endpoint, request=HUB_REQUEST)
    return {**seen, "hub": looking.staged_model(run.world, endpoint, _commits(run))}


def _rename(run: Run) -> Document:
    """Rename the Hub endpoint while somebody in the VPC calls both names."""
    names = run.hub_names
    with looking.calls_in_vpc(run.world, run.suffix, names, HUB_REQUEST) as calls:
        seen = _deployed(run, "renamed", endpoint=names["new"], calls=False)
    return {
        **seen,
        "calls": calls,
        "policy_names": looking.link_policy_names(run.world, run.suffix, names),
        "old_is_there": looking.serving(run.world, names["old"]) is not None,
    }


def _remove(run: Run) -> Document:
    """Remove the first endpoint, then update the other one."""
    other = run.hub_names["new"]
    removed = _deployed(run, "removed", endpoint=other, request=HUB_REQUEST)
    updated = _deployed(run, "updated", endpoint=other, request=HUB_REQUEST, since=_last_event(run))
    return {
        "removed": removed,
        "updated": updated,
        "left_as": updated["left_as"],
        "first_is_there": looking.serving(run.world, run.name) is not None,
    }


def _share(run: Run) -> Document:
    """Deploy another stack on the stated role, and delete it."""
    world, role, name = run.world, role_name(run.suffix), stack_name(run.suffix, BESIDE)
    if looking.settled(world, name) is not None:  # of this step, when it was killed
        run.destroy(BESIDE)
    before = looking.role_policies(world, role)
    run.deploy(BESIDE)
    made = looking.settled(world, name)
    if made is None:
        raise StepFailed("share: there is no second stack")
    both = looking.role_policies(world, role)
    run.destroy(BESIDE)
    gone = looking.find_stack(world, made["StackId"])
    after = looking.role_policies(world, role)
    other = next(
        name for name in run.hub_names.values() if looking.serving(world, name) is not None
    )
    return {
        "made": made["StackStatus"],
        "deleted": gone["StackStatus"] if gone else "DELETE_COMPLETE",
        "events": looking.stack_events(world, made["StackId"]),
        "policies": {"before": len(before), "with_both": len(both), "after": len(after)},
        "lost": [policy for policy in before if after.get(policy) != before[policy]],
        "answers": _answers(run, other, HUB_REQUEST),
    }


def _destroy(run: Run) -> Document:
    """Destroy at once, once; whatever that leaves is the sweep's."""
    world = run.world
    if (stack := looking.settled(world, run.name)) is not None and "group" not in run.kept:
        group = looking.told(world, run.suffix)["group"]
        run.kept |= {"stack_id": stack["StackId"], "group": group}
        run.save()  # in a moment there is no stack to ask

    def look() -> Document:
        names = (run.name, *run.hub_names.values())
        return {
            "endpoint": any(looking.serving(world, name) is not None for name in names),
            "interfaces": looking.interfaces(world, run.kept["group"]),
        }

    with looking.watch(world, look) as seen:
        problem = run.destroy("changed")
        gone = looking.settled(world, run.kept["stack_id"])
    return {
        "cli": "failed" if problem else "ok",
        "role_cli": "failed" if run.destroy(ROLE) else "ok",
        "stack_status": gone["StackStatus"] if gone else "DELETE_COMPLETE",
        "events": looking.stack_events(world, run.kept["stack_id"], run.marker["event"]),
        "interface_timeline": seen,
        "left": sweep.remaining(world, run.suffix),
    }


_FLEETS = INSTANCES + HUB_INSTANCES
_UPDATES = 2 * INSTANCES + HUB_INSTANCES  # of the first endpoint

CORE = (
    Step("pin", 1, 0, "the Hub has both commits", _pin),
    Step("preflight", 1, 0, "nothing that would fail a deployment", _preflight),
    Step("deploy", 20, _FLEETS, "both endpoints serve; warm-up, verify, names in zones", _deploy),
    Step("traffic", 10, _FLEETS, "which metrics and alarms have data", _traffic),
    Step("update", 20, _UPDATES, "a good update, with traffic", _update),
    Step("after-update", 20, _FLEETS, "what the deployment's metrics do after it", _after_update),
    Step("page", 20, _FLEETS, "failing requests after an update page somebody", _page),
    Step("crash", 20, _UPDATES, "an update whose container ends itself", _bad("crashing")),
    Step("slow", 20, _UPDATES, "an update that an alarm rolls back", _bad("slow")),
)
LONG = (
    Step("rolling", 20, _UPDATES, "a rolling update, which fails", _bad("rolling-failing")),
    Step("scaling", 10, _FLEETS, "scaling off, and on again", _scaling_off_and_on),
    Step("capture", 20, _UPDATES, "data capture, enhanced metrics", _captured),
)
SEVERAL = (
    # After the step `capture` both endpoints are updated.
    Step("repin", 20, 2 * _FLEETS, "another commit of the Hub's model, with traffic", _repin),
    Step("rename", 25, _FLEETS + HUB_INSTANCES, "another name; both are called", _rename),
    # 20 minutes of it are the wait for interfaces that may be the other endpoint's.
    Step("remove", 60, _FLEETS, "the first endpoint goes, the other is updated", _remove),
    Step("share", 20, HUB_INSTANCES, "another stack on the same role comes and goes", _share),
)
"""What needs more than one endpoint; in this order, and after all that the first one is needed for."""
CHOICES = (*CORE[3:], *LONG, *SEVERAL)
LAST = Step("destroy", 45, _FLEETS, "the stack deletes in one go", _destroy)


def steps_of(*, long: bool = False, only: Collection[str] = ()) -> tuple[Step, ...]:
    """The steps of a run, in order: with the optional ones, or between the ends only those named."""
    if only:
        return (*CORE[:3], *(step for step in CHOICES if step.name in only), LAST)
    return (*CORE, *(LONG if long else ()), *SEVERAL, LAST)


def known_names(document: Any, names: dict[str, str]) -> dict[str, str]:
    """Collect from stack events what each physical ID stands for, in the order of appearance."""
    if isinstance(document, dict):
        if {"physical", "resource"} <= document.keys() and document["physical"]:
            _know(names, str(document["physical"]), str(document["resource"]))
        for value in document.values():
            known_names(value, names)
    elif isinstance(document, list):
        for value in document:
            known_names(value, names)
    return names


def _know(names: dict[str, str], physical: str, logical: str) -> None:
    """Remember an ID, and its last part where it is an ARN or a URL."""
    last = physical.rpartition("/")[2].rpartition(":")[2]
    # A name without a digit is a word that the template chose, as "Invocations" is a policy's.
    if physical in names or not any(each.isdigit() for each in last):
        return
    place = len({value for value in names.values() if value.startswith(f"<{logical}-")}) + 1
    for text in (physical, last):
        names.setdefault(text, f"<{logical}-{place}>")
