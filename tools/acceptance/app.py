"""The CDK app under test: two small endpoints, probes, and a queue that keeps pages.

``cdk deploy --app "python -m tools.acceptance.app" -c suffix=... -c variant=...`` deploys one variant of
the stack, or one of the two stacks beside it: the models' role, and a model that shares it.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aws_cdk import App, CfnOutput, Duration, Environment, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from low_latency_endpoint import (
    AlarmOptions,
    AlarmTopic,
    CanaryOptions,
    ClientZones,
    ConfigurationOptions,
    Container,
    ContainerImage,
    DataCapture,
    DeploymentPolicy,
    EndpointOptions,
    InstanceCounts,
    InstanceType,
    LatencyTarget,
    LowLatencyEndpoint,
    MeasuredThroughput,
    MetricsPublishing,
    Model,
    ModelData,
    ModelOptions,
    RuntimePrivateLink,
    ScalingOptions,
    SlowRequests,
    VariantOptions,
    WarmUpOptions,
    WarmUpPayload,
    ZoneAlignedNetwork,
)

from .hub_model import HubModel

TAG = "low-latency-endpoint-acceptance"
"""Every resource of a run has this tag; its value is the run's suffix."""

PREFIX = "llee-accept-"
INSTANCE_TYPE = "ml.m5.large"
INSTANCES = 2
HUB_INSTANCES = 1
HUB_REQUEST = {"inputs": "Where do its callers run?"}
IMAGE = ("pytorch-inference", "2.6.0-cpu-py312-ubuntu22.04-sagemaker")
"""A Deep Learning Container, as its model archive may bring its own handler without installing
anything: SageMaker's XGBoost container runs pip for that, which has no network in these subnets."""

_MODEL = Path(__file__).parent / "model" / "inference.py"
_PROBE = Path(__file__).parent / "probe"


@dataclass(frozen=True)
class Variant:
    """What one step deploys."""

    behaviour: str = "good"
    """The model's: good, crashing, slow, failing."""
    revision: int = 1
    """Changes the container's environment and nothing else."""
    data: int = 1
    """Changes the model archive's content, and with it the object in S3."""
    rolling: bool = False
    scaling: bool = True
    capture: bool = False
    first: bool = True
    """Whether the first endpoint is there, to which all of these belong."""
    hub_commit: int = 1
    hub_revision: int = 1
    hub_renamed: bool = False


GOOD = Variant(revision=2)
RENAMED = replace(GOOD, hub_commit=2, hub_renamed=True)
VARIANTS = {
    "first": Variant(),
    "changed": GOOD,
    "crashing": replace(GOOD, behaviour="crashing"),
    "slow": replace(GOOD, behaviour="slow"),
    "rolling-failing": replace(GOOD, behaviour="failing", data=2, rolling=True),
    "unscaled": replace(GOOD, scaling=False),
    "captured": replace(GOOD, capture=True),
    "repinned": replace(GOOD, hub_commit=2),
    "renamed": RENAMED,
    "removed": replace(RENAMED, first=False),
    "updated": replace(RENAMED, first=False, hub_revision=2),
}
ROLE, BESIDE = "role", "beside"
"""Instead of a variant: the stack with the role that is stated, and another one that states it."""


def stack_name(suffix: str, variant: str = "first") -> str:
    """The name of the stack that a variant is of; that of the stack under test is its endpoint's."""
    return f"{PREFIX}{suffix}" + (f"-{variant}" if variant in (ROLE, BESIDE) else "")


def hub_endpoint_name(suffix: str, *, renamed: bool = False) -> str:
    """The Hub endpoint's first name, or the one that it gets later."""
    return f"{PREFIX}{suffix}-Hub" + ("-renamed" if renamed else "")


def role_name(suffix: str) -> str:
    """The execution role that two stacks state."""
    return f"{PREFIX}{suffix}-models"


