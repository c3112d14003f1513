"""``docs/images/``: diagrams drawn from the templates and the plan of the endpoint that ships.

``python -m docs.make_pictures docs/images`` draws them anew. The pictures of pages are drawn by the tests
that make these pages, with ``UPDATE_DOCS=1``.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from docs.drawing import WIDTH, Drawing, Look, Place

from low_latency_endpoint.change.deployment_words import policy_words
from low_latency_endpoint.change.synthesis import DescribedStack
from low_latency_endpoint.plan.deployment_time import (
    ROLLBACK_SECONDS,
    deployment_of,
    deployment_time,
)
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.settings import load_settings
from low_latency_endpoint.settings.variant_plans import plan_endpoint

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "endpoint.yaml"
ZONES = ("use1-az1", "use1-az2")
CALLERS_RANGE = "10.20.0.0/16"  # of another VPC
COLUMNS = (24, 294)  # where the zones' subnets begin
METADATA = {"aws:cdk:enable-path-metadata": True}
SUBNET = "AWS::EC2::Subnet"
LINK = ("AWS::EC2::VPCEndpoint", "Link/")
ALARM = "AWS::CloudWatch::Alarm"
THERE = Look("card", "soft", dashed=True)
MADE = Look("blue-tint", "blue")


class Template:
    """A synthesized template as a picture asks it."""

    def __init__(self, template: Mapping[str, Any]) -> None:
        self.resources: Mapping[str, Any] = template["Resources"]

    def of_type(self, kind: str, path: str = "") -> dict[str, Mapping[str, Any]]:
        """The properties of a type's resources with a text in their construct path, by that path."""
        paths = {
            resource.get("Metadata", {}).get("aws:cdk:path", name): resource
            for name, resource in self.resources.items()
        }
        return {
            name: resource["Properties"]
            for name, resource in paths.items()
            if resource["Type"] == kind and path in name
        }


@dataclass(frozen=True)
class Layout:
    """A network, and the stacks that make its parts: a colour, words and the template of each."""

    title: str
    stacks: Sequence[tuple[str, str, Template]]
    vpc: str = ""  # of an existing VPC
    subnets: Sequence[str] = ()  # the same
    callers_range: str = ""  # where callers have another VPC

    def look(self, kind: str, path: str = "", *others: str) -> Look:
        """How to draw resources: in the colour of the stack that makes them, dashed if none does."""
        for colour, _, template in self.stacks:
            if all(template.of_type(*wanted) for wanted in ((kind, path), *((o,) for o in others))):
                return Look(f"{colour}-tint", colour, types=" ".join((kind, *others)))
        return THERE

    def first(self, kind: str, path: str = "") -> Mapping[str, Any]:
        """The properties of the first such resource; nothing if no stack makes one."""
        for _, _, template in self.stacks:
            for properties in template.of_type(kind, path).values():
                return properties
        return {}

    @property
    def subnet_names(self) -> Sequence[str]:
        made = [t.of_type(SUBNET).values() for _, _, t in self.stacks if t.of_type(SUBNET)]
        return [f"subnet {subnet['CidrBlock']}" for subnet in made[0]] if made else self.subnets

    @property
    def admitted(self) -> str:
        """Whom the interface endpoint's security group admits."""
        group = self.first("AWS::EC2::SecurityGroup", "Link/SecurityGroup")
        rule = group["SecurityGroupIngress"][0]
        source = rule["CidrIp"] if isinstance(rule["CidrIp"], str) else "the VPC's range"
        return f"{rule['FromPort']} from {source}"


@cache
def settings_template(more: str) -> Template:
    """The template of endpoint.yaml with a canary in each zone, and with more settings as JSON."""
    settings = {**yaml.safe_load(SHIPPED.read_text("utf-8")), **json.loads(more)}
    settings["endpoints"]["sentiment"]["canary"] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "endpoint.yaml"
        path.write_text(yaml.safe_dump(settings), "utf-8")
        return Template(DescribedStack(load_settings(path)).template)


def new_layout(**more: Any) -> Layout:
    """The endpoint that ships, in a new VPC."""
    stack = ("blue", "made by the stack", settings_template(json.dumps(more)))
    return Layout("A new VPC: the stack makes everything but the callers", [stack])


