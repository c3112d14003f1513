"""Every rule that a construct can break, tried through a construct.

Limits of single arguments: test_limits_of_arguments.py.

A row is the code, how it is broken, and what the error has to say was got and is allowed.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Duration, Size
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

import low_latency_endpoint
from low_latency_endpoint import (
    AlarmOptions,
    ClientZones,
    ComponentHost,
    Container,
    ContainerImage,
    DataCapture,
    DeploymentPolicy,
    Endpoint,
    EndpointConfiguration,
    EndpointOptions,
    InferenceAmi,
    InferenceComponent,
    InstanceCounts,
    InstancePool,
    InstanceType,
    KeepWarmOptions,
    LatencyAlarms,
    LoadTestFleet,
    MeasuredThroughput,
    MetricsPublishing,
    Model,
    ModelData,
    ModelOptions,
    RuntimePrivateLink,
    ScalingOptions,
    ScalingSchedule,
    ScalingSteps,
    ShadowAlarms,
    StepUp,
    VariantAttributes,
    VariantOptions,
    WarmUpOptions,
    WarmUpPayload,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError, rules
from low_latency_endpoint.hosting.container import container_on
from low_latency_endpoint.hosting.scaling import ScalingStep
from low_latency_endpoint.plan.pinned_model import PinnedFile
from tests.contradictions import contradicts_itself
from tests.pinned_models import QWEN, written_lock

from .conftest import warnings_in
from .test_limits_of_arguments import COUNTED, TABLE

ROWS: list[Any] = []
AB = ("us-east-1a", "us-east-1b")
IDS, NAMES, SECONDS = ClientZones.of_ids, ClientZones.of_names, Duration.seconds
HOUR = Duration.hours(1)
P99 = {"p99": HOUR}
RANGE = {"min_instances": 2, "max_instances": 4}
IMAGE = ContainerImage.from_uri("registry.example.com/scorer:1")
ARCHIVE = "s3://b/model.tar.gz"
WITH_DOCKERFILE = str(Path(low_latency_endpoint.__file__).parent / "load_test" / "container")


@dataclass
class World:
    """What a row may build with: the room's parts, in a stack, and what only rows need."""

    stack: cdk.Stack
    parts: Any
    new_stack: Callable[..., cdk.Stack]

    def __getattr__(self, part: str) -> Any:
        """What makes a part of the room, in this stack."""
        return partial(getattr(self.parts, part), self.stack)

    def containers(self, *hostnames, **given):
        containers = [self.parts.container(hostname=hostname) for hostname in hostnames]
        return self.model(containers=containers, **given)

    def built(self, type="ml.m5.xlarge", platform=None, ami=None, **model):
        """A variant with an image that is built here, for a platform or where nobody says one."""
        image = ContainerImage.from_asset(WITH_DOCKERFILE, platform=platform)
        return self.configured(
            model=self.model(containers=[Container(image=image)], **model),
            instance_type=InstanceType(type),
            inference_ami=ami and InferenceAmi(ami),
        )

    def function(self):
        """A function outside of any VPC."""
        return lambda_.Function(
            self.stack,
            "Shop",
            runtime=lambda_.Runtime.PYTHON_3_12,
            handler="index.handler",
            code=lambda_.Code.from_inline("def handler(event, context): ..."),
        )

    def bucket(self):
        return s3.Bucket.from_bucket_name(self.stack, "Bucket", "models")

    def b(self, name="b", **given):
        return self.variant(name=name, **given)

    def again(self):
        """A variant of the first one's name."""
        return self.variant(model=self.model("Again"))

    def pooled(self, *pools, **given):
        made = [InstancePool(InstanceType(name), priority) for name, priority in pools]
        return self.variant(instance_pools=made, **given)

    def configuration(self, *variants, **given):
        return self.parts.configuration(self.stack, variants=list(variants), **given)

    def configured(self, **given):
        return self.configuration(self.variant(**given))

    def several(self, count):
        models = [self.model(f"M{number}") for number in range(count)]
        return self.configuration(*(self.b(f"v{n}", model=each) for n, each in enumerate(models)))

    def hub(self, model=QWEN.model, *, pinned=QWEN, edited=False, volume=None, **given):
        """A container of the Hub on a type."""
        folder = Path(self.stack.node.root.outdir)
        lock = written_lock(folder, pinned)
        if edited:
            lock.write_text(lock.read_text().replace("main", "next"))
        if given.get("lock"):
            lock = folder / given.pop("lock")
        on = given.pop("instance_type", "ml.g6.2xlarge")
        container = Container.from_hugging_face(model, lock=str(lock), **given)
        return container_on(container, [on], volume)

    def host(self, **given):
        network = self.stack.node.try_find_child("Network") or self.network()
        return ComponentHost(
            self.stack, "Host", **{"network": network, "max_instances": 4, **given}
        )

    def hosting(self):
        model = {"model": self.host(), "instance_type": InstanceType("ml.g5.12xlarge")}
        return self.endpoint(configuration=self.configuration(self.variant(**model)))

    def component(self, **given):
        stated = {
            "endpoint": given.get("endpoint") or self.hosting(),
            "model": Model.from_model_name(self.stack, "Served", "served"),
            "memory": Size.gibibytes(16),
        }
        return InferenceComponent(self.stack, "Component", **stated | given)

    def deployed(self, kind, *variants, **given):
        configuration = self.configuration(*variants) if variants else None
        policy = getattr(DeploymentPolicy, kind)(**given)
        return self.endpoint(configuration=configuration, deployment=policy)

    def scaled(self, min_instances=2, max_instances=4, **variant):
        endpoint = self.endpoint(configuration=self.configured(**variant))
        return endpoint.scale("primary", min_instances=min_instances, max_instances=max_instances)

    def alarms(self, **given):
        made = {name: given.pop(name) for name in ("endpoint", "new_fleet_only") if name in given}
        made.setdefault("endpoint", self.endpoint())
        options = replace(AlarmOptions.none(), **given)
        return LatencyAlarms(self.stack, "Alarms", options=options, **made)

    def imported(self, *variants):
        return Endpoint.from_endpoint_attributes(
            self.stack,
            "Imported",
            endpoint_name="sentiment",
            variants=[VariantAttributes(name=name) for name in variants],
        )

    def link(self, network=None, **given):
        return RuntimePrivateLink(self.stack, "Link", network=network or self.network(), **given)

    def elsewhere(self):
        """A link of another VPC."""
        network = self.network("Other", cidr="10.9.0.0/16")
        return RuntimePrivateLink(self.stack, "Elsewhere", network=network)

    def adopted(self, **given):
        return RuntimePrivateLink.from_interface_endpoint(
            self.stack,
            "Adopted",
            network=self.network(),
            interface_endpoint=ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
                self.stack, "Existing", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
            ),
            **given,
        )

    def linked(self, **given):
        """A network, its link, and what is given."""
        network = self.network()
        return {"network": network, "private_link": self.link(network), **given}

    def foreign_vpc(self):
        app = cdk.App.of(self.stack)
        stack = self.new_stack(app=app, name="Theirs", account="210987654321")
        return ec2.Vpc(stack, "Vpc", max_azs=1)

    def fleet(self, **given):
        stated = self.linked(endpoint="sentiment", image=IMAGE)
        return LoadTestFleet(self.stack, "Fleet", **stated | given)

    def topic_action(self):
        return cloudwatch_actions.SnsAction(sns.Topic(self.stack, "Topic"))

    def number(self) -> float:
        return cdk.CfnParameter(self.stack, "Given", type="Number").value_as_number

    def text(self) -> str:
        return cdk.CfnParameter(self.stack, "Given").value_as_string