def archive(folder: Path, data: int) -> Path:
    """Write the model's archive: the same bytes for the same content."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in (
            ("code/inference.py", _MODEL.read_bytes()),
            ("data.txt", f"data {data}\n".encode()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    path = folder / f"model-{data}.tar.gz"
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return path


class AcceptanceStack(Stack):
    """One variant of the stack under test: two endpoints in a network that belongs to neither.

    The first has a role and a model of its own, whose archive is written to a folder; the Hub
    endpoint a pinned model of the Hugging Face Hub and a role that is stated.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        suffix: str,
        zones: list[str],
        variant: Variant,
        hub: HubModel,
        folder: Path,
        **options: Any,
    ) -> None:
        name = stack_name(suffix)
        # Names that CDK makes of paths, as a composite alarm's, then differ from run to run too.
        super().__init__(scope, name, stack_name=name, tags={TAG: suffix}, **options)
        topic = AlarmTopic(self, "Pages")
        pages = sqs.Queue(self, "PageQueue", removal_policy=RemovalPolicy.DESTROY)
        topic.topic.add_subscription(subscriptions.SqsSubscription(pages))
        self._network = network = ZoneAlignedNetwork(
            self, "Network", client_zones=ClientZones.of_ids(*zones)
        )
        self._link = link = RuntimePrivateLink(self, "PrivateLink", network=network)
        if variant.first:
            self._first_endpoint(name, variant, folder, topic)
        self._hub_endpoint(suffix, variant, hub)
        # One output with all that the steps need: a name of ours, which no hash follows.
        CfnOutput(
            self,
            "Told",
            value=self.to_json_string(
                {
                    "pages": pages.queue_url,
                    "regional": link.private_dns_name,
                    "interface_endpoint": link.interface_endpoint.vpc_endpoint_id,
                    "group": network.model_security_group.security_group_id,
                    "zones": {
                        zone: {
                            "probe": self._probe(zone),
                            "zonal": link.zonal_dns_names[zone],
                            "subnet": network.subnet_of(zone).subnet_id,
                            "zone_name": network.subnet_of(zone).availability_zone,
                        }
                        for zone in zones
                    },
                }
            ),
        )

    def _first_endpoint(self, name: str, variant: Variant, folder: Path, topic: AlarmTopic) -> None:
        self._endpoint(
            "Endpoint",
            containers=[own_container(folder, variant)],
            throughput=_throughput(40),
            instances=_counts(INSTANCES),
            scaling=ScalingOptions(enabled=variant.scaling),
            variant=VariantOptions(startup_health_check_timeout=Duration.minutes(4)),
            endpoint=EndpointOptions(
                endpoint_name=name,
                deployment=DeploymentPolicy.rolling(batch_percent=50, wait=Duration.minutes(5))
                if variant.rolling
                else DeploymentPolicy.canary(size_percent=50, wait=Duration.minutes(5)),
            ),
            alarms=AlarmOptions(
                actions=[topic.action],
                slow_requests=SlowRequests(threshold=Duration.millis(500)),
                minimum_failures=1,
            ),
            warm_up=_warm_up({"warm": "up"}),
            canary=CanaryOptions(),
            configuration=ConfigurationOptions(
                data_capture=self._capture(), metrics=MetricsPublishing(enhanced=True)
            )
            if variant.capture
            else None,
        )

    def _hub_endpoint(self, suffix: str, variant: Variant, hub: HubModel) -> None:
        container = Container.from_hugging_face(
            hub.name,
            lock=str(hub.lock(suffix, variant.hub_commit)),
            environment={"REVISION": str(variant.hub_revision)},
            hub_endpoint=hub.endpoint,
        )
        self._endpoint(
            "HubEndpoint",
            containers=[container],
            throughput=_throughput(4),
            instances=_counts(HUB_INSTANCES),
            model=ModelOptions(role=stated_role(self, suffix)),
            endpoint=EndpointOptions(
                endpoint_name=hub_endpoint_name(suffix, renamed=variant.hub_renamed),
                deployment=DeploymentPolicy.all_at_once(wait=Duration.minutes(2)),
            ),
            warm_up=_warm_up(HUB_REQUEST),
        )

    def _endpoint(self, id: str, **options: Any) -> None:
        LowLatencyEndpoint(
            self,
            id,
            network=self._network,
            private_link=self._link,
            instance_type=InstanceType(INSTANCE_TYPE),
            latency=LatencyTarget(p99=Duration.millis(500)),
            **options,
        )

    def _capture(self) -> DataCapture:
        bucket = s3.Bucket(self, "Captured", removal_policy=RemovalPolicy.RETAIN, enforce_ssl=True)
        return DataCapture(s3=f"s3://{bucket.bucket_name}/captured", sampling_percentage=100)

    def _arn(self, endpoint: str) -> str:
        return self.format_arn(service="sagemaker", resource="endpoint", resource_name=endpoint)

    def _probe(self, zone: str) -> str:
        """A function in the zone's subnet that may call endpoints; gives its name."""
        network = self._network
        group = ec2.SecurityGroup(self, f"ProbeGroup-{zone}", vpc=network.vpc)
        function = lambda_.Function(
            self,
            f"Probe-{zone}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="probe.handler",
            code=lambda_.Code.from_asset(str(_PROBE), exclude=["__pycache__"]),
            timeout=Duration.minutes(3),
            memory_size=512,
            vpc=network.vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=[network.subnet_of(zone)]),
            security_groups=[group],
            log_group=logs.LogGroup(
                self,
                f"ProbeLogs-{zone}",
                retention=logs.RetentionDays.ONE_WEEK,
                removal_policy=RemovalPolicy.DESTROY,
            ),
        )
        # Any endpoint, so that it is the interface endpoint's policy that refuses the foreign one.
        function.add_to_role_policy(
            iam.PolicyStatement(actions=["sagemaker:InvokeEndpoint"], resources=[self._arn("*")])
        )
        self._link.allow_from(group)
        return function.function_name