def existing_layout() -> Layout:
    """The same in the callers' VPC."""
    ids = {zone: f"subnet-{number}a1b2c3d" for number, zone in enumerate(ZONES)}
    network = {"vpc_id": "vpc-0a1b2c3d", "subnets": ids}
    link = {"private_dns": True, "allow_cidrs": ["172.31.0.0/16"]}
    return replace(
        new_layout(network=network, private_link=link),
        title="An existing VPC: the stack makes the interface endpoint and the SageMaker endpoint",
        vpc="vpc-0a1b2c3d",
        subnets=[*ids.values()],
    )


def callers_elsewhere_layout() -> Layout:
    """The same for callers in another VPC, which has a route to the endpoint's."""
    link = {"hosted_zone_vpc_ids": ["vpc-0d3c2b1a"], "allow_cidrs": [CALLERS_RANGE]}
    title = "Callers in another VPC: a private hosted zone, and a route to the endpoint's VPC"
    return replace(new_layout(private_link=link), title=title, callers_range=CALLERS_RANGE)


def shared_layout() -> Layout:
    """Both stacks of the how-to guide about a shared VPC."""
    page = (ROOT / "docs/how-to/shared-vpc.md").read_text("utf-8")
    owner, participant = map(_of_block, re.findall(r"^```python\n(.*?)^```", page, re.S | re.M))
    stacks = [
        ("purple", "made by the stack of the VPC's owner", owner),
        ("blue", "made by the stack of the participant", participant),
    ]
    return Layout("A shared VPC: its owner makes VPC and interface endpoint", stacks)


def _of_block(block: str) -> Template:
    with tempfile.TemporaryDirectory() as folder:
        exec(block.replace("App()", f"App(outdir={folder!r}, context={METADATA!r})"), {})
        [path] = Path(folder).glob("*.template.json")
        return Template(json.loads(path.read_text("utf-8")))


def layout_picture(layout: Layout) -> str:
    """A network with a legend of who makes what."""
    drawing = Drawing(layout.title)
    top = _draw_callers_vpc(drawing, layout) if layout.callers_range else 12
    y = draw_network(drawing, layout, top) + 26
    legend = [(Look(f"{colour}-tint", colour), words) for colour, words, _ in layout.stacks]
    for look, words in [*legend, (THERE, "there already")]:
        drawing.box((16, y, 18, 18), look)
        drawing.text(44, y + 14, words)
        y += 28
    return drawing.svg(y + 6)


def _draw_callers_vpc(drawing: Drawing, layout: Layout) -> float:
    """The callers' VPC above the endpoint's; returns where the endpoint's begins."""
    drawing.box((8, 12, 544, 132), replace(THERE, fill="page"))
    drawing.text(24, 35, f"the callers' VPC, {layout.callers_range}", bold=True)
    drawing.labelled((24, 48, 110, 80), THERE, "callers")
    look = layout.look("AWS::Route53::HostedZone", "", "AWS::Route53::RecordSet")
    name = layout.first("AWS::Route53::HostedZone")["Name"]["Fn::Join"][1][0].rstrip(".")
    drawing.labelled((166, 48, 370, 80), look, "private hosted zone", f"{name}…")
    drawing.path("M134 88H164", arrow=True, dashed=True)
    drawing.path("M145 144V178", arrow=True)
    drawing.path("M415 144V178", arrow=True)
    drawing.text(280, 166, "peering or transit gateway", colour="soft", anchor="middle")
    return 180


def draw_network(drawing: Drawing, layout: Layout, top: float, functions: str = "") -> float:
    """Callers, interface endpoint, router and instances, zone by zone; returns where they end."""
    made = layout.first("AWS::EC2::VPC")
    words = f"VPC {made['CidrBlock']}" if made else layout.vpc
    if made and not layout.first("AWS::EC2::InternetGateway"):
        words += ", no internet gateway"
    for x, zone in zip(COLUMNS, ZONES, strict=True):
        drawing.box((x - 8, top, 258, 550), Look("none", "sky", dashed=True))
        drawing.text(x, top + 20, f"zone {zone}", colour="blue")
    drawing.box((8, top + 30, 544, 310), replace(layout.look("AWS::EC2::VPC"), fill="page"))
    drawing.text(24, top + 53, words, bold=True)
    for x, subnet in zip(COLUMNS, layout.subnet_names, strict=True):
        _draw_subnet(drawing, layout, (x, top + 66), subnet, functions)
    for side in (250, 310):
        drawing.path(f"M280 {top + 326}V{top + 494}H{side}", "soft", arrow=True, dashed=True)
    s3 = layout.look("AWS::EC2::VPCEndpoint", "/S3")
    drawing.labelled((180, top + 280, 200, 50), s3, "S3 gateway endpoint", "model data")
    _draw_endpoint(drawing, layout, top + 350)
    return top + 540