def row(code: str, make: Callable[[World], Any], got: str, allowed: str) -> None:
    ROWS.append(pytest.param(code, make, got, allowed, id=f"{code}-{len(ROWS)}"))


def out_of(code: str, make: Callable[[World, Any], Any], allowed: str, *values: Any) -> None:
    """One row for each value outside a limit."""
    for value in values:
        shown = value if isinstance(value, str) else repr(value)
        row(code, lambda world, value=value: make(world, value), shown, allowed)


# --- 1 network ---------------------------------------------------------------------------------
row("LLE103", lambda _: ClientZones.of_names("dummy1a"), "1", "2 to 16")
row("LLE103", lambda _: ClientZones.of_ids(*(f"use1-az{n}" for n in range(1, 18))), "17", "2 to 16")
row("LLE104", lambda w: w.network(cidr="10.0.0.0/15"), "15", "16 to 28")
row("LLE104", lambda w: w.network(cidr="10.0.0.0/8"), "8", "16 to 28")
row(
    "LLE110", lambda w: w.network(client_zones=IDS("euw1-az1", "euw1-az2")), "euw1-az1", "us-east-1"
)
ABROAD = NAMES("eu-west-1a", "eu-west-1b")
row("LLE110", lambda w: w.network_in(client_zones=ABROAD), "eu-west-1a", "us-east-1")
row("LLE112", lambda w: w.network(cidr="10.0.0.0/28"), "2 subnets of /24", "10.0.0.0/28")
row("LLE112", lambda w: w.network(cidr="10.0.0.0/24", subnet_prefix_length=24), "/24", "1 blocks")
row("LLE113", lambda w: w.network(max_instances=20_000), "80022 addresses", "65536")
row(
    "LLE113",
    lambda w: w.network(max_instances=59, subnet_prefix_length=24),
    "258 addresses",
    "/23 or larger",
)
row(
    "LLE151",
    lambda w: w.network_in(client_zones=NAMES(*AB, "us-east-1c")),
    "us-east-1c",
    "us-east-1b",
)
row(
    "LLE152",
    lambda w: ClientZones.of_vpc(ec2.Vpc(w.new_stack(region=None), "V")),
    "tokens",
    "known by name",
)
row(
    "LLE151",
    lambda w: ClientZones.of_vpc(w.vpc(private_subnet_ids=None)),
    "no isolated and no private subnet",
    "private or isolated",
)
row("LLE103", lambda w: ClientZones.of_vpc(w.vpc(availability_zones=[AB[0]])), "1", "2 to 16")
row("LLE153", lambda w: w.network_in(subnets={}), "no zone", "us-east-1a, us-east-1b")
HERE = IDS("use1-az1", "use1-az2")
row("LLE154", lambda w: w.pattern(network=w.network(), client_zones=HERE), "both", "one")


def sharing(w, *maxima):
    """Endpoints with these maximums in one network."""
    network = w.network()
    for index, maximum in enumerate(maxima):
        variant = w.variant(model=w.model(f"M{index}", network=network))
        configuration = w.parts.configuration(w.stack, f"C{index}", variants=[variant])
        endpoint = w.endpoint(f"E{index}", configuration=configuration)
        endpoint.scale("primary", min_instances=2, max_instances=maximum)


def same_subnet_twice(w):
    subnet = ec2.Subnet.from_subnet_id(w.stack, "Subnet", "subnet-1")
    return w.network_in(subnets=dict.fromkeys(AB, subnet))


