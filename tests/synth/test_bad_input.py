"""Every rule that a construct can break, tried through a construct.

Limits of single arguments: test_limits_of_arguments.py.

A row is the code, how it is broken, and what the error has to say was got and is allowed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Duration, Size
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

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
    FurtherVariant,
    InferenceAmi,
    InferenceComponent,
    InstancePool,
    InstanceType,
    LatencyAlarms,
    LatencyTarget,
    LoadTestFleet,
    LowLatencyEndpoint,
    MeasuredThroughput,
    MetricsPublishing,
    Model,
    ModelData,
    ModelOptions,
    RoutingStrategy,
    RuntimePrivateLink,
    ScalingOptions,
    ScalingSchedule,
    ScalingSteps,
    ShadowAlarms,
    StagedModel,
    VariantAttributes,
    WarmUpOptions,
    WarmUpPayload,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError, rules
from low_latency_endpoint.hosting.container import container_on
from low_latency_endpoint.hosting.scaling_policies import ScalingStep
from low_latency_endpoint.plan.latency_plan import EndpointRequest, make_plan
from low_latency_endpoint.plan.pinned_model import PinnedFile
from tests.pinned_models import QWEN, written_lock

from .test_limits_of_arguments import TABLE

ROWS: list[Any] = []


@dataclass
class World:
    """What a row may build with."""

    stack: cdk.Stack
    parts: Any
    new_stack: Callable[..., cdk.Stack]

    def vpc(self, zones=("us-east-1a", "us-east-1b"), **given) -> ec2.IVpc:
        given = given or {"private_subnet_ids": [f"subnet-{zone}" for zone in zones]}
        return ec2.Vpc.from_vpc_attributes(
            self.stack,
            "Vpc",
            vpc_id="vpc-0123456789abcdef0",
            availability_zones=list(zones),
            **given,
        )

    def in_vpc(self, vpc=None, zones=("us-east-1a", "us-east-1b"), **given):
        return ZoneAlignedNetwork.in_vpc(
            self.stack,
            "Network",
            vpc=vpc or self.vpc(),
            client_zones=ClientZones.of_names(*zones),
            **given,
        )

    def network(self, id="Network", **given):
        return self.parts.network(self.stack, id, **given)

    def model(self, **given):
        return self.parts.model(self.stack, **given)

    def containers(self, *hostnames, **given):
        containers = [self.parts.container(hostname=hostname) for hostname in hostnames]
        return self.model(containers=containers, **given)

    def variant(self, **given):
        return self.parts.variant(self.stack, **given)

    def configuration(self, *variants, **given):
        return self.parts.configuration(self.stack, variants=list(variants), **given)

    def configured(self, **given):
        return self.configuration(self.variant(**given))

    def endpoint(self, **given):
        return self.parts.endpoint(self.stack, **given)

    def hub(self, model=QWEN.model, *, pinned=QWEN, edited=False, volume=None, **given):
        """A container of the Hub on a type; without a model's name one that has none yet."""
        folder = Path(self.stack.node.root.outdir)
        lock = written_lock(folder, pinned)
        if edited:
            lock.write_text(lock.read_text().replace("main", "next"))
        if given.get("lock"):
            lock = folder / given.pop("lock")
        on = given.pop("instance_type", "ml.g6.2xlarge")
        container = Container.from_hugging_face(model or QWEN.model, lock=str(lock), **given)
        return container if model is None else container_on(container, [on], volume)

    def hub_model(self, pinned, **given):
        return StagedModel(self.stack, "Staged", pinned=pinned, **given)

    def host(self, **given):
        network = self.stack.node.try_find_child("Network") or self.network()
        return ComponentHost(
            self.stack, "Host", **{"network": network, "max_instances": 4, **given}
        )

    def hosting(self):
        model = {"model": self.host(), "instance_type": InstanceType("ml.g5.12xlarge")}
        return self.endpoint(configuration=self.configuration(self.variant(**model)))

    def component(self, **given):
        given.setdefault("endpoint", None)
        endpoint = given.pop("endpoint") or self.hosting()
        return InferenceComponent(
            self.stack,
            "Component",
            **{
                "endpoint": endpoint,
                "model": Model.from_model_name(self.stack, "Served", "served"),
                "memory": Size.gibibytes(16),
                **given,
            },
        )

    def deployed(self, policy, *variants):
        configuration = self.configuration(*variants) if variants else None
        return self.endpoint(configuration=configuration, deployment=policy)

    def scaled(self, min_instances=2, max_instances=4, **variant):
        endpoint = self.endpoint(configuration=self.configured(**variant))
        return endpoint.scale("primary", min_instances=min_instances, max_instances=max_instances)

    def alarms(self, **given):
        given.setdefault("endpoint", self.endpoint())
        return LatencyAlarms(self.stack, "Alarms", **given)

    def imported(self, **given):
        return Endpoint.from_endpoint_attributes(
            self.stack, "Imported", endpoint_name="sentiment", **given
        )

    def shadow_alarms(self, shadow=True, **given):
        candidate = self.variant(name="candidate") if shadow else None
        configuration = self.configuration(self.variant(), shadow=candidate)
        endpoint = self.endpoint(configuration=configuration)
        return ShadowAlarms(self.stack, "Alarms", endpoint=endpoint, **given)

    def link(self, network=None, **given):
        return RuntimePrivateLink(self.stack, "Link", network=network or self.network(), **given)

    def fleet(self, network=None, **given):
        link = self.link(network=network)
        image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/load:1")
        return LoadTestFleet(
            self.stack,
            "Fleet",
            **{
                "network": link.network,
                "private_link": link,
                "endpoint": "sentiment",
                "image": image,
                **given,
            },
        )

    def pattern(self, **given):
        given.setdefault("instance_type", InstanceType("ml.m5.xlarge"))
        given.setdefault("latency", LatencyTarget(p99=Duration.millis(200)))
        given.setdefault("containers", [self.parts.container()])
        if not {"network", "client_zones"} & given.keys():
            given["client_zones"] = ClientZones.of_ids("use1-az1", "use1-az2")
        return LowLatencyEndpoint(self.stack, "Pattern", **given)

    def image(
        self, type, repository="pytorch-inference", tag="2.6.0-cpu-py312-ubuntu22.04", ami=None
    ):
        image = ContainerImage.from_dlc(repository, tag)
        return self.configured(
            model=self.model(containers=[self.parts.container(image=image)]),
            instance_type=InstanceType(type),
            inference_ami=InferenceAmi(ami) if ami else None,
        )