def _draw_subnet(
    drawing: Drawing, layout: Layout, corner: tuple[float, float], name: str, functions: str
) -> None:
    x, y = corner
    drawing.box((x, y, 242, 206), replace(layout.look(SUBNET), fill="card"))
    drawing.text(x + 10, y + 22, name)
    arrows = [55, 170] if functions else [121]
    if functions:
        look = layout.look("AWS::Lambda::Function", "", "Custom::WarmUp", "AWS::Events::Rule")
        drawing.labelled((x + 108, y + 34, 124, 50), look, "functions", functions)
    if not layout.callers_range:
        drawing.labelled((x + 10, y + 34, 90 if functions else 222, 50), THERE, "callers")
    for arrow in arrows:
        drawing.path(
            f"M{x + arrow} {y + (34 if layout.callers_range else 84)}V{y + 110}", arrow=True
        )
    dns = "private DNS" if layout.first(*LINK)["PrivateDnsEnabled"] else "no private DNS"
    link = layout.look(*LINK, "AWS::EC2::SecurityGroup")
    place = (x + 10, y + 112, 222, 80)
    drawing.labelled(place, link, "interface endpoint", dns, layout.admitted)
    out = x + 60 if x < WIDTH / 2 else x + 182
    drawing.path(f"M{out} {y + 192}V{y + 318}", arrow=True)