UP_TO_8 = InstanceCounts(max=8)
ANY = ec2.SubnetSelection()
row(
    "LLE157",
    lambda w: sharing(w, 59),
    "59 instances, 118 in updates, 258 addresses",
    "/23 or larger",
)
row("LLE157", lambda w: sharing(w, 50, 50), "100 instances", "/23 or larger")
row(
    "LLE157", lambda w: w.pattern(instances=UP_TO_8, network_max_instances=7), "7, and 8", "least 8"
)
row("LLE158", lambda w: w.pattern(network=w.network(), vpc=w.vpc()), "network, vpc", "none of them")
row("LLE158", lambda w: w.pattern(subnets={}), "subnets", "vpc and subnets")
row(
    "LLE158",
    lambda w: w.pattern(subnet_selection=ANY),
    "subnet_selection",
    "vpc and subnet_selection",
)
row(
    "LLE158",
    lambda w: w.pattern(network=w.network(), subnet_selection=ANY),
    "subnet_selection",
    "vpc and subnet_selection",
)
row(
    "LLE158",
    lambda w: w.pattern(vpc=w.vpc(), subnets={}, subnet_selection=ANY),
    "subnet_selection",
    "vpc and subnet_selection",
)
row("LLE158", lambda w: w.pattern(vpc=w.vpc(), network_max_instances=9), "network_max", "or none")
row("LLE158", lambda w: w.pattern(network=w.network(), network_max_instances=9), "network, ", "or")
row(
    "LLE158",
    lambda w: w.network_in(subnets={}, subnet_selection=ANY),
    "subnet_selection",
    "one of the two",
)
row("LLE159", same_subnet_twice, "for us-east-1b the subnet of us-east-1a", "each zone")
row("LLE362", lambda w: w.network().subnet_of("us-east-1a"), "us-east-1a", "use1-az1, use1-az2")
row("LLE154", lambda w: w.pattern(client_zones=None), "neither", "one")

# --- 2 PrivateLink -----------------------------------------------------------------------------
row(
    "LLE216",
    lambda w: w.pattern(network=w.network(), private_link=w.elsewhere()),
    "two VPCs",
    "private_link.network",
)
row("LLE218", lambda w: w.link(fips=True, narrow_policy=False), "narrow_policy without", "with an")
row("LLE219", lambda w: w.adopted(private_dns=False), "private_dns=False", "both")
row(
    "LLE221",
    lambda w: w.pattern(**w.linked(), private_dns=True),
    "private_dns=True and private_link",
    "one of them",
)
for given in (
    {"regional_dns_name": "sentiment.example.com"},
    {"regional_dns_name": "vpce-1.runtime.sagemaker.x", "fips": True},
):
    row("LLE363", lambda w, given=given: w.adopted(**given), given["regional_dns_name"], "runtime")
row(
    "LLE222",
    lambda w: w.link(hosted_zone_vpcs=[w.foreign_vpc()]),
    "account 210987654321",
    "account 123456789012",
)
for outside_a_vpc in (
    lambda w: w.function(),
    lambda w: lambda_.Function.from_function_name(w.stack, "Shop", "shop"),
):
    row(
        "LLE226",
        lambda w, caller=outside_a_vpc: w.link().allow_from(caller(w)),
        "Only VPC-associated Lambda Functions",
        "a function in a VPC",
    )
    row(
        "LLE226",
        lambda w, caller=outside_a_vpc: w.pattern(**w.linked(), callers=[caller(w)]),
        "Only VPC-associated Lambda Functions",
        "a function in a VPC",
    )

# --- 3 model -----------------------------------------------------------------------------------


def environment(**entries):
    return Container(image=IMAGE, environment=entries)


def six_groups(w):
    group = ec2.SecurityGroup.from_security_group_id
    return [group(w.stack, f"Group{number}", f"sg-{number}") for number in range(6)]


LONG = environment(**{f"K{n}": "v" * 1000 for n in range(20)})
row("LLE305", lambda _: environment(**{f"K{n}": "v" for n in range(101)}), "101", "0 to 100")
row("LLE308", lambda w: w.model(containers=[LONG, LONG]), "40", "0 to 32768 bytes")
row("LLE307", lambda _: environment(KEY="é" * 513), "1026", "0 to 1024 bytes")
row("LLE310", lambda w: w.model(security_groups=[]), "0", "1 to 5")
row("LLE310", lambda w: w.model(security_groups=six_groups(w)), "6", "1 to 5")
row("LLE321", lambda w: w.containers("a", None), "1 hostnames for 2", "or for none")
out_of("LLE327", lambda _, v: ModelData.from_asset(v), ".tar.gz", "model", "no.tar.gz", __file__)
out_of("LLE329", lambda w, v: ModelData.from_s3(w.bucket(), v), "model.tar.gz", "", "/")
ARM64 = ecr_assets.Platform.LINUX_ARM64
row("LLE335", lambda w: w.built(platform=ARM64), "built for arm64 on ml.m5.xlarge", "arm64 types")
row(
    "LLE334",
    lambda w: w.built("ml.c7g.xlarge", architecture="x86_64"),
    "built for x86_64 on ml.c7g.xlarge",
    "x86_64 types",
)
row(
    "LLE338",
    lambda w: w.built(ami="al2-ami-sagemaker-inference-neuron-2"),
    "ml.m5.xlarge with al2-ami-sagemaker-inference-neuron-2",
    "ml.inf2",
)

# --- 4 variants and endpoint configuration -----------------------------------------------------
row("LLE401", lambda w: EndpointConfiguration(w.stack, "Empty", variants=[]), "0", "1 to 10")
row("LLE401", lambda w: w.several(11), "11", "1 to 10")
for code, name, least in (
    ("LLE406", "startup_health_check_timeout", 60),
    ("LLE407", "model_data_download_timeout", 60),
    ("LLE415", "instance_provision_timeout", 300),
):
    for seconds in (least - 1, 3601):
        given = {name: SECONDS(seconds)}
        row(code, lambda w, given=given: w.configured(**given), str(seconds), f"{least} to 3600")
