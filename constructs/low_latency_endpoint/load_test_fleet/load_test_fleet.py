"""The load test's own machines: Locust's master and workers on ECS Fargate, none while idle."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import jsii
from aws_cdk import Aws, CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ..facts.durations import seconds_of
from ..facts.limits import ENDPOINT_NAME
from ..facts.load_test_fleet_rules import (
    ENDPOINT_KIND,
    LOG_RETENTION,
    MASTER_PORT,
    RESULTS_RETENTION,
    RUNS_PREFIX,
    check_task_size,
    descriptions_path,
)
from ..hosting.endpoint_interface import IEndpoint
from ..hosting.images import ContainerImage
from ..network.private_link import RuntimePrivateLink
from ..network.s3_access import let_out_to_s3
from ..network.zone_aligned_network import (
    ZoneAlignedNetwork,
    interface_endpoint_in,
    security_group_in,
)
from ..options.argument_kinds import checked_arguments
from ..synthesis.arns import arn, endpoint_arn
from ..synthesis.construct_tree import path_below, stack_of
from ..synthesis.launched_names import launched_name_of, name_anywhere
from ..synthesis.rights import allow, document
from ..synthesis.safeguards import log_group, private_bucket, safeguards_of, writing_logs
from ..synthesis.template_values import check, is_token
from .roles import execution_role, master_role, worker_role

_HTTPS = 443

_ENTRY_POINT = ["python", "-m", "low_latency_endpoint.load_test.fleet.task"]
"""What the image runs; the role follows as the command."""

_PULL_ACTIONS = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
)
_LOG_ACTIONS = ("logs:CreateLogStream", "logs:PutLogEvents")


@checked_arguments
@jsii.implements(ec2.IConnectable)
class LoadTestFleet(Construct):
    """Tasks that load-test one endpoint from its client zones, through its own PrivateLink.

    It holds no service and no running task: ``low-latency load-test ENDPOINT --fleet N`` starts
    one master and N workers, spread over the client zones, follows them, fetches the result and
    stops them. What costs while idle are the interface endpoints that isolated subnets need for
    the tasks' image and log, so put the fleet into a stack of its own and delete it when nothing is
    to be tested.

    Nothing comes in but from the fleet itself.

    Attributes
    ----------
    connections : aws_ec2.Connections
    cluster : aws_ecs.CfnCluster
    master_task_definition, worker_task_definition : aws_ecs.CfnTaskDefinition
    results_bucket : aws_s3.IBucket
    log_group : aws_logs.CfnLogGroup
    description_parameter : str
        Name of the Systems Manager parameter by which the command finds the fleet.

    Examples
    --------
    >>> from aws_cdk import App, Environment, Stack
    >>> from low_latency_endpoint import *
    >>> app, env = App(), Environment(account="123456789012", region="us-east-1")
    >>> serving = Stack(app, "Serving", env=env)
    >>> network = ZoneAlignedNetwork(
    ...     serving, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2"))
    >>> link = RuntimePrivateLink(serving, "Link", network=network)
    >>> testing = Stack(app, "Testing", env=env)
    >>> fleet = LoadTestFleet(
    ...     testing, "Fleet", network=network, private_link=link, endpoint="sentiment",
    ...     image=ContainerImage.from_uri(
    ...         "123456789012.dkr.ecr.us-east-1.amazonaws.com/load-generator:1"))
    >>> testing.resolve(fleet.description_parameter)["Fn::Join"][1][0]
    '/low-latency-endpoint/load-test-fleet/sentiment/'
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ZoneAlignedNetwork,
        private_link: RuntimePrivateLink,
        endpoint: IEndpoint | str,
        image: ContainerImage | None = None,
        cpu: int = 1024,
        memory_mib: int = 2048,
        interface_endpoints: bool | LoadTestFleet = True,
        results_bucket: s3.IBucket | None = None,
        results_retention: Duration | timedelta | str = timedelta(days=90),
        log_retention_days: int | None = None,
    ) -> None:
        """Tasks that load-test one endpoint from its client zones, through its own PrivateLink.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            network: The client zones' subnets; each worker takes one address in one of them.
            private_link: Its security group lets the workers in; its policy has to serve the endpoint.
            endpoint: The endpoint, or the name of one that exists. Workers may invoke it and no other.
            image: An image built from the package's Dockerfile (``low_latency_endpoint/load_test/container``) for arm64. By default the CDK CLI builds it, which needs Docker.
            cpu: CPU units of each task, 1024 for one vCPU; by default 1024. A task is one process.
            memory_mib: Memory of each task; by default 2048 MiB.
            interface_endpoints: Make the interface endpoints that the tasks need: ECR (two) and CloudWatch Logs. By default yes. Say no where the subnets reach these services already, through a NAT gateway or endpoints of the VPC: a VPC takes one with private DNS per service. So a second fleet in the VPC names the first one and shares its endpoints.
            results_bucket: Where plans and results go, under ``runs/``. By default a bucket of its own, which stays when the fleet is deleted.
            results_retention: After which the own bucket forgets them; by default 90 days.
            log_retention_days: How long the tasks' log is kept; by default as :class:`Safeguards` say, else 30 days.

        Raises:
            ConfigurationError: LLE560 to LLE564, LLE566; LLE501 for an impossible endpoint
                name; LLE801 and LLE807 for arguments of another kind.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        check_task_size(cpu, memory_mib, path)
        check(LOG_RETENTION, log_retention_days, path)
        kept = _days(results_retention, path)
        private_link.check_serves(network, path)
        self.endpoint_name = _endpoint_name(self, endpoint, path)
        self.network = network
        self._cpu, self._memory = str(cpu), str(memory_mib)
        # By itself boto3 calls the ordinary name, which private DNS of a FIPS endpoint, and an
        # endpoint without private DNS, leave alone.
        by_itself = private_link.private_dns and not private_link.fips
        self._runtime_url = None if by_itself else private_link.url
        # Without private DNS that name answers with any zone's address: a worker calls its own.
        names = {} if private_link.private_dns else private_link.zonal_dns_names
        zonal_urls = [
            f"https://{names[zone]}" for zone in network.client_zones.zones if zone in names
        ]
        self._zonal_urls = zonal_urls if len(zonal_urls) == len(network.subnets) else []
        endpoints_known = interface_endpoints is True or (
            isinstance(interface_endpoints, LoadTestFleet)
            and interface_endpoints._endpoints_group is not None
        )
        self._group = self._security_group(
            known=endpoints_known and bool(private_link.connections.security_groups)
        )
        self._connections = self._group.connections
        for number, group in enumerate(private_link.connections.security_groups):
            self._enter(group, f"IntoLink{number or ''}")
        self._endpoints_group: ec2.ISecurityGroup | None = None
        if isinstance(interface_endpoints, LoadTestFleet):
            self._endpoints_group = interface_endpoints._endpoints_group
        elif interface_endpoints:
            self._endpoints_group = _make_interface_endpoints(self, self.network)
        if self._endpoints_group is not None:
            self._enter(self._endpoints_group, "IntoEndpoints")
        self.results_bucket = results_bucket or _results_bucket(self, kept)
        network.allow_s3(self.results_bucket, write=True)
        self._guards = safeguards_of(self)
        self.log_group = log_group(
            self,
            self._guards
            if log_retention_days is None
            else replace(self._guards, log_retention_days=log_retention_days),
            days=30,
        )
        self.cluster = ecs.CfnCluster(
            self,
            "Cluster",
            cluster_settings=[
                ecs.CfnCluster.ClusterSettingsProperty(name="containerInsights", value="enabled")
            ],
        )
        if image is None:
            from .image import LoadGeneratorImage

            image = LoadGeneratorImage()
        self._define_tasks(image)
        self._descriptions = descriptions_path(self.endpoint_name)
        self.description_parameter = f"{self._descriptions}/{name_anywhere(launched_name_of(self))}"
        self._describe()

    @property
    @jsii.member(jsii_name="connections")
    def connections(self) -> ec2.Connections:
        """The tasks' security group."""
        return self._connections

    def grant_run(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal start, follow, collect and stop runs."""
        tasks = arn("ecs", f"task/{self.cluster.ref}/*")
        statements = [
            (
                ["ssm:GetParametersByPath"],
                [arn("ssm", f"parameter{self._descriptions}{end}") for end in ("", "/*")],
                None,
            ),
            (
                ["ecs:RunTask"],
                [self.master_task_definition.ref, self.worker_task_definition.ref],
                {"ArnEquals": {"ecs:cluster": self.cluster.attr_arn}},
            ),
            (["ecs:DescribeTasks", "ecs:StopTask"], [tasks], None),
            (["ecs:ListTasks"], ["*"], {"ArnEquals": {"ecs:cluster": self.cluster.attr_arn}}),
            (
                ["iam:PassRole"],
                [role.attr_arn for role in (self._execution, self._master, self._worker)],
                {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
            ),
            (
                ["s3:GetObject", "s3:PutObject"],
                [self.results_bucket.arn_for_objects(f"{RUNS_PREFIX}*")],
                None,
            ),
            (["logs:GetLogEvents"], [self.log_group.attr_arn], None),
        ]
        if self.results_bucket.encryption_key is not None:
            statements.append(
                (
                    ["kms:Decrypt", "kms:GenerateDataKey"],
                    [self.results_bucket.encryption_key.key_arn],
                    None,
                )
            )
        grant = iam.Grant.drop(grantee, "nothing yet")
        for actions, resources, conditions in statements:
            grant = grant.combine(
                iam.Grant.add_to_principal(
                    grantee=grantee, actions=actions, resource_arns=resources, conditions=conditions
                )
            )
        return grant

    # ------------------------------------------------------------------------------------ parts

    def _security_group(self, *, known: bool) -> ec2.SecurityGroup:
        group = security_group_in(
            self.network,
            self,
            "SecurityGroup",
            "Load-test tasks: workers reach their master, the private link and S3",
        )
        group.connections.allow_internally(
            ec2.Port.tcp(MASTER_PORT), "Locust workers to their master"
        )
        # With S3's prefix list each security group is named beside it, if all are known.
        listed = self.network.s3_prefix_list if known else None
        self._names_peers = listed is not None
        let_out_to_s3(group, listed, "HTTPS: private link, endpoints, S3")
        return group

    def _enter(self, group: ec2.ISecurityGroup, id: str) -> None:
        """Let the tasks in; a rule of this stack, so that the group's stack needs not this one."""
        ec2.CfnSecurityGroupIngress(
            self,
            id,
            group_id=group.security_group_id,
            source_security_group_id=self._group.security_group_id,
            ip_protocol="tcp",
            from_port=_HTTPS,
            to_port=_HTTPS,
            description="Load-test tasks",
        )
        if self._names_peers:
            ec2.CfnSecurityGroupEgress(
                self,
                f"{id}Egress",
                group_id=self._group.security_group_id,
                destination_security_group_id=group.security_group_id,
                ip_protocol="tcp",
                from_port=_HTTPS,
                to_port=_HTTPS,
                description="Load-test tasks",
            )

    def _define_tasks(self, image: ContainerImage) -> None:
        uri, pull = image.bind(self)
        runs = self.results_bucket.arn_for_objects(f"{RUNS_PREFIX}*")
        key = self.results_bucket.encryption_key
        self._execution = execution_role(
            self, "ExecutionRole", pull, writing_logs(self._guards, self.log_group)
        )
        self._master = master_role(self, "MasterRole", runs, key)
        self._worker = worker_role(
            self, "WorkerRole", endpoint_arn(self, self.endpoint_name), runs, key
        )
        self.master_task_definition = self._task("Master", "master", uri, self._master)
        self.worker_task_definition = self._task("Worker", "worker", uri, self._worker)

    def _task(self, id: str, kind: str, uri: str, role: iam.CfnRole) -> ecs.CfnTaskDefinition:
        master = kind == "master"
        return ecs.CfnTaskDefinition(
            self,
            id,
            requires_compatibilities=["FARGATE"],
            network_mode="awsvpc",
            cpu=self._cpu,
            memory=self._memory,
            runtime_platform=ecs.CfnTaskDefinition.RuntimePlatformProperty(
                cpu_architecture="ARM64", operating_system_family="LINUX"
            ),
            execution_role_arn=self._execution.attr_arn,
            task_role_arn=role.attr_arn,
            volumes=[ecs.CfnTaskDefinition.VolumeProperty(name="scratch")],
            container_definitions=[
                ecs.CfnTaskDefinition.ContainerDefinitionProperty(
                    name=kind,
                    image=uri,
                    essential=True,
                    entry_point=_ENTRY_POINT,
                    command=[kind],
                    environment=(
                        [
                            ecs.CfnTaskDefinition.KeyValuePairProperty(
                                name="AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", value=self._runtime_url
                            )
                        ]
                        if self._runtime_url and not master
                        else None
                    ),
                    user="10001:10001",
                    readonly_root_filesystem=True,
                    mount_points=[
                        ecs.CfnTaskDefinition.MountPointProperty(
                            container_path="/tmp", source_volume="scratch", read_only=False
                        )
                    ],
                    port_mappings=(
                        [
                            ecs.CfnTaskDefinition.PortMappingProperty(
                                container_port=MASTER_PORT, protocol="tcp"
                            )
                        ]
                        if master
                        else None
                    ),
                    linux_parameters=ecs.CfnTaskDefinition.LinuxParametersProperty(
                        init_process_enabled=True,
                        capabilities=ecs.CfnTaskDefinition.KernelCapabilitiesProperty(drop=["ALL"]),
                    ),
                    stop_timeout=30,
                    ulimits=[
                        ecs.CfnTaskDefinition.UlimitProperty(
                            name="nofile", soft_limit=65_535, hard_limit=65_535
                        )
                    ],
                    log_configuration=ecs.CfnTaskDefinition.LogConfigurationProperty(
                        log_driver="awslogs",
                        options={
                            "awslogs-group": self.log_group.ref,
                            "awslogs-region": Aws.REGION,
                            "awslogs-stream-prefix": "load-test",
                        },
                    ),
                )
            ],
        )

    def _describe(self) -> None:
        """Write down what ``low-latency load-test --fleet`` needs to start a run."""
        description: dict[str, Any] = {
            "schema": 1,
            "endpoint": self.endpoint_name,
            "cluster": self.cluster.ref,
            "master": self.master_task_definition.ref,
            "worker": self.worker_task_definition.ref,
            "subnets": self.network.subnet_ids,
            "zones": list(self.network.client_zones.zones),
            "security_group": self._group.security_group_id,
            "bucket": self.results_bucket.bucket_name,
            "log_group": self.log_group.ref,
            **({"zonal_urls": self._zonal_urls} if self._zonal_urls else {}),
        }
        ssm.CfnParameter(
            self,
            "Description",
            name=self.description_parameter,
            type="String",
            description=f"The load-test fleet of endpoint {self.endpoint_name}",
            value=stack_of(self).to_json_string(description),
        )

    def output_commands(self) -> None:
        """Add stack outputs: how to run a test, and where its results are."""
        CfnOutput(
            self,
            "Run",
            value=f"low-latency load-test {self.endpoint_name} --fleet 4 --find-limit",
            description="Starts the tasks, follows them, fetches the result, stops them",
        )
        CfnOutput(
            self,
            "ResultsBucket",
            value=self.results_bucket.bucket_name,
            description=f"Plans and results, under {RUNS_PREFIX}",
        )


def _results_bucket(scope: Construct, days: int) -> s3.Bucket:
    """Private, encrypted, TLS only; forgets after some days."""
    return private_bucket(
        scope,
        "Results",
        holds="load-test plans and results only",
        lifecycle_rules=[
            s3.LifecycleRule(
                id="forget",
                expiration=Duration.days(days),
                abort_incomplete_multipart_upload_after=Duration.days(1),
            )
        ],
        # Results are what the fleet was for: deleting it must not lose them.
        removal_policy=RemovalPolicy.RETAIN,
    )


def _endpoint_name(fleet: Construct, endpoint: IEndpoint | str, where: str) -> str:
    if isinstance(endpoint, IEndpoint):
        return endpoint.name_in(fleet)
    if is_token(endpoint):
        raise ENDPOINT_KIND.error(
            got="a token", allowed="Endpoint, or a name known at synth", where=where
        )
    return str(check(ENDPOINT_NAME, endpoint, where))


def _days(duration: Duration | timedelta | str, where: str) -> int:
    days = seconds_of(duration, where) / 86_400
    return int(RESULTS_RETENTION.check(int(days) if days == int(days) else days, where))


def _make_interface_endpoints(scope: Construct, network: ZoneAlignedNetwork) -> ec2.SecurityGroup:
    """Make what tasks in isolated subnets need; the group that lets them in."""
    # What may be done through each, and with what: no push, no other log. ECR needs both of its
    # endpoints (and S3), the awslogs driver needs Logs:
    # https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
    services = {
        "ecr.api": (_PULL_ACTIONS, "*"),
        "ecr.dkr": (_PULL_ACTIONS, "*"),
        "logs": (_LOG_ACTIONS, arn("logs", "log-group:*")),
    }
    group = security_group_in(
        network,
        scope,
        "EndpointsSecurityGroup",
        "Interface endpoints of the load-test tasks: only these tasks",
    )
    for service, (actions, resources) in services.items():
        endpoint = interface_endpoint_in(
            network,
            scope,
            f"Endpoint-{service}",
            ec2.InterfaceVpcEndpointAwsService(service),
            group,
        )
        resource = cast(ec2.CfnVPCEndpoint, endpoint.node.default_child)
        # For this account's principals; other fleets of the VPC come through too.
        resource.policy_document = document(
            allow(
                actions,
                resources,
                principal={"AWS": "*"},
                condition={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
            )
        )
    return group