def row(code: str, make: Callable[[World], Any], got: str, allowed: str) -> None:
    ROWS.append(pytest.param(code, make, got, allowed, id=f"{code}-{len(ROWS)}"))


def out_of(code: str, make: Callable[[World, Any], Any], allowed: str, *values: Any) -> None:
    """One row for each value outside a limit."""
    for value in values:
        shown = value if isinstance(value, str) else repr(value)
        row(code, lambda world, value=value: make(world, value), shown, allowed)


# --- 1 network ---------------------------------------------------------------------------------
row("LLE103", lambda _: ClientZones.of_names("dummy1a"), "1", "2 to 16")
row("LLE103", lambda _: ClientZones.of_ids(), "0", "2 to 16")
row("LLE103", lambda _: ClientZones.of_ids("use1-az1"), "1", "2 to 16")
row("LLE103", lambda _: ClientZones.of_ids(*(f"use1-az{n}" for n in range(1, 18))), "17", "2 to 16")
row("LLE104", lambda w: w.network(cidr="10.0.0.0/15"), "15", "16 to 28")
row("LLE104", lambda w: w.network(cidr="10.0.0.0/8"), "8", "16 to 28")
row("LLE107", lambda _: ClientZones.of_ids("use1-az1", "use1-az1"), "use1-az1", "differ")
row(
    "LLE110",
    lambda w: w.network(client_zones=ClientZones.of_ids("euw1-az1", "euw1-az2")),
    "euw1-az1",
    "us-east-1",
)
row("LLE110", lambda w: w.in_vpc(zones=("eu-west-1a", "eu-west-1b")), "eu-west-1a", "us-east-1")
out_of(
    "LLE111",
    lambda w, v: w.network(cidr=v),
    "10.0.0.0/16",
    "10.0.0.1/16",
    "10.0.0.0/33",
    "fd00::/56",
    "everything",
    "",
)
row("LLE112", lambda w: w.network(cidr="10.0.0.0/28"), "2 subnets of /24", "10.0.0.0/28")
row("LLE112", lambda w: w.network(cidr="10.0.0.0/24", subnet_prefix_length=24), "/24", "1 blocks")
row("LLE113", lambda w: w.network(max_instances=20_000), "80022 addresses", "65536")
row(
    "LLE113",
    lambda w: w.network(max_instances=59, subnet_prefix_length=24),
    "258 addresses",
    "/23 or larger",
)
row("LLE151", lambda w: w.in_vpc(zones=("us-east-1a", "us-east-1c")), "us-east-1c", "us-east-1b")
row(
    "LLE152",
    lambda w: ZoneAlignedNetwork.in_vpc(
        w.stack, "Network", vpc=w.vpc(), client_zones=ClientZones.of_ids("use1-az1", "use1-az2")
    ),
    "use1-az1, use1-az2",
    "subnets=",
)
row(
    "LLE152",
    lambda w: ClientZones.of_vpc(ec2.Vpc(w.new_stack(region=None), "Vpc")),
    "tokens",
    "known by name",
)
row(
    "LLE151",
    lambda w: ClientZones.of_vpc(w.vpc(public_subnet_ids=["subnet-a", "subnet-b"])),
    "no isolated and no private subnet",
    "private or isolated",
)
row("LLE103", lambda w: ClientZones.of_vpc(w.vpc(zones=("us-east-1a",))), "1", "2 to 16")
row("LLE153", lambda w: w.in_vpc(subnets={}), "no zone", "us-east-1a, us-east-1b")
row(
    "LLE154",
    lambda w: LowLatencyEndpoint(
        w.stack,
        "Both",
        client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
        network=w.network(),
        containers=[w.parts.container()],
        instance_type=InstanceType("ml.m5.xlarge"),
        latency=LatencyTarget(p99=Duration.millis(200)),
    ),
    "both",
    "one",
)


def sharing(w, *maxima, **given):
    """Endpoints with these maximums, all in the first one's network."""
    network = w.network(**given)
    for index, maximum in enumerate(maxima):
        model = w.parts.model(w.stack, f"M{index}", network=network)
        w.parts.endpoint(
            w.stack,
            f"E{index}",
            configuration=w.parts.configuration(
                w.stack, f"C{index}", variants=[w.variant(model=model)]
            ),
        ).scale("primary", min_instances=2, max_instances=maximum)


row(
    "LLE157",
    lambda w: sharing(w, 59),
    "59 instances, 118 in updates, 258 addresses",
    "/23 or larger",
)
row("LLE157", lambda w: sharing(w, 50, 50), "100 instances", "/23 or larger")
row(
    "LLE157",
    lambda w: w.pattern(scaling=ScalingOptions(max_instances=8), network_max_instances=7),
    "7, and 8",
    "least 8",
)
row("LLE158", lambda w: w.pattern(network=w.network(), vpc=w.vpc()), "network, vpc", "none of them")
row("LLE158", lambda w: w.pattern(subnets={}), "subnets", "vpc and subnets")
for given in (
    lambda w: {"subnet_selection": ec2.SubnetSelection()},
    lambda w: {"network": w.network(), "subnet_selection": ec2.SubnetSelection()},
    lambda w: {"vpc": w.vpc(), "subnets": {}, "subnet_selection": ec2.SubnetSelection()},
):
    row(
        "LLE158",
        lambda w, given=given: w.pattern(**given(w)),
        "subnet_selection",
        "vpc and subnet_selection",
    )
row("LLE158", lambda w: w.pattern(vpc=w.vpc(), network_max_instances=9), "network_max", "or none")
row("LLE158", lambda w: w.pattern(network=w.network(), network_max_instances=9), "network, ", "or")
row(
    "LLE158",
    lambda w: w.in_vpc(subnets={}, subnet_selection=ec2.SubnetSelection()),
    "subnet_selection",
    "one of the two",
)
row(
    "LLE159",
    lambda w: w.in_vpc(
        subnets=dict.fromkeys(
            ("us-east-1a", "us-east-1b"), ec2.Subnet.from_subnet_id(w.stack, "S", "subnet-1")
        )
    ),
    "for us-east-1b the subnet of us-east-1a",
    "each zone",
)
row("LLE362", lambda w: w.network().subnet_of("us-east-1a"), "us-east-1a", "use1-az1, use1-az2")
row(
    "LLE154",
    lambda w: LowLatencyEndpoint(
        w.stack,
        "Neither",
        containers=[w.parts.container()],
        instance_type=InstanceType("ml.m5.xlarge"),
        latency=LatencyTarget(p99=Duration.millis(200)),
    ),
    "neither",
    "one",
)