row("LLE413", lambda w: w.pooled(*[("ml.m5.xlarge", 1)] * 6), "6", "1 to 5")
row("LLE421", lambda w: w.configuration(w.variant(), w.again()), "primary", "differ")
row("LLE421", lambda w: w.configuration(w.variant(), shadow=w.again()), "primary", "differ")
row("LLE422", lambda w: w.variant(instance_type=None), "neither", "instance_type or")
M5 = InstanceType("ml.m5.xlarge")
row("LLE422", lambda w: w.pooled(("ml.m5.xlarge", 1), instance_type=M5), "both", "instance_type or")
row(
    "LLE425",
    lambda w: w.pooled(("ml.m5.xlarge", 1), ("ml.m5.xlarge", 2)),
    "ml.m5.xlarge",
    "instance_type",
)
row("LLE425", lambda w: w.pooled(("ml.m5.xlarge", 1), ("ml.c5.xlarge", 1)), "1, 1", "priority")
row(
    "LLE431",
    lambda w: w.configuration(w.variant(), w.b(), shadow=w.b("c")),
    "c beside primary, b",
    "one production variant and one shadow",
)
row("LLE441", lambda w: w.component(memory=Size.mebibytes(127)), "127", "128")
row("LLE441", lambda w: w.component(max_memory=Size.mebibytes(1)), "1", "128")
row("LLE621", lambda w: w.host(min_instances=5), "min_instances=5, max_instances=4", "at most 4")
row(
    "LLE445",
    lambda w: w.component(endpoint=w.endpoint()),
    "variant primary with a model",
    "ComponentHost",
)
row(
    "LLE446",
    lambda w: w.component(accelerators=5),
    "1 copies with 5 accelerators",
    "4 accelerators on an ml.g5.12xlarge",
)
row(
    "LLE446",
    lambda w: w.component(accelerators=2, copies=9),
    "9 copies with 2 accelerators",
    "on 4 instances at most",
)
row(
    "LLE446",
    lambda w: w.component(memory=Size.gibibytes(193)),
    "MiB of memory",
    "196608 MiB of memory",
)
row("LLE446", lambda w: w.component(cpus=49), "49 vCPUs", "48 vCPUs")
row(
    "LLE446",
    lambda w: w.component(accelerators=1).scale(min_copies=1, max_copies=17),
    "17 copies with 1 accelerators",
    "on 4 instances at most",
)
row(
    "LLE451",
    lambda w: w.component().scale(min_copies=0, max_copies=2).from_zero(copies=3),
    "3 copies",
    "at most max_copies=2",
)
row(
    "LLE447",
    lambda w: w.hosting().scale("primary", **RANGE),
    "variant primary",
    "a variant with a model",
)
row(
    "LLE452",
    lambda w: w.host(scale_in="CONSOLIDATION", consolidation_cooldown=Duration.seconds(330)),
    "5.5",
    "5 to 1440",
)
row("LLE453", lambda w: w.host(scale_in="CONSOLIDATION", consolidation_step=101), "101", "1 to 100")
row(
    "LLE454",
    lambda w: w.host(scale_in="IDLE_RELEASE", consolidation_step=2),
    "IDLE_RELEASE",
    "CONSOLIDATION",
)
row(
    "LLE447",
    lambda w: LatencyAlarms(w.stack, "A", endpoint=w.hosting()),
    "variant primary",
    "a component",
)
ONE_HOST = "one ComponentHost for all variants"
row(
    "LLE448",
    lambda w: w.configuration(w.variant(), w.b(model=w.host())),
    "variants primary, b",
    ONE_HOST,
)
row(
    "LLE448",
    lambda w: w.configuration(w.variant(model=w.host()), shadow=w.b()),
    "variants primary, b",
    ONE_HOST,
)
row(
    "LLE621",
    lambda w: w.component().scale(min_copies=3, max_copies=2),
    "min_instances=3",
    "at most 2",
)
row("LLE625", lambda w: w.component().scale(min_copies=3, max_copies=4), "2 copies", "3 to 4")
row(
    "LLE722",
    lambda w: w.component().metric("LoadedModelCount", statistic="Sum"),
    "LoadedModelCount",
    "multi-model",
)
row("LLE807", lambda w: w.configuration(w.variant(), shadow=[w.b()]), "list", "ProductionVariant")
row(
    "LLE426",
    lambda w: w.configuration(w.variant(weight=0), w.b(weight=0)),
    "primary: 0, b: 0",
    "above 0",
)

# --- 5 endpoint and deployments ----------------------------------------------------------------
row("LLE509", lambda w: w.endpoint(tags={f"k{n}": "v" for n in range(51)}), "51", "0 to 50")
row("LLE522", lambda w: w.deployed("rolling", w.variant(), w.b()), "2 variants", "1")
INF1 = InstanceType("ml.inf1.xlarge")
row(
    "LLE523",
    lambda w: w.deployed("canary", w.variant(instance_type=INF1)),
    "CANARY on ml.inf1.xlarge",
    "ALL_AT_ONCE",
)

row("LLE561", lambda w: w.fleet(cpu=256, memory_mib=4096), "4096 MiB with 256", "512, 1024, 2048")
row("LLE561", lambda w: w.fleet(memory_mib=2500), "2500 MiB with 1024", "2048 to 8192 MiB in steps")
row("LLE216", lambda w: w.fleet(private_link=w.elsewhere()), "two VPCs", "private_link.network")
row("LLE566", lambda w: w.fleet(endpoint=cdk.Aws.STACK_NAME), "a token", "known at synth")

# --- 6 scaling ---------------------------------------------------------------------------------
row(
    "LLE602",
    lambda w: w.scaled().track_invocations(target_invocations_per_instance=1e200),
    "1e+200",
    "8.51592e-109",
)
row("LLE621", lambda w: w.scaled(min_instances=5), "min_instances=5", "at most 4")
DAILY = appscaling.Schedule.cron(hour="1")
BACKWARDS = {"schedule": DAILY, "min_instances": 3, "max_instances": 2}
row(
    "LLE621", lambda w: w.scaled().on_schedule("night", **BACKWARDS), "min_instances=3", "at most 2"
)
row("LLE622", lambda w: w.endpoint().scale("b", min_instances=1, max_instances=2), "b", "primary")
row(
    "LLE624",
    lambda w: w.scaled(instance_type=InstanceType("ml.t2.medium")),
    "ml.t2.medium",
    "not burstable",
)
row("LLE625", lambda w: w.scaled(initial_instance_count=5), "5", "2 to 4")
row("LLE625", lambda w: w.scaled(initial_instance_count=1), "1", "2 to 4")