def _draw_endpoint(drawing: Drawing, layout: Layout, top: float) -> None:
    """The endpoint's router and its instances, below the VPC."""
    look = layout.look("AWS::SageMaker::Endpoint")
    drawing.box((8, top, 544, 190), replace(look, fill="none"))
    name = layout.first("AWS::SageMaker::Endpoint")["EndpointName"]
    drawing.text(112, top + 23, f"endpoint {name}", bold=True)
    [variant] = layout.first("AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    router = layout.look("AWS::SageMaker::EndpointConfig")
    strategy = variant["RoutingConfig"]["RoutingStrategy"]
    drawing.labelled((24, top + 36, 512, 52), router, "SageMaker's router", strategy)
    model = layout.look("AWS::SageMaker::Model")
    lines = ("instances", f"{variant['InstanceType']}, interfaces", "in this zone's subnet")
    for x in (24, 314):
        drawing.path(f"M{x + 111} {top + 88}V{top + 108}", arrow=True)
        drawing.labelled((x, top + 110, 222, 68), model, *lines)


def architecture_picture() -> str:
    """The stack of the endpoint that ships, with a canary in each zone."""
    layout = new_layout()
    template = settings_template("{}")
    drawing = Drawing("Callers, interface endpoint and instances are in the same zones")
    y = draw_network(drawing, layout, 12, "canary, warm-up") + 40
    scaling = "AWS::ApplicationAutoScaling::ScalableTarget"
    target, policy = layout.first(scaling), layout.first(scaling.replace("ableTarget", "ingPolicy"))
    per_minute = policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
    drawing.labelled(
        (8, y, 264, 90),
        layout.look(scaling, "", "AWS::ApplicationAutoScaling::ScalingPolicy"),
        "target tracking",
        f"{target['MinCapacity']} to {target['MaxCapacity']} instances;",
        f"{per_minute:,} invocations per",
        "instance and minute",
    )
    drawing.path(f"M135 {y}V{y - 50}", arrow=True)
    composite = "AWS::CloudWatch::CompositeAlarm"
    drawing.labelled(
        (288, y, 264, 90),
        layout.look("AWS::CloudWatch::Dashboard", "", ALARM, composite),
        "dashboard and alarms",
        f"{len(template.of_type(ALARM, '/Alarms/'))} alarms of the endpoint,",
        f"{len(template.of_type(ALARM, '/Canary/'))} of the canaries;",
        f"{len(template.of_type(composite))} composite alarms notify",
    )
    drawing.path(f"M425 {y - 40}V{y - 2}", arrow=True)
    rollback = template.of_type(ALARM, "/RollbackAlarms/")
    words = (policy_words(deployment_of(bundled_plan())), f"{len(rollback)} alarms roll it back")
    look = layout.look(ALARM, "/RollbackAlarms/")
    drawing.labelled((8, y + 110, 544, 72), look, "deployment of a new version", *words)
    drawing.path(f"M280 {y + 110}V{y - 38}", arrow=True)
    return drawing.svg(y + 194)


def bundled_plan() -> Plan:
    """The plan of the endpoint that ships."""
    return plan_endpoint(load_settings(SHIPPED), "sentiment")


def deployment_picture() -> str:
    """A canary deployment of the endpoint that ships, minute by minute."""
    plan = bundled_plan()
    time, policy = deployment_time(plan), deployment_of(plan)
    if time is None or policy.kind != "CANARY":
        raise ValueError("the picture is of a canary whose times are known")
    start, shifted, end = (seconds / 60 for seconds in (time.start_seconds, *time.seconds))
    drawing = Drawing("A canary deployment: the new fleet serves a part, then all; alarms watch it")

    def across(first: float, last: float, y: float, height: float) -> Place:
        scale = 504 / end
        return 28 + first * scale, y, (last - first) * scale, height

    old, part = Look("card", "soft"), 1.2 * policy.percent  # of a height of 120
    drawing.text(28, 30, "Share of the traffic", bold=True)
    drawing.labelled(across(0, start, 42, 120), old, "old fleet", "100 %")
    drawing.labelled(
        across(start, shifted, 42 + part, 120 - part),
        old,
        f"new fleet {policy.percent} %",
        f"old fleet {100 - policy.percent} %",
    )
    drawing.box(across(start, shifted, 42, part), Look("blue", "blue"))
    drawing.labelled(across(shifted, end, 42, 120), MADE, "new fleet", "100 %")
    most, total = plan.largest_fleet, policy.instances_in_update(plan.largest_fleet)
    drawing.text(28, 196, "Instances (SageMaker blocks scaling meanwhile)", bold=True)
    drawing.labelled(across(0, shifted, 208, 52), old, "old fleet", f"{most} at most")
    drawing.labelled(across(shifted, end, 208, 52), THERE, "old fleet", "kept for a rollback")
    drawing.labelled(across(0, start, 270, 52), replace(MADE, dashed=True), "new fleet", "starts")
    drawing.labelled(
        across(start, end, 270, 52), MADE, "new fleet", f"as many; up to {total} in all"
    )
    alarms = settings_template("{}").of_type(ALARM, "/RollbackAlarms/")
    names = [path.split("/")[-2].removeprefix("primary-").replace("-", " ") for path in alarms]
    watch = Look("orange-tint", "orange")
    drawing.text(28, 356, "Rollback alarms", bold=True)
    drawing.labelled(across(start, end, 368, 74), watch, "watch the new fleet", *names)
    for minute, anchor in ((0, "start"), (start, "middle"), (shifted, "middle"), (end, "end")):
        x = across(minute, minute, 0, 0)[0]
        drawing.path(f"M{x:g} 446V454", "soft")
        unit = " minutes at most" if minute == end else ""
        drawing.text(x, 470, f"{minute:g}{unit}", colour="soft", anchor=anchor)
    drawing.text(28, 506, f"Faults raise an alarm after about {ROLLBACK_SECONDS / 60:g} minutes.")
    drawing.text(28, 526, "SageMaker then sends all traffic to the old fleet again.")
    return drawing.svg(544)


PICTURES: Mapping[str, Callable[[], str]] = {
    "architecture.svg": architecture_picture,
    "deployment.svg": deployment_picture,
    "vpc-new.svg": lambda: layout_picture(new_layout()),
    "vpc-existing.svg": lambda: layout_picture(existing_layout()),
    "vpc-shared.svg": lambda: layout_picture(shared_layout()),
    "vpc-callers-elsewhere.svg": lambda: layout_picture(callers_elsewhere_layout()),
}


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (Path(sys.argv[1]) / name).write_text(draw(), "utf-8")