# --- 2 PrivateLink -----------------------------------------------------------------------------


def second_link(w):
    network = w.network()
    w.link(network)
    RuntimePrivateLink(w.stack, "Second", network=network)


row("LLE211", second_link, "Serving/Link", "one per VPC")
row(
    "LLE216",
    lambda w: LowLatencyEndpoint(
        w.stack,
        "Apart",
        network=w.network(),
        private_link=w.link(w.network("Other")),
        containers=[w.parts.container()],
        instance_type=InstanceType("ml.m5.xlarge"),
        latency=LatencyTarget(p99=Duration.millis(200)),
    ),
    "two VPCs",
    "private_link.network",
)


def many_endpoints(w):
    link = w.link()
    for number in range(250):
        link.serve(f"endpoint-number-{number:040d}")


row("LLE217", many_endpoints, "characters", "20480")
row(
    "LLE212",
    lambda w: w.link(
        w.in_vpc(
            ec2.Vpc(
                w.stack,
                "Own",
                availability_zones=["us-east-1a", "us-east-1b"],
                enable_dns_support=False,
                enable_dns_hostnames=False,
            )
        )
    ),
    "off",
    "both on",
)
row("LLE213", lambda w: w.link(fips=True, endpoint_policy=True), "fips", "endpoint_policy=False")
for without in ({"endpoint_policy": False}, {"fips": True}):
    for narrow in (True, False):
        row(
            "LLE218",
            lambda w, given={**without, "narrow_policy": narrow}: w.link(**given),
            f"narrow_policy={narrow} without a policy",
            "None",
        )
row(
    "LLE219",
    lambda w: RuntimePrivateLink.from_interface_endpoint(
        w.stack,
        "Adopted",
        network=w.network(),
        private_dns=False,
        interface_endpoint=ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
            w.stack, "Existing", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
        ),
    ),
    "private_dns=False",
    "both",
)
row("LLE220", lambda w: w.link(private_dns=False, sagemaker_api=True), "sagemaker_api=True", "one")
row(
    "LLE221",
    lambda w: w.pattern(
        network=(network := w.network()), private_link=w.link(network), private_dns=True
    ),
    "private_dns=True and private_link",
    "one of them",
)


for fips, regional in ((None, "sentiment.example.com"), (True, "vpce-1.runtime.sagemaker.x")):
    row(
        "LLE363",
        lambda w, fips=fips, regional=regional: RuntimePrivateLink.from_interface_endpoint(
            w.stack,
            "Adopted",
            network=w.network(),
            fips=fips,
            regional_dns_name=regional,
            interface_endpoint=ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
                w.stack, "Existing", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
            ),
        ),
        regional,
        "runtime",
    )


def own_hosted_zone(w):
    network = w.network()
    w.link(network, hosted_zone_vpcs=[network.vpc])


row("LLE214", own_hosted_zone, "own VPC", "other VPCs")
row(
    "LLE222",
    lambda w: w.link(
        hosted_zone_vpcs=[
            ec2.Vpc(
                w.new_stack(app=cdk.App.of(w.stack), name="Theirs", account="210987654321"),
                "Vpc",
                max_azs=1,
            )
        ]
    ),
    "account 210987654321",
    "account 123456789012",
)
row(
    "LLE215",
    lambda w: RuntimePrivateLink.from_interface_endpoint(
        w.stack,
        "Link",
        network=w.in_vpc(),
        hosted_zone_vpcs=[w.stack.node.find_child("Vpc")],
        interface_endpoint=ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
            w.stack, "Existing", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
        ),
    ),
    "without",
    "all three",
)

# --- 3 model -----------------------------------------------------------------------------------
IMAGE = ContainerImage.from_uri("registry.example.com/scorer:1")


def environment(**entries):
    return Container(image=IMAGE, environment=entries)


row("LLE301", lambda w: w.model(containers=[]), "0", "1 to 15")
row("LLE301", lambda w: w.containers(*[None] * 16), "16", "1 to 15")
row("LLE305", lambda _: environment(**{f"K{n}": "v" for n in range(101)}), "101", "0 to 100")
row("LLE307", lambda _: environment(KEY="v" * 1025), "1025", "0 to 1024 bytes")
row("LLE307", lambda _: environment(KEY="é" * 513), "1026", "0 to 1024 bytes")
row(
    "LLE308",
    lambda w: w.model(
        containers=[environment(**{f"K{n}": "v" * 1000 for n in range(20)}) for _ in range(2)]
    ),
    "40",
    "0 to 32768 bytes",
)
row("LLE310", lambda w: w.model(security_groups=[]), "0", "1 to 5")
row(
    "LLE310",
    lambda w: w.model(
        security_groups=[
            ec2.SecurityGroup.from_security_group_id(w.stack, f"G{n}", f"sg-{n}") for n in range(6)
        ]
    ),
    "6",
    "1 to 5",
)
row("LLE321", lambda w: w.containers("a", None), "1 hostnames for 2", "0 or 2")
row("LLE322", lambda w: w.containers("a", "a"), "a", "differ")
row("LLE323", lambda w: w.containers(None, None, inference_mode="Direct"), "no hostnames", "each")
row("LLE324", lambda w: w.containers("a", inference_mode="Direct"), "one container", "no inference")
row("LLE326", lambda _: Container(image=IMAGE, multi_model=True), "no data", "S3 prefix")
row(
    "LLE326",
    lambda _: Container(
        image=IMAGE, multi_model=True, data=ModelData.from_uri("s3://b/model.tar.gz")
    ),
    "s3://b/model.tar.gz",
    "S3 prefix",
)
out_of(
    "LLE327",
    lambda _, v: ModelData.from_asset(v),
    ".tar.gz",
    "model",
    "missing.tar.gz",
    "pyproject.toml",
)
row("LLE328", lambda w: w.parts.model(w.new_stack(region="xx-north-1")), "xx-north-1", "us-east-1")
out_of(
    "LLE329",
    lambda w, v: ModelData.from_s3(s3.Bucket.from_bucket_name(w.stack, "Bucket", "models"), v),
    "model.tar.gz",
    "",
    "/",
)