def tracked_twice(w):
    scaling = w.scaled().track_concurrency(max_concurrency_per_instance=1)
    scaling.track_concurrency(max_concurrency_per_instance=2)


row("LLE626", tracked_twice, "Concurrency", "none of")
row("LLE364", lambda _: ScalingStep(change=1.5), "1.5", "a whole number")
row("LLE627", lambda w: w.scaled().on_schedule("night", schedule=DAILY), "neither", "one or both")
STEP = {
    "metric": cloudwatch.Metric(namespace="Shop", metric_name="Orders"),
    "threshold": 1,
    "steps": [ScalingStep(lower=3, upper=3, change=1)],
}
row(
    "LLE628",
    lambda w: w.scaled().step_on_metric("S", **STEP | {"steps": []}),
    "no steps",
    "at least one",
)
for names in (("use1-az1", "us-east-1b"), ("us-east-1a", "us-east-1b")):
    row(
        "LLE101", lambda _, names=names: ClientZones.of_ids(*names), "us-east-1", "such as use1-az4"
    )
row("LLE102", lambda _: ClientZones.of_names("use1-az1", "use1-az2"), "use1", "such as us-east-1a")
row("LLE914", lambda _: ContainerImage.from_dlc("a", "b", account="text"), "text", "twelve digits")
row("LLE630", lambda w: w.scaled().step_on_metric("S", **STEP), "a step from 3 to 3", "")
for name, value in (
    ("invocations_target", 3),
    ("scale_in_cooldown", HOUR),
    ("scale_out_cooldown", HOUR),
):
    given = {"enabled": False, name: value}
    row("LLE629", lambda _, given=given: ScalingOptions(**given), name, "enabled off without")
row(
    "LLE825",
    lambda w: w.pattern(instance_type=InstanceType(w.text())),
    "a token",
    "ml.g5.xlarge, known at synth",
)
row("LLE825", lambda w: w.pattern(payload_bytes=w.number()), "a token", "known at synth")
row(
    "LLE106",
    lambda w: w.pattern(network_max_instances=w.number()),
    "a token",
    "at least 1, known at synth",
)
row("LLE106", lambda w: w.network(max_instances=w.number()), "a token", "known at synth")
row("LLE105", lambda w: w.network(subnet_prefix_length=w.number()), "a token", "known at synth")
row("LLE111", lambda w: w.network(cidr=w.text()), "a token", "known at synth")
row("LLE725", lambda w: w.alarms(cpu_utilization=w.number()), "a token", "known at synth")
row("LLE703", lambda w: w.alarms(cache_miss_rate=w.number()), "a token", "known at synth")

# --- 7 metrics and alarms ----------------------------------------------------------------------
row("LLE721", lambda w: w.alarms(evaluation_periods=2, datapoints_to_alarm=3), "3 of 2", "most 2")
row(
    "LLE737",
    lambda w: w.alarms(evaluation_periods=300, period=SECONDS(3600)),
    "300 x 3,600 seconds",
    "at most 604,800 seconds in all",
)
row("LLE366", lambda w: w.alarms(error_rate=0.1, period=SECONDS(90)), "90s", "whole minutes")
row(
    "LLE366",
    lambda w: w.endpoint().metric_invocations(period=timedelta(0)),
    "0 seconds",
    "whole minutes",
)
row("LLE722", lambda w: w.alarms(gpu_utilization=80), "GPUUtilization", "NVIDIA GPUs")
row("LLE723", lambda w: w.alarms(model_latency=P99 | {"Critical": P99}), "p99, Critical", "forms")
row("LLE739", lambda w: w.alarms(service_level_objective=0.99), "no threshold", "model_latency")
row("LLE724", lambda w: w.alarms(capacity_at_maximum=True), "does not scale", "scaled variant")
NIGHT = partial(ScalingSchedule, name="night", rate="1 day", min=2)
ONCE = partial(ScalingSchedule, name="once", at="2030-01-01T00:00:00", min=2)
row("LLE612", lambda _: NIGHT(rate="0 days"), "rate(0 days)", "rate(1 unit)")
row("LLE927", lambda _: ONCE(rate="1 day"), "at and rate", "cron, at, rate")
out_of("LLE613", lambda _, v: ONCE(time_zone=v), "Europe/Berlin", "Mars/Olympus", "Berlin")
row(
    "LLE613",
    lambda _: NIGHT(time_zone="Europe/Berlin"),
    "Europe/Berlin with rate",
    "cron and at only",
)
row("LLE621", lambda _: NIGHT(min=9, max=8), "9 above 8", "at most 8")
row("LLE627", lambda _: NIGHT(min=None), "neither", "min, max or both")
row("LLE628", lambda _: ScalingSteps(adds=[]), "no steps", "at least one")
row(
    "LLE628",
    lambda _: ScalingSteps(adds=[StepUp(requests=8, add=2), StepUp(requests=16, add=2)]),
    "2 from 16",
    "rising",
)
STEPPED = ScalingOptions(steps=ScalingSteps(adds=[StepUp(requests=8, add=1)]))
row("LLE634", lambda w: w.pattern(scaling=STEPPED), "steps on a fleet of 2", "scaling")
row(
    "LLE734",
    lambda w: ShadowAlarms(w.stack, "A", endpoint=w.endpoint()),
    "without one",
    "shadow=...",
)
row("LLE730", lambda w: w.endpoint().metric("Latency", statistic="p99"), "Latency", "ModelLatency")
out_of("LLE731", lambda w, v: w.alarms(model_latency={v: HOUR}), "p99", "P99", "p101", "mean", "")
row("LLE732", lambda w: w.alarms(overhead_latency=P99), "p99", "Average")