def _throughput(peak: int) -> MeasuredThroughput:
    return MeasuredThroughput(peak_tps=peak, tps_per_instance=40, safety_factor=0.6)


def _counts(instances: int) -> InstanceCounts:
    return InstanceCounts(min=instances, initial=instances, max=instances + 1)


def _warm_up(request: dict[str, str]) -> WarmUpOptions:
    payload = WarmUpPayload(data=request)
    return WarmUpOptions(payload=payload, timeout=Duration.minutes(3))


class RoleStack(Stack):
    """The execution role that is stated: it stays when what states it comes and goes."""

    def __init__(self, scope: Construct, *, suffix: str, **options: Any) -> None:
        super().__init__(scope, stack_name(suffix, ROLE), tags={TAG: suffix}, **options)
        iam.Role(
            self,
            "Role",
            role_name=role_name(suffix),
            assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
        )


class BesideStack(Stack):
    """Another stack that states the same role: a model without an endpoint, which costs nothing."""

    def __init__(
        self, scope: Construct, *, suffix: str, zones: list[str], folder: Path, **options: Any
    ) -> None:
        super().__init__(scope, stack_name(suffix, BESIDE), tags={TAG: suffix}, **options)
        Model(
            self,
            "Model",
            network=ZoneAlignedNetwork(self, "Network", client_zones=ClientZones.of_ids(*zones)),
            containers=[own_container(folder, Variant())],
            role=stated_role(self, suffix),
        )


def own_container(folder: Path, variant: Variant) -> Container:
    """The container that serves the model of ``model/``."""
    return Container(
        image=ContainerImage.from_dlc(*IMAGE),
        data=ModelData.from_asset(str(archive(folder, variant.data))),
        environment={"ACCEPTANCE_VARIANT": variant.behaviour, "REVISION": str(variant.revision)},
    )


def stated_role(scope: Construct, suffix: str) -> iam.IRole:
    """The role of :class:`RoleStack`, as a stack states one that is there."""
    return iam.Role.from_role_name(scope, "StatedRole", role_name(suffix))


def build(
    app: App,
    *,
    suffix: str,
    zones: list[str],
    variant: str,
    hub: HubModel,
    account: str,
    region: str,
    folder: Path,
) -> Stack:
    """The stack of one variant, in an app."""
    env = Environment(account=account, region=region)
    if variant == ROLE:
        return RoleStack(app, suffix=suffix, env=env)
    if variant == BESIDE:
        return BesideStack(app, suffix=suffix, zones=zones, folder=folder, env=env)
    return AcceptanceStack(
        app, suffix=suffix, zones=zones, variant=VARIANTS[variant], hub=hub, folder=folder, env=env
    )


def main() -> None:
    """Synthesise what the CDK CLI's context asks for."""
    app = App()
    given = {key: str(app.node.get_context(key)) for key in ("suffix", "variant", "zones", "hub")}
    folder = Path(os.environ["CDK_OUTDIR"])
    folder.mkdir(parents=True, exist_ok=True)
    build(
        app,
        suffix=given["suffix"],
        variant=given["variant"],
        zones=given["zones"].split(","),
        hub=HubModel(**json.loads(given["hub"])),
        account=os.environ["CDK_DEFAULT_ACCOUNT"],
        region=os.environ["CDK_DEFAULT_REGION"],
        folder=folder,
    )
    app.synth()


if __name__ == "__main__":
    main()