WITH_DOCKERFILE = str(Path(low_latency_endpoint.__file__).parent / "load_test" / "container")
GPU = "2.6.0-gpu-py312-cu124-ubuntu22.04-sagemaker"
NEURONX = "2.1.2-neuronx-py310-sdk2.20.0-ubuntu20.04"
row("LLE330", lambda w: w.image("ml.inf2.xlarge", tag=GPU), "ml.inf2.xlarge", "ml.g5")
row(
    "LLE331",
    lambda w: w.image("ml.g5.xlarge", "pytorch-inference-neuronx", NEURONX),
    "ml.g5.xlarge",
    "ml.inf2",
)
row(
    "LLE332",
    lambda w: w.image("ml.inf1.xlarge", "pytorch-inference-neuronx", NEURONX),
    "ml.inf1.xlarge",
    "ml.inf2",
)
row(
    "LLE333",
    lambda w: w.image(
        "ml.inf2.xlarge", "pytorch-inference-neuron", "1.13.1-neuron-py310-sdk2.20.0-ubuntu20.04"
    ),
    "ml.inf2.xlarge",
    "ml.inf1",
)
row("LLE334", lambda w: w.image("ml.c7g.xlarge"), "ml.c7g.xlarge", "x86_64")
row("LLE335", lambda w: w.image("ml.m5.xlarge", "pytorch-inference-arm64"), "ml.m5.xlarge", "arm64")
ARM64 = ecr_assets.Platform.LINUX_ARM64
row(
    "LLE335",
    lambda w: w.configured(
        model=w.model(
            containers=[Container(image=ContainerImage.from_asset(WITH_DOCKERFILE, platform=ARM64))]
        )
    ),
    "built for arm64 on ml.m5.xlarge",
    "arm64 types",
)
row(
    "LLE334",
    lambda w: w.configured(
        instance_type=InstanceType("ml.c7g.xlarge"),
        model=w.model(
            architecture="x86_64",
            containers=[Container(image=ContainerImage.from_asset(WITH_DOCKERFILE))],
        ),
    ),
    "built for x86_64 on ml.c7g.xlarge",
    "x86_64 types",
)
row("LLE336", lambda w: w.image("ml.m5.xlarge", tag=GPU), "ml.m5.xlarge", "ml.g5")
row(
    "LLE337",
    lambda w: w.image(
        "ml.g5.xlarge",
        tag="2.9.0-gpu-py312-cu130-ubuntu22.04",
        ami="al2-ami-sagemaker-inference-gpu-3-1",
    ),
    "cu130",
    "12.4",
)
row(
    "LLE338",
    lambda w: w.image("ml.m5.xlarge", ami="al2-ami-sagemaker-inference-gpu-2"),
    "ml.m5.xlarge",
    "NVIDIA GPU",
)

row(
    "LLE338",
    lambda w: w.configured(
        instance_type=InstanceType("ml.m5.xlarge"),
        model=w.model(containers=[Container(image=ContainerImage.from_asset(WITH_DOCKERFILE))]),
        inference_ami=InferenceAmi("al2-ami-sagemaker-inference-neuron-2"),
    ),
    "ml.m5.xlarge with al2-ami-sagemaker-inference-neuron-2",
    "ml.inf2",
)

# --- 4 variants and endpoint configuration -----------------------------------------------------


def routed(prefix_length=1024, concurrency_threshold=1):
    return RoutingStrategy.prefix_aware(
        prefix_length=prefix_length, concurrency_threshold=concurrency_threshold
    )


def pools(*given):
    return [InstancePool(InstanceType(name), priority) for name, priority in given]


TYPES = ("ml.m5.xlarge", "ml.m6i.xlarge", "ml.c5.xlarge", "ml.c6i.xlarge", "ml.r5.xlarge")
PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/"


def several(w, count):
    return w.configuration(
        *(w.variant(name=f"v{n}", model=w.parts.model(w.stack, f"M{n}")) for n in range(count))
    )


row("LLE401", lambda w: EndpointConfiguration(w.stack, "Empty", variants=[]), "0", "1 to 10")
row("LLE401", lambda w: several(w, 11), "11", "1 to 10")
out_of(
    "LLE406",
    lambda w, v: w.configured(startup_health_check_timeout=Duration.seconds(v)),
    "60 to 3600 seconds",
    59,
    3601,
)
out_of(
    "LLE407",
    lambda w, v: w.configured(model_data_download_timeout=Duration.seconds(v)),
    "60 to 3600 seconds",
    59,
    3601,
)
row(
    "LLE413",
    lambda w: w.variant(
        instance_pools=pools(*((name, 1 + n) for n, name in enumerate(TYPES)), ("ml.r6i.xlarge", 5))
    ),
    "6",
    "1 to 5",
)
out_of(
    "LLE415",
    lambda w, v: w.configured(instance_provision_timeout=Duration.seconds(v)),
    "300 to 3600 seconds",
    299,
    3601,
)
row("LLE428", lambda _: DataCapture(destination="s3://b", capture=()), "0", "1 to 32")
for kind in ("csv_content_types", "json_content_types"):
    row(
        "LLE430",
        lambda _, kind=kind: DataCapture(
            destination="s3://b", **{kind: [f"a/b{n}" for n in range(11)]}
        ),
        "11",
        "1 to 10",
    )