row("LLE633", lambda w: w.scaled().track_invocations(), "neither", "max_tps_per_instance or")
BOTH = {"target_invocations_per_instance": 500, "max_tps_per_instance": 3}
row("LLE633", lambda w: w.scaled().track_invocations(**BOTH), "both", "max_tps_per_instance or")

# --- imported ---------------------------------------------------------------------------------
row(
    "LLE514",
    lambda w: Endpoint.from_endpoint_attributes(w.stack, "E"),
    "neither",
    "endpoint_name, endpoint_arn or both",
)
row("LLE631", lambda w: w.alarms(endpoint=w.imported()), "alone", "an import with variants")
row("LLE631", lambda w: w.imported().metric_invocations(), "alone", "an import with variants")
row(
    "LLE728",
    lambda w: w.imported("V").metric_invocations(fleet="new"),
    "imported",
    "endpoint_config_name",
)
row(
    "LLE729",
    lambda w: w.alarms(endpoint=w.imported("V"), zone_imbalance=2),
    "V",
    "network and instance_types",
)
row("LLE370", lambda _: Container(data="s3://models/model.tar.gz"), "neither", "model_package")

# --- 8 arguments -------------------------------------------------------------------------------
row("LLE807", lambda _: environment(N=1), "a number", "text")
row("LLE807", lambda _: Container(image=IMAGE, environment=["N"]), "list", "a mapping of text to")
row("LLE807", lambda _: InstancePool("ml.m5.xlarge", 1), "text", "InstanceType(")
row("LLE807", lambda w: w.variant(instance_pools=["ml.m5.xlarge"]), "text", "InstancePool(")
row("LLE807", lambda w: w.pattern(instance_type=7), "7", "InstanceType(")
row("LLE807", lambda w: w.pattern(containers=w.parts.container()), "Container", "even for one")
row("LLE807", lambda w: w.model(containers=w.parts.container()), "Container", "a list of Container")
row("LLE807", lambda w: w.model(containers=["image"]), "text", "Container(")
row("LLE807", lambda w: w.network(max_instances="four"), "text", "a whole number or None")
row("LLE807", lambda w: w.variant(weight=float("nan")), "nan", "a finite number")
row("LLE807", lambda w: w.endpoint(tags={"k": 7}), "a number", "text")
row("LLE807", lambda w: w.fleet(image="load:1"), "text", "ContainerImage or None")
row("LLE807", lambda w: w.fleet(endpoint=None), "None", "Endpoint or text")
row("LLE807", lambda w: w.pattern(dashboard="no"), "text", "True or False")
row("LLE807", lambda _: ModelOptions(role="arn:aws:iam::1:role/a"), "text", "aws_iam.IRole or None")
row("LLE807", lambda _: ModelOptions(role=iam.Role), "the class Role", "aws_iam.IRole or None")
row("LLE807", lambda _: ContainerImage.from_dlc(None, "t"), "None", "text")
row("LLE807", lambda w: w.pattern(alarms=AlarmOptions(model_latency="tight")), "text", "'planned'")
row(
    "LLE360",
    lambda w: w.pattern(alarms={"alarm_actions": []}),
    "with no option of AlarmOptions's: 'alarm_actions'",
    "alarms=AlarmOptions(...), with model_",
)
row("LLE360", lambda w: w.pattern(alarms={"period": None}), "a mapping", "alarms=AlarmOptions(")
row(
    "LLE360",
    lambda w: w.pattern(warm_up={"payload": {}, "count": 3}),
    "'count'",
    "warm_up=WarmUpOptions(payload=...)",
)
PAYLOAD = WarmUpPayload(data={})
row(
    "LLE929",
    lambda _: WarmUpOptions(payload=PAYLOAD, requests=0, keep_warm=KeepWarmOptions()),
    "keep_warm beside requests of 0",
    "requests of 1 or more",
)
row(
    "LLE360",
    lambda _: WarmUpOptions(payload=PAYLOAD, keep_warm={"every": 1}),
    "a mapping",
    "keep_warm=KeepWarmOptions(every=...)",
)
row("LLE360", lambda w: w.model(containers=[{"image": IMAGE}]), "a mapping", "Container(image=...)")
row(
    "LLE801",
    lambda w: w.configured(startup_health_check_timeout=300),
    "300",
    "a Duration, a timedelta",
)
row("LLE801", lambda w: w.alarms(model_latency={"p99": 300}), "300", "a Duration, a timedelta")

# --- models of the Hugging Face Hub, from a lock file ---------------------------------------------
CODE = replace(
    QWEN,
    config={"architectures": ["OwnForCausalLM"], "model_type": "own", "auto_map": {"A": "own.A"}},
    files=(*QWEN.files, PinnedFile("own.py", 9, "0" * 64)),
)
T5 = replace(
    QWEN,
    config={
        **QWEN.config,
        "architectures": ["T5ForConditionalGeneration"],
        "is_encoder_decoder": True,
    },
)
row("LLE343", lambda w: w.hub(lock="missing.yaml"), "No such file", "low-latency pin")
row("LLE344", lambda w: w.hub("acme/other"), "acme/other", "Qwen/Qwen3-8B")
row("LLE345", lambda w: w.hub(edited=True), "another digest", "what low-latency pin wrote")
row("LLE346", lambda w: w.hub(accept_license="mit"), "accept_license mit", "apache-2.0")


row("LLE353", lambda w: w.hub(instance_type="ml.m5.large"), "vllm on ml.m5.large", "NVIDIA GPUs")
row("LLE354", lambda w: w.hub(pinned=T5), "T5ForConditionalGeneration", "")
row("LLE355", lambda w: w.hub(instance_type="ml.g4dn.xlarge"), "15.3 GiB", "ml.g6e.")
row("LLE356", lambda w: w.hub(volume=9, instance_type="ml.inf2.8xlarge"), "15.3 GiB", "9.0 GiB")


row("LLE390", lambda w: w.hub(pinned=CODE), "own.py", "trust_remote_code")
row("LLE391", lambda w: w.hub(context_length=40_961), "40,961", "40,960")


