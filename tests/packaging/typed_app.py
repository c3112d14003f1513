"""An app as its users write it: checked by mypy --strict and by Pyright, never run."""

from dataclasses import replace

import aws_cdk as cdk
from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_sns as sns
from constructs import Construct

from low_latency_endpoint import (
    AlarmOptions,
    AlarmTopic,
    ClientZones,
    ConfigurationOptions,
    Container,
    ContainerImage,
    DataCapture,
    Endpoint,
    EndpointConfiguration,
    EndpointOptions,
    IEndpoint,
    InstanceType,
    InvocationScaling,
    LatencyAlarms,
    LatencyDashboard,
    LatencyTarget,
    LoadTestFleet,
    LowLatencyEndpoint,
    LowLatencyEndpointStack,
    MeasuredThroughput,
    Model,
    ModelData,
    ModelOptions,
    ProductionVariant,
    RoutingStrategy,
    RuntimePrivateLink,
    Safeguards,
    VariantOptions,
    WarmUp,
    WarmUpOptions,
    WarmUpPayload,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError


class Sentiment(LowLatencyEndpoint):
    """A pattern of the team's own."""

    def __init__(self, scope: Construct, id: str, *, peak_tps: float) -> None:
        super().__init__(
            scope,
            id,
            client_zones=["use1-az1", "use1-az2"],
            containers=[
                Container.from_dlc(
                    "pytorch-inference", "2.6.0-cpu", data="s3://models/model.tar.gz"
                )
            ],
            instance_type="ml.m5.xlarge",
            latency=LatencyTarget(p99=Duration.millis(200)),
            throughput=MeasuredThroughput(peak_tps=peak_tps, tps_per_instance=50),
        )


class Serving(cdk.Stack):
    """The pattern in the VPC of its callers."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        vpc = ec2.Vpc(self, "Vpc", availability_zones=["us-east-1a", "us-east-1b"])
        function = lambda_.Function(
            self,
            "Function",
            vpc=vpc,
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="index.handler",
            code=lambda_.Code.from_inline("def handler(event, context): ..."),
        )
        task = ecs.FargateTaskDefinition(self, "Task")
        service = ecs.FargateService(
            self, "Service", cluster=ecs.Cluster(self, "Cluster", vpc=vpc), task_definition=task
        )
        group = ec2.SecurityGroup(self, "Group", vpc=vpc)
        servers = autoscaling.AutoScalingGroup(
            self,
            "Servers",
            vpc=vpc,
            instance_type=ec2.InstanceType("m7g.large"),
            machine_image=ec2.MachineImage.latest_amazon_linux2023(),
        )
        topic = sns.Topic.from_topic_arn(self, "Topic", "arn:aws:sns:us-east-1:123456789012:t")
        key = kms.Key(self, "Key")
        bucket = s3.Bucket(self, "Bucket")
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        repository = ecr.Repository(self, "Repository")
        endpoint = LowLatencyEndpoint(
            self,
            "Sentiment",
            vpc=vpc,
            client_zones=ClientZones.of_vpc(vpc),
            subnet_selection=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            containers=[
                Container(
                    image=ContainerImage.from_ecr_repository(repository, "1"),
                    data=ModelData.from_s3(bucket, "model.tar.gz"),
                    environment={"HF_TASK": "text-classification"},
                )
            ],
            instance_type=InstanceType("ml.m5.xlarge"),
            latency=LatencyTarget(p99=Duration.millis(200)),
            callers=[function, service, servers, group, ec2.Peer.ipv4("10.0.0.0/16")],
            model=ModelOptions(role=role),
            configuration=ConfigurationOptions(
                encryption_key=key, data_capture=DataCapture(s3="s3://captured")
            ),
            variant=VariantOptions(routing=RoutingStrategy.LEAST_OUTSTANDING_REQUESTS),
            endpoint=EndpointOptions(endpoint_name="sentiment", tags={"team": "search"}),
            alarms=AlarmOptions(actions=[cloudwatch_actions.SnsAction(topic)]),
            warm_up=WarmUpOptions(payload=WarmUpPayload(data={"inputs": "warm"})),
            safeguards=Safeguards(encryption_key=key),
        )
        for grantee in (function, task.task_role):
            endpoint.grant_invoke(grantee).assert_success()
        function.connections.allow_to(endpoint, ec2.Port.tcp(443))
        endpoint.connections.allow_from(servers, ec2.Port.tcp(443))
        endpoint.private_link.allow_from(group, "the shop")
        names: dict[str, str] = dict(endpoint.private_link.zonal_dns_names)
        for zone, name in names.items():
            cdk.CfnOutput(self, f"Url-{zone}", value=name)
        function.add_environment("ENDPOINT_NAME", endpoint.endpoint.endpoint_name)
        cdk.CfnOutput(self, "Instances", value=str(endpoint.plan.fleet.at_peak))

        calls: cloudwatch.Metric = endpoint.metric("Invocations", statistic="Sum")
        slow = endpoint.metric_model_latency("p99").create_alarm(
            self, "Slow", threshold=200_000, evaluation_periods=3
        )
        slow.add_alarm_action(AlarmTopic(self, "OnCall").action)
        cloudwatch.Alarm(self, "Calls", metric=calls, threshold=1, evaluation_periods=1)
        cloudwatch.GraphWidget(left=[calls, endpoint.endpoint.metric_overhead_latency()])
        if endpoint.scaling is not None:
            endpoint.scaling.on_schedule(
                "morning", schedule=appscaling.Schedule.cron(hour="7"), min_instances=4
            )


class Parts(cdk.Stack):
    """Each part by itself."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        network = ZoneAlignedNetwork(
            self, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2")
        )
        link = RuntimePrivateLink(self, "Link", network=network)
        model = Model(
            self,
            "Model",
            network=network,
            containers=[Container.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/a:1")],
        )
        s3.Bucket(self, "Bucket").grant_read(model)
        other = sagemaker.CfnModel(self, "Other", execution_role_arn="role")
        configuration = EndpointConfiguration(
            self,
            "Configuration",
            variants=[
                ProductionVariant(name=name, model=each, instance_type=InstanceType("ml.m5.xlarge"))
                for name, each in (("a", model), ("b", Model.from_cfn_model(other)))
            ],
        )
        endpoint = Endpoint(self, "Endpoint", configuration=configuration)
        scaling: InvocationScaling = endpoint.scale("a", min_instances=2, max_instances=4)
        scaling.track_invocations(max_tps_per_instance=20)
        endpoint.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
        cdk.RemovalPolicies.of(endpoint).retain()
        WarmUp(
            self,
            "WarmUp",
            endpoint=endpoint,
            private_link=link,
            network=network,
            options=WarmUpOptions(payload=WarmUpPayload(data={"inputs": "warm"})),
        )
        LoadTestFleet(self, "Fleet", network=network, private_link=link, endpoint=endpoint)


class Watching(cdk.Stack):
    """An endpoint that another team made."""

    def __init__(self, scope: Construct, id: str, topic: sns.ITopic) -> None:
        super().__init__(scope, id)
        endpoint: IEndpoint = Endpoint.from_endpoint_attributes(
            self, "Sentiment", endpoint_name="sentiment"
        )
        by_name = Endpoint.from_endpoint_name(self, "Named", "sentiment")
        by_arn = Endpoint.from_endpoint_arn(
            self, "Arn", "arn:aws:sagemaker:us-east-1:123456789012:endpoint/sentiment"
        )
        user = iam.User(self, "User")
        for each in (endpoint, by_name, by_arn):
            each.grant_invoke(user)
        alarms = LatencyAlarms(
            self,
            "Alarms",
            endpoint=endpoint,
            options=replace(
                AlarmOptions.none(),
                model_latency={"p99": Duration.millis(200)},
                actions=[cloudwatch_actions.SnsAction(topic)],
            ),
        )
        LatencyDashboard(self, "Dashboard", endpoint=endpoint, alarms=alarms)


def main() -> None:
    app = cdk.App()
    Serving(app, "Serving")
    Parts(app, "Parts")
    stack = cdk.Stack(app, "Team")
    Watching(app, "Watching", sns.Topic.from_topic_arn(stack, "Topic", "arn:aws:sns:::t"))
    try:
        Sentiment(stack, "Sentiment", peak_tps=100)
    except ConfigurationError as error:
        print(error.code, error.fix)
    made = LowLatencyEndpointStack.from_settings(app, "FromFile", "endpoint.yaml")
    cdk.CfnOutput(made, "Count", value=str(len(made.node.children)))
    app.synth()