out_of(
    "LLE417",
    lambda w, v: w.configuration(
        w.variant(), metrics=MetricsPublishing(frequency=Duration.seconds(v))
    ),
    "10, 30, 60",
    0,
    15,
    301,
)
row(
    "LLE421",
    lambda w: w.configuration(w.variant(), w.variant(model=w.parts.model(w.stack, "Again"))),
    "primary",
    "differ",
)
row(
    "LLE421",
    lambda w: w.configuration(w.variant(), shadow=w.variant(model=w.parts.model(w.stack, "Again"))),
    "primary",
    "differ",
)
row("LLE422", lambda w: w.variant(instance_type=None), "neither", "instance_type or")
row(
    "LLE422",
    lambda w: w.variant(
        instance_type=InstanceType("ml.m5.xlarge"), instance_pools=pools(("ml.m5.xlarge", 1))
    ),
    "both",
    "instance_type or",
)
row("LLE423", lambda _: RoutingStrategy("RANDOM", prefix_length=1024), "RANDOM", "PREFIX_AWARE")
row(
    "LLE423",
    lambda _: RoutingStrategy("PREFIX_AWARE", concurrency_threshold=1),
    "prefix_length=None",
    "both settings",
)
row(
    "LLE424",
    lambda w: w.configuration(
        w.variant(instance_type=InstanceType("ml.g5.xlarge")),
        encryption_key=kms.Key(w.stack, "Key"),
    ),
    "ml.g5.xlarge",
    "no key",
)
row(
    "LLE425",
    lambda w: w.variant(instance_pools=pools(("ml.m5.xlarge", 1), ("ml.m5.xlarge", 2))),
    "ml.m5.xlarge",
    "instance_type",
)
row(
    "LLE425",
    lambda w: w.variant(instance_pools=pools(("ml.m5.xlarge", 1), ("ml.c5.xlarge", 1))),
    "1, 1",
    "priority",
)
row(
    "LLE431",
    lambda w: w.configuration(w.variant(), w.variant(name="b"), shadow=w.variant(name="c")),
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
    "LLE447",
    lambda w: w.hosting().scale("primary", min_instances=1, max_instances=2),
    "variant primary",
    "a variant with a model",
)
row(
    "LLE447",
    lambda w: LatencyAlarms(w.stack, "A", endpoint=w.hosting()),
    "variant primary",
    "a component",
)
row(
    "LLE448",
    lambda w: w.configuration(w.variant(), w.variant(name="b", model=w.host())),
    "variants primary, b",
    "one ComponentHost for all variants",
)
row(
    "LLE448",
    lambda w: w.configuration(
        w.variant(model=w.host()), shadow=w.variant(name="b", model=w.model(id="M"))
    ),
    "variants primary, b",
    "one ComponentHost for all variants",
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
    lambda w: w.component().metric("LoadedModelCount", statistic="Average"),
    "LoadedModelCount",
    "multi-model",
)
row(
    "LLE807",
    lambda w: w.configuration(w.variant(), shadow=[w.variant(name="b"), w.variant(name="c")]),
    "list",
    "ProductionVariant",
)
row(
    "LLE432",
    lambda w: w.pattern(
        instance_type=pools(("ml.m5.xlarge", 1), ("ml.c5.xlarge", 2)),
        throughput=MeasuredThroughput(peak_tps=10, tps_per_instance=5),
    ),
    "ml.m5.xlarge, ml.c5.xlarge",
    "one for each pool",
)
row(
    "LLE433",
    lambda w: w.pattern(
        instance_type=[
            InstancePool(InstanceType("ml.m5.xlarge"), 1, tps_per_instance=7),
            InstancePool(InstanceType("ml.c5.xlarge"), 2, tps_per_instance=5),
        ],
        throughput=MeasuredThroughput(peak_tps=10, tps_per_instance=7),
    ),
    "ml.c5.xlarge, 7 TPS",
    "ml.c5.xlarge (5 TPS)",
)
row(
    "LLE434",
    lambda w: w.pattern(variants=[FurtherVariant(name="b", tps_per_instance=5)], throughput=None),
    "tps_per_instance of b",
    "both, or none",
)
row(
    "LLE435",
    lambda w: w.pattern(
        variants=[FurtherVariant(name="b", scaling=ScalingOptions(keep_instance_counts=True))]
    ),
    "keep_instance_counts of b",
    "the endpoint's scaling",
)
row(
    "LLE436",
    lambda w: FurtherVariant(name="b", model=ModelOptions()),
    "model alone",
    "containers and model",
)
row(
    "LLE431",
    lambda w: w.pattern(variants=[FurtherVariant(name="b")], shadow=FurtherVariant(name="c")),
    "c beside primary, b",
    "one production variant and one shadow",
)
row(
    "LLE426",
    lambda w: w.configuration(w.variant(weight=0), w.variant(name="b", weight=0)),
    "primary: 0, b: 0",
    "above 0",
)

# --- 5 endpoint and deployments ----------------------------------------------------------------
HOUR = Duration.hours(1)
for make in (
    DeploymentPolicy.canary,
    DeploymentPolicy.linear,
    DeploymentPolicy.all_at_once,
    DeploymentPolicy.rolling,
):
    out_of(
        "LLE502",
        lambda w, v, make=make: w.deployed(make(wait=Duration.seconds(v))),
        "0 to 3600 seconds",
        3601,
    )
out_of(
    "LLE506",
    lambda w, v: w.deployed(DeploymentPolicy.canary(termination_wait=Duration.seconds(v))),
    "0 to 3600 seconds",
    3601,
)
out_of(
    "LLE507",
    lambda w, v: w.deployed(DeploymentPolicy.canary(maximum_execution=Duration.seconds(v))),
    "600 to 28800 seconds",
    599,
    28801,
)
row(
    "LLE508",
    lambda w: w.endpoint(
        rollback_alarms=[
            cloudwatch.Alarm.from_alarm_arn(
                w.stack, f"A{n}", f"arn:aws:cloudwatch:us-east-1:123456789012:alarm:a{n}"
            )
            for n in range(11)
        ]
    ),
    "11",
    "1 to 10",
)
row("LLE509", lambda w: w.endpoint(tags={f"k{n}": "v" for n in range(51)}), "51", "0 to 50")
row(
    "LLE521",
    lambda w: w.deployed(DeploymentPolicy.linear(step_percent=10, wait=HOUR)),
    "36000 seconds (10 x 3600",
    "less than 28800",
)
row(
    "LLE521",
    lambda w: w.deployed(DeploymentPolicy.rolling(batch_percent=5, wait=HOUR)),
    "72000 seconds",
    "less than 28800",
)
row(
    "LLE521",
    lambda w: w.deployed(
        DeploymentPolicy.canary(wait=Duration.minutes(10), maximum_execution=Duration.minutes(10))
    ),
    "600 seconds",
    "more than",
)
row("LLE361", lambda _: DeploymentPolicy(kind="ALL_AT_ONCE", size_percent=10), "10", "no size")
row(
    "LLE522",
    lambda w: w.deployed(DeploymentPolicy.rolling(), w.variant(), w.variant(name="b")),
    "2 variants",
    "1",
)
row(
    "LLE523",
    lambda w: w.deployed(
        DeploymentPolicy.canary(), w.variant(instance_type=InstanceType("ml.inf1.xlarge"))
    ),
    "CANARY on ml.inf1.xlarge",
    "ALL_AT_ONCE",
)