#: Tried elsewhere, or not reachable through a construct: where or why, and the codes.
ELSEWHERE = {
    "the stack of the settings file looks VPCs and subnets up": "LLE155 LLE156 LLE160",
    "a platform is ecr_assets.Platform in Python; the settings file names it": "LLE312",
    "from_s3 tells object and prefix apart by the slash; the settings file says which": "LLE325",
    "the settings file's; constructs take IPrefixList": "LLE342",
    "tests/settings/mistakes.yaml": "LLE107 LLE213 LLE220 LLE301 LLE322 LLE323 LLE324"
    " LLE326 LLE371 LLE372",
    "the settings file's: tests/settings": "LLE381 LLE382 LLE383 LLE386 LLE387 LLE388"
    " LLE389 LLE437 LLE438",
    "a Duration is always finite": "LLE733",
    "tests/synth/test_shared_vpc.py": "LLE223 LLE225",
    "tests/review/test_context.py": "LLE227 LLE228",
    "tests/synth/test_load_test_fleet.py": "LLE567",
    "tests/hugging_face/test_staging.py": "LLE313 LLE357 LLE398",
    "tests/hugging_face/test_pinning.py": "LLE319 LLE320 LLE347 LLE348 LLE349 LLE350 LLE351 LLE358",
    "tests/settings/test_what_synthesis_refuses.py": "LLE380",
    "tests/synth/test_endpoint.py": "LLE508 LLE512 LLE521",
    "tests/plan/test_hub_serving.py": "LLE393",
    "tests/plan/test_serving_containers.py": "LLE392",
    "tests/facts/test_images.py": "LLE330 LLE331 LLE332 LLE333 LLE337",
    "tests/plan/test_capacity_and_routing.py": "LLE423",
    "tests/plan/test_scaling_pace.py": "LLE609",
    "tests/plan/test_daily_peaks.py": "LLE644 LLE645 LLE646",
    "tests/report/test_impossible_numbers.py": "LLE640",
    "tests/synth/test_private_link.py": "LLE211 LLE212 LLE214 LLE215",
    "tests/synth/test_container.py": "LLE318 LLE328",
    "tests/synth/test_s3_access.py": "LLE340",
    "tests/synth/test_hugging_face_model.py": "LLE314 LLE352 LLE359 LLE368 LLE399",
    "tests/synth/test_stack_limits.py": "LLE217 LLE378 LLE384 LLE385 LLE736",
    "tests/synth/test_endpoint_configuration.py": "LLE336 LLE424",
    "tests/synth/test_pattern.py": "LLE432 LLE433 LLE434 LLE435 LLE436",
    "tests/synth/test_scaling.py": "LLE623",
}
# The warm-up's: tried in tests/synth/warm_up.
BESIDE = ("LLE54", "LLE55")


@pytest.fixture(scope="module")
def parts(parts):
    """Models stand in an imported VPC, which is made in a fifth of the time of one of their own."""

    class InExistingVpc(type(parts)):
        def _shared_network(self, stack):
            found = stack.node.try_find_child("Network")
            if isinstance(found, ZoneAlignedNetwork) or stack.region != "us-east-1":
                return super()._shared_network(stack)
            return self.network_in(stack)

    return InExistingVpc()


#: Switches and mappings as a settings file has them, and paths in it.
OF_YAML = re.compile(
    r": (true|false)\b|\{[a-z_]+: [^\"']|(?<![=\w])(endpoints|network|private_link)\.[a-z_]+\b[^(]"
)


@pytest.mark.parametrize(("code", "make", "got", "allowed"), ROWS)
def test_refused(new_stack, parts, code, make, got, allowed):
    with pytest.raises(ConfigurationError) as raised:
        make(World(new_stack(), parts, new_stack))
    error = raised.value
    assert error.code == code, str(error)
    assert got in error.got
    assert allowed in error.allowed
    assert error.fix
    said = [error.what, error.got, error.allowed, error.fix]
    assert not [part for part in said if OF_YAML.search(part)], "an app has no settings file"
    assert not contradicts_itself(error.got, error.allowed), str(error)
    assert all(text in str(error) for text in (code, error.got, error.allowed, error.fix))