row("LLE561", lambda w: w.fleet(cpu=256, memory_mib=4096), "4096 MiB with 256", "512, 1024, 2048")
row("LLE561", lambda w: w.fleet(memory_mib=2500), "2500 MiB with 1024", "2048 to 8192 MiB in steps")
row(
    "LLE216",
    lambda w: w.fleet(
        network=w.network(),
        private_link=RuntimePrivateLink(
            w.stack, "Other", network=w.network(id="OtherNetwork", cidr="10.9.0.0/16")
        ),
    ),
    "two VPCs",
    "private_link.network",
)
row("LLE566", lambda w: w.fleet(endpoint=cdk.Aws.STACK_NAME), "a token", "known at synth")

# --- 6 scaling ---------------------------------------------------------------------------------
row(
    "LLE602",
    lambda w: w.scaled().track_invocations(max_tps_per_instance=1e200),
    "1e+200",
    "8.51592e-109",
)
row(
    "LLE607",
    lambda _: MeasuredThroughput(100, 10, from_tps=101),
    "101 with a peak of 100",
    "0 to 100",
)
row(
    "LLE609",
    lambda _: MeasuredThroughput(100, 10, from_tps=1, rise_tps_per_minute=2),
    "from_tps 1 and rise_tps_per_minute 2",
    "one of the two",
)
row("LLE621", lambda w: w.scaled(min_instances=5), "min_instances=5", "at most 4")
row(
    "LLE621",
    lambda w: w.scaled().on_schedule(
        "night", schedule=appscaling.Schedule.cron(hour="1"), min_instances=3, max_instances=2
    ),
    "min_instances=3",
    "at most 2",
)
row(
    "LLE622",
    lambda w: w.endpoint().scale("other", min_instances=1, max_instances=2),
    "other",
    "primary",
)
row(
    "LLE624",
    lambda w: w.scaled(instance_type=InstanceType("ml.t2.medium")),
    "ml.t2.medium",
    "not burstable",
)
row("LLE625", lambda w: w.scaled(initial_instance_count=5), "5", "2 to 4")
row("LLE625", lambda w: w.scaled(initial_instance_count=1), "1", "2 to 4")


def scaled_twice(w):
    endpoint = w.endpoint()
    for _ in range(2):
        endpoint.scale("primary", min_instances=2, max_instances=4)


row("LLE623", scaled_twice, "primary", "one")
row(
    "LLE512",
    lambda w: w.endpoint(keep_instance_counts=False).scale(
        "primary", min_instances=2, max_instances=4
    ),
    "keep_instance_counts=False",
    "keep_instance_counts=True",
)
row(
    "LLE626",
    lambda w: (
        w.scaled()
        .track_concurrency(max_concurrency_per_instance=1)
        .track_concurrency(max_concurrency_per_instance=2)
    ),
    "Concurrency",
    "none of",
)
row("LLE364", lambda _: ScalingStep(change=1.5), "1.5", "a whole number")
row(
    "LLE627",
    lambda w: w.scaled().on_schedule("night", schedule=appscaling.Schedule.cron(hour="1")),
    "neither",
    "one or both",
)
METRIC = cloudwatch.Metric(namespace="Shop", metric_name="Orders")
row(
    "LLE628",
    lambda w: w.scaled().step_on_metric("S", metric=METRIC, threshold=1, steps=[]),
    "no steps",
    "at least one",
)
for steps, got in (
    ([(0, 10), (5, None)], "one step to 10, the next from 5"),
    ([(0, None), (10, None)], "several steps that are open above"),
    ([(None, 0), (None, 5)], "several steps that are open below"),
    ([(0, 10), (20, None)], "one step to 10, the next from 20"),
    ([(10, 0)], "a step from 10 to 0"),
    ([(3, 3)], "a step from 3 to 3"),
    ([(None, None)], "open on both sides"),
    ([(0, 10)], "a highest step to 10"),
    ([(-10, 0)], "a lowest step from -10"),
):
    row(
        "LLE630",
        lambda w, steps=steps: w.scaled().step_on_metric(
            "S",
            metric=METRIC,
            threshold=1,
            steps=[ScalingStep(lower=lower, upper=upper, change=1) for lower, upper in steps],
        ),
        got,
        "",
    )
for stated in (
    {"max_concurrency_per_instance": 3},
    {"scale_in_cooldown": Duration.minutes(9)},
    {"scale_out_cooldown": Duration.minutes(9)},
):
    row(
        "LLE629",
        lambda w, stated=stated: ScalingOptions(enabled=False, **stated),
        next(iter(stated)),
        "enabled=False without",
    )


def parameter(w) -> float:
    return cdk.CfnParameter(w.stack, "Given", type="Number").value_as_number


def measured_later(name):
    known = {"peak_tps": 100, "tps_per_instance": 50}
    return lambda w: MeasuredThroughput(**known | {name: parameter(w)})


for name in ("peak_tps", "tps_per_instance", "safety_factor", "from_tps", "rise_tps_per_minute"):
    row("LLE825", measured_later(name), "a token", "known at synth")
for name in ("min_instances", "initial_instances", "max_instances"):
    row(
        "LLE825",
        lambda w, name=name: ScalingOptions(**{name: parameter(w)}),
        "a token",
        "at least 1, known at synth",
    )
for name in ("scale_in_cooldown", "scale_out_cooldown", "instance_start"):
    row(
        "LLE825",
        lambda w, name=name: ScalingOptions(**{name: Duration.seconds(parameter(w))}),
        "a token",
        "a duration known at synth",
    )
for unit in (Duration.millis, Duration.seconds):
    row(
        "LLE825",
        lambda w, unit=unit: LatencyTarget(p99=unit(parameter(w))),
        "a token",
        "a duration known at synth",
    )
row(
    "LLE825",
    lambda w: w.pattern(
        instance_type=InstanceType(cdk.CfnParameter(w.stack, "Given").value_as_string)
    ),
    "a token",
    "ml.g5.xlarge, known at synth",
)
row("LLE825", lambda w: w.pattern(payload_bytes=parameter(w)), "a token", "known at synth")
row(
    "LLE106",
    lambda w: w.pattern(network_max_instances=parameter(w)),
    "a token",
    "at least 1, known at synth",
)
row("LLE106", lambda w: w.network(max_instances=parameter(w)), "a token", "known at synth")
row("LLE105", lambda w: w.network(subnet_prefix_length=parameter(w)), "a token", "known at synth")
row(
    "LLE111",
    lambda w: w.network(cidr=cdk.CfnParameter(w.stack, "Given").value_as_string),
    "a token",
    "known at synth",
)
row("LLE725", lambda w: w.alarms(cpu_utilization=parameter(w)), "a token", "known at synth")
row("LLE703", lambda w: w.alarms(cache_miss_rate=parameter(w)), "a token", "known at synth")
row(
    "LLE808",
    lambda w: w.pattern(
        plan=make_plan(
            EndpointRequest(
                client_zones=["use1-az1", "use1-az3"],
                instance_type="ml.m5.xlarge",
                latency=LatencyTarget(p99=Duration.millis(200)),
            )
        )
    ),
    "another client_zones",
    "of these arguments",
)

# --- 7 metrics and alarms ----------------------------------------------------------------------
out_of(
    "LLE701", lambda w, v: w.alarms(model_latency={"p99": Duration.millis(v)}), "at least 0.001", 0
)
row("LLE721", lambda w: w.alarms(evaluation_periods=2, datapoints_to_alarm=3), "3 of 2", "most 2")
row(
    "LLE366",
    lambda w: w.alarms(error_rate=0.1, period=Duration.seconds(45)),
    "45 seconds",
    "whole minutes",
)
row(
    "LLE366",
    lambda w: w.endpoint().metric_invocations(period=timedelta(0)),
    "0 seconds",
    "whole minutes",
)
row("LLE722", lambda w: w.alarms(gpu_utilization=80), "GPUUtilization", "NVIDIA GPUs")
row(
    "LLE723",
    lambda w: w.alarms(
        model_latency={"p99": Duration.millis(1), "Critical": {"p99": Duration.millis(2)}}
    ),
    "p99, Critical",
    "forms",
)
row("LLE724", lambda w: w.alarms(capacity_at_maximum=True), "does not scale", "scaled variant")


def at_times(**given):
    given.setdefault("name", "night")
    given.setdefault("expression", "rate(1 day)")
    return ScalingSchedule(**({"min_instances": 2} | given))


out_of(
    "LLE613",
    lambda _, v: at_times(expression="at(2030-01-01T00:00:00)", time_zone=v),
    "Europe/Berlin",
    "Mars/Olympus",
    "Berlin",
)
row("LLE613", lambda _: at_times(time_zone="Europe/Berlin"), "rate(1 day)", "cron and at only")
row("LLE621", lambda _: at_times(min_instances=9, max_instances=8), "9 above 8", "at most 8")
row("LLE627", lambda _: at_times(min_instances=None), "neither", "one or both")
out_of("LLE614", lambda _, v: ScalingSteps(adds={v: 1}), "at least", 0, -1)
row("LLE364", lambda _: ScalingSteps(adds={8: 1.5}), "1.5", "whole number")
row("LLE628", lambda _: ScalingSteps(adds={}), "no steps", "at least one")
row("LLE628", lambda _: ScalingSteps(adds={8: 2, 16: 2}), "2 from 16", "rising")
row("LLE364", lambda _: ScalingSteps(adds={8: 0}), "0", "at least 1")
row(
    "LLE634",
    lambda w: w.pattern(scaling=ScalingOptions(steps=ScalingSteps(adds={8: 1}))),
    "steps on a fleet of 2",
    "scaling",
)
row("LLE734", lambda w: w.shadow_alarms(shadow=False), "without one", "shadow=...")
row("LLE730", lambda w: w.endpoint().metric("Latency", statistic="p99"), "Latency", "ModelLatency")
out_of(
    "LLE731",
    lambda w, v: w.alarms(model_latency={v: Duration.millis(1)}),
    "p99",
    "P99",
    "p101",
    "mean",
    "",
)
row("LLE732", lambda w: w.alarms(overhead_latency={"p99": Duration.millis(1)}), "p99", "Average")

row(
    "LLE632",
    lambda _: ScalingOptions(target_invocations_per_instance=500, max_concurrency_per_instance=4),
    "both",
    "one of them",
)
row("LLE633", lambda w: w.scaled().track_invocations(), "neither", "max_tps_per_instance or")
row(
    "LLE633",
    lambda w: w.scaled().track_invocations(
        max_tps_per_instance=3, target_invocations_per_instance=500
    ),
    "both",
    "max_tps_per_instance or",
)

# --- imported ---------------------------------------------------------------------------------
row("LLE514", lambda w: Endpoint.from_endpoint_attributes(w.stack, "E"), "neither", "one or both")
row("LLE631", lambda w: w.alarms(endpoint=w.imported()), "alone", "one with variants")
row("LLE631", lambda w: w.imported().metric_invocations(), "alone", "one with variants")
row(
    "LLE728",
    lambda w: w.imported().variant("AllTraffic").metric_invocations(fleet="new"),
    "imported",
    "endpoint_config_name",
)
row(
    "LLE729",
    lambda w: w.alarms(
        endpoint=w.imported(variants=[VariantAttributes(name="AllTraffic")]), zone_imbalance=2
    ),
    "AllTraffic",
    "network and instance_types",
)
row("LLE370", lambda _: Container(data="s3://models/model.tar.gz"), "neither", "model_package")
row(
    "LLE371",
    lambda _: Container(model_package="fraud", data="s3://models/all/", multi_model=True),
    "both",
    "one of them",
)
row(
    "LLE372",
    lambda _: Container(image=IMAGE, model_cache=False),
    "model_cache=False",
    "multi_model=True",
)

# --- 8 arguments -------------------------------------------------------------------------------
row("LLE807", lambda _: environment(N=1), "a number", "text")
row("LLE807", lambda _: Container(image=IMAGE, environment=["N"]), "list", "a mapping of text to")
row("LLE807", lambda _: InstancePool("ml.m5.xlarge", 1), "text", "InstanceType(")
row("LLE807", lambda w: w.variant(instance_pools=["ml.m5.xlarge"]), "text", "InstancePool(")
row("LLE807", lambda w: w.pattern(instance_type=7), "7", "InstanceType(")
row("LLE807", lambda w: w.pattern(containers=w.parts.container()), "Container", "even for one")
row("LLE807", lambda w: w.model(containers=w.parts.container()), "Container", "a list of Container")
row("LLE807", lambda w: w.model(containers=["image"]), "text", "Container(")
row("LLE807", lambda _: DataCapture(destination="s3://b", capture="Input"), "text", "a list of")
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
row(
    "LLE360",
    lambda w: w.pattern(alarms={"actions": [], "period": None}),
    "a mapping",
    "alarms=AlarmOptions(actions=..., period=...)",
)
row(
    "LLE360",
    lambda w: w.pattern(warm_up={"payload": {"a": 1}, "count": 3}),
    "'count'",
    "warm_up=WarmUpOptions(payload=...)",
)
row(
    "LLE360",
    lambda w: WarmUpOptions(payload=WarmUpPayload.from_json({}), keep_warm={"every": 1}),
    "a mapping",
    "keep_warm=KeepWarmOptions(every=...)",
)
row("LLE360", lambda w: w.model(containers=[{"image": IMAGE}]), "a mapping", "Container(image=...)")