TOPIC = "aws_cloudwatch_actions.SnsAction(topic)"
FIXES = [
    (lambda w: w.pattern(instance_type="m5.12xlarge"), "Write ml.m5.12xlarge."),
    (lambda w: w.pattern(instance_type="ml-m5-12xlarge"), "Write ml.m5.12xlarge."),
    (
        lambda w: w.pattern(instance_type=ec2.InstanceType("m5.12xlarge")),
        'Pass low_latency_endpoint.InstanceType("ml.m5.12xlarge") or text',
    ),
    (lambda w: w.pattern(containers=w.parts.container()), "Pass a list, even of one: containers=["),
    (lambda w: w.pattern(callers=ec2.Peer.any_ipv4()), "Pass a list, even of one: callers=["),
    (lambda w: AlarmOptions(actions=[sns.Topic(w.stack, "T")]), f"Pass {TOPIC} or AlarmTopic("),
    (lambda w: AlarmOptions(actions=sns.Topic(w.stack, "T")), f"Pass [{TOPIC}] as actions."),
    (lambda _: VariantOptions(routing="random"), "Pass RoutingStrategy.RANDOM as routing."),
    (lambda _: VariantOptions(routing=1), "RANDOM or RoutingStrategy.LEAST_OUTSTANDING_REQUESTS"),
    (lambda _: ModelOptions(role="arn:aws:iam::1:role/a"), "Pass aws_iam.Role.from_role_arn(...)"),
    (lambda w: w.pattern(vpc="vpc-1"), "Pass aws_ec2.Vpc.from_lookup(...) as vpc."),
    (lambda _: WarmUpOptions(payload={"inputs": "a"}), "Pass WarmUpPayload(data="),
    (lambda _: InstanceCounts(max="4"), "a whole number as max, without"),
    (lambda w: w.pattern(latency=200), 'Pass LatencyTarget(p99="200ms") as latency.'),
    (lambda w: w.pattern(latency=timedelta(1)), "Pass LatencyTarget(p99=...) as latency."),
    (
        lambda w: w.pattern(containers=["team/x:1"]),
        'Pass Container(image=ContainerImage.from_uri("...")) as containers[0].',
    ),
    (lambda _: Container(image="team/x:1"), 'Pass ContainerImage.from_uri("...") as image.'),
    (lambda w: w.pattern(alarms=[w.topic_action()]), "Pass AlarmOptions(actions=...) as alarms."),
    (lambda w: w.pattern(endpoint="fraud"), "Pass EndpointOptions(endpoint_name=...) as endpoint."),
    (lambda _: EndpointOptions(name="fraud"), "Did you mean endpoint_name?"),
    (lambda _: IDS(["use1-az1", "use1-az2"]), "Unpack the list: ClientZones.of_ids(*zones)."),
    (
        lambda w: w.pattern(instance_type=["ml.m5.xlarge"]),
        "Pass InstancePool(instance_type=..., priority=...) as instance_type[0].",
    ),
    (lambda _: MeasuredThroughput(peak_tps=20), "Pass a finite number as tps_per_instance."),
    (lambda _: Container(IMAGE), "Write its name: image=..."),
    (lambda w: w.pattern(instancetype="ml.m5.xlarge"), "Did you mean instance_type?"),
    (lambda w: w.pattern(routing="RANDOM"), "It belongs in variant=VariantOptions(routing=...)"),
    (lambda w: w.pattern(p99=Duration.millis(200)), "in latency=LatencyTarget(p99=...)."),
    (lambda _: AlarmOptions(waiting_requests=4), "It belongs in tokens=TokenAlarmOptions("),
    (lambda _: Container(image=IMAGE, data="my-bucket/m.tar.gz"), "Write s3://my-bucket/m.tar.gz."),
    (lambda _: Container(image=IMAGE, data="./m.tar.gz"), "ModelData.from_asset(path)"),
    (lambda _: DataCapture(s3="my-bucket/captured"), "Write s3://my-bucket/captured."),
    (lambda w: w.endpoint(endpoint_name="my_endpoint"), "Write my-endpoint."),
    (lambda w: w.endpoint(endpoint_name="-" + 70 * "x"), f"Write {63 * 'x'}."),
    (lambda w: environment(**{"MY-KEY": "v"}), "Write MY_KEY."),
    (lambda w: w.variant(volume_size_gib=1000), "Give 512 or less."),
    (lambda w: w.variant(volume_size_gib=1.5), "Give 1 or 2."),
    (lambda w: w.alarms(cpu_utilization=0.85), "Write 85, in percent."),
    (lambda _: MetricsPublishing(publish_frequency="15s"), "Did you mean 10?"),
]


@pytest.mark.parametrize(("make", "fix"), FIXES)
def test_the_fix_says_what_to_write(new_stack, parts, make, fix):
    with pytest.raises(ConfigurationError) as raised:
        make(World(new_stack(), parts, new_stack))
    assert fix in raised.value.fix


@pytest.mark.parametrize(
    ("account", "region", "code", "fix"),
    [
        ("1234-5678-9012", "us-east-1", "LLE914", "Write 123456789012."),
        (None, "us-east1", "LLE913", ""),
    ],
)
def test_the_stacks_account_has_twelve_digits(new_stack, parts, account, region, code, fix):
    stack = cdk.Stack(cdk.App(), "Serving", env=cdk.Environment(account=account, region=region))
    with pytest.raises(ConfigurationError) as raised:
        parts.pattern(stack)
    assert raised.value.code == code
    assert fix in raised.value.fix


@pytest.mark.parametrize(
    ("name", "meant"), [("ml.m5.13xlarge", "ml.m5.12xlarge"), ("ml.new9.ultra", "")]
)
def test_a_type_that_is_not_known_may_be_misspelt(parts, stack, name, meant):
    parts.pattern(stack, instance_type=name)
    (said,) = warnings_in(stack, name)  # from the plan, the configuration and its alarms
    assert "not in this version's table" in said
    assert f"(did you mean {meant}?)" in said if meant else "did you mean" not in said


def registered() -> set[str]:
    """The codes of constructs, LLE1xx to LLE7xx, after importing everything that a construct can reach."""
    for module in pkgutil.walk_packages(low_latency_endpoint.__path__, "low_latency_endpoint."):
        # Locust, in some of load_test, would patch the standard library of this process.
        if module.name.split(".")[1] not in ("cli", "load_test"):
            importlib.import_module(module.name)
    return {rule.code for rule in rules() if "LLE1" <= rule.code < "LLE8"}


def test_every_rule_is_tried_here_or_said_to_be_elsewhere():
    tried = {parameters.values[0] for parameters in ROWS} | TABLE.keys()
    tried |= {each.option.entries.rule.code for _, each in COUNTED}
    elsewhere = set(" ".join(ELSEWHERE.values()).split())
    wanted = {code for code in registered() - tried if not code.startswith(BESIDE)}
    assert sorted(wanted - elsewhere) == [], (
        "a limit's code: add its argument to tests/synth/limits_of_arguments.yaml; another rule's: "
        "add a row(...) here, or the code to ELSEWHERE with the file that tries it"
    )
    assert sorted(elsewhere - wanted) == [], "take them from ELSEWHERE: no rule has them, or a row"
    for place, codes in ELSEWHERE.items():
        if place.endswith(".py"):
            text = (Path(__file__).parents[2] / place).read_text("utf-8")
            assert all(code in text for code in codes.split()), place


def test_a_timedelta_is_one(new_stack, parts):
    World(new_stack(), parts, new_stack).configured(
        startup_health_check_timeout=timedelta(minutes=5)
    )