# --- models of the Hugging Face Hub, from a lock file ---------------------------------------------
LARGE = replace(QWEN, files=(PinnedFile("a.safetensors", 20_000_000_001, "0" * 64),))
MANY = replace(QWEN, files=tuple(PinnedFile(f"{n}.json", 1, "0" * 64) for n in range(1001)))
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
row(
    "LLE314",
    lambda w: w.model(containers=[w.hub(None)]),
    "without an instance type",
    "instance_type",
)
row("LLE352", lambda w: w.hub_model(LARGE), "20.0 GB", "up to 20 GB")
row("LLE353", lambda w: w.hub(instance_type="ml.m5.large"), "vllm on ml.m5.large", "NVIDIA GPUs")
row("LLE354", lambda w: w.hub(pinned=T5), "T5ForConditionalGeneration", "")
row("LLE355", lambda w: w.hub(instance_type="ml.g4dn.xlarge"), "15.3 GiB", "ml.g6e.")
row("LLE356", lambda w: w.hub(volume=9, instance_type="ml.inf2.8xlarge"), "15.3 GiB", "9.0 GiB")
row("LLE359", lambda w: w.hub_model(QWEN, hub_endpoint="http://hub.example.com"), "", "https://")
row(
    "LLE368",
    lambda w: Container(hugging_face=w.hub(None).hugging_face, multi_model=True),
    "multi_model",
    "one",
)
row("LLE390", lambda w: w.hub(pinned=CODE), "own.py", "trust_remote_code")
row("LLE391", lambda w: w.hub(context_length=40_961), "40,961", "40,960")
row("LLE399", lambda w: w.hub_model(MANY), "1001", "1000")

# Reachable elsewhere, or not at all through a construct, and why.
ELSEWHERE = {
    "LLE155": "the stack of the settings file looks VPCs up",
    "LLE156": "the stack of the settings file looks subnets up",
    "LLE312": "a platform is ecr_assets.Platform in Python; the settings file names it",
    "LLE325": "from_s3 takes an object or a prefix, told apart by the slash; the settings file "
    "says which one is meant",
    "LLE313": "the staging function's: tests/hugging_face/test_staging.py",
    "LLE318": "test_model_data.py",
    "LLE319": "low-latency pin's: tests/hugging_face/test_pinning.py",
    "LLE320": "low-latency pin's: tests/hugging_face/test_pinning.py",
    "LLE340": "test_s3_gateway_policy.py",
    **dict.fromkeys(("LLE378", "LLE736"), "test_names_and_rights.py"),
    "LLE341": "the settings file's; constructs take IKey",
    "LLE342": "the settings file's; constructs take IPrefixList",
    "LLE380": "as plan says it: tests/settings/test_what_synthesis_refuses.py",
    **dict.fromkeys(
        ("LLE347", "LLE348", "LLE349", "LLE350", "LLE351", "LLE358"),
        "low-latency pin's: tests/hugging_face/test_pinning.py",
    ),
    "LLE357": "the staging function's: tests/hugging_face/test_staging.py",
    "LLE392": "Literal says which servers there are; the plan: tests/plan/test_serving_containers.py",
    "LLE398": "the staging function's: tests/hugging_face/test_staging.py",
    **dict.fromkeys(
        ("LLE381", "LLE382", "LLE383", "LLE384", "LLE385", "LLE386", "LLE387", "LLE388", "LLE389"),
        "the settings file's: tests/settings",
    ),
    "LLE437": "the settings file's share of copies: tests/settings/test_mistakes.py",
    "LLE438": "low-latency simulate's: tests/settings/test_variants.py",
    "LLE733": "a Duration is always finite",
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
            return World(stack, self, None).in_vpc()

    return InExistingVpc()


@pytest.mark.parametrize(("code", "make", "got", "allowed"), ROWS)
def test_refused(new_stack, parts, code, make, got, allowed):
    with pytest.raises(ConfigurationError) as raised:
        make(World(new_stack(), parts, new_stack))
    error = raised.value
    assert error.code == code, str(error)
    assert got in error.got
    assert allowed in error.allowed
    assert error.fix
    assert all(text in str(error) for text in (code, error.got, error.allowed, error.fix))


def registered() -> set[str]:
    """The codes of constructs, LLE1xx to LLE7xx, after importing everything that a construct can reach."""
    for module in pkgutil.walk_packages(low_latency_endpoint.__path__, "low_latency_endpoint."):
        # Locust, in some of load_test, would patch the standard library of this process.
        if module.name.split(".")[1] not in ("cli", "load_test"):
            importlib.import_module(module.name)
    return {rule.code for rule in rules() if "LLE1" <= rule.code < "LLE8"}


def test_every_rule_is_tried_here_or_said_to_be_elsewhere():
    tried = {parameters.values[0] for parameters in ROWS} | TABLE.keys()
    assert {code for code in registered() - tried if not code.startswith(BESIDE)} == set(ELSEWHERE)
    assert not tried & set(ELSEWHERE)


@pytest.mark.parametrize(
    "make",
    [
        lambda w, bare: w.configured(startup_health_check_timeout=bare),
        lambda w, bare: w.deployed(DeploymentPolicy.canary(wait=bare)),
        lambda w, bare: w.scaled().track_concurrency(
            max_concurrency_per_instance=1, scale_in_cooldown=bare
        ),
        lambda w, bare: w.alarms(model_latency={"p99": bare}),
    ],
)
def test_a_bare_number_is_no_duration(new_stack, parts, make):
    with pytest.raises(ConfigurationError) as raised:
        make(World(new_stack(), parts, new_stack), 300)
    assert raised.value.code == "LLE801"
    assert raised.value.got == "300"


def test_a_timedelta_is_one(new_stack, parts):
    World(new_stack(), parts, new_stack).configured(
        startup_health_check_timeout=timedelta(minutes=5)
    )
