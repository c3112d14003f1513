"""Each construct alone: two variants behind one endpoint, scaled and watched by hand."""

from dataclasses import replace

from aws_cdk import App, Duration, Environment, Stack
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

from low_latency_endpoint import (
    AlarmOptions,
    ClientZones,
    Container,
    ContainerImage,
    DeploymentPolicy,
    Endpoint,
    EndpointConfiguration,
    InstanceType,
    LatencyAlarms,
    Model,
    ModelData,
    ProductionVariant,
    RoutingStrategy,
    RuntimePrivateLink,
    ZoneAlignedNetwork,
)

app = App()
stack = Stack(app, "Ranking", env=Environment(account="123456789012", region="us-east-1"))

network = ZoneAlignedNetwork(
    stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2"), max_instances=14
)
link = RuntimePrivateLink(stack, "Link", network=network)
link.allow_from(ec2.Peer.ipv4("10.0.0.0/16"))


def ranking_model(version: str) -> Model:
    """One version of the model."""
    return Model(
        stack,
        f"Model-{version}",
        network=network,
        containers=[
            Container(
                image=ContainerImage.from_uri(
                    "123456789012.dkr.ecr.us-east-1.amazonaws.com/ranking:1.4.2"
                ),
                data=ModelData.from_uri(f"s3://my-bucket/ranking/{version}/model.tar.gz"),
            )
        ],
    )


configuration = EndpointConfiguration(
    stack,
    "Configuration",
    variants=[
        ProductionVariant(
            name=name,
            model=ranking_model(version),
            instance_type=InstanceType("ml.c7i.4xlarge"),
            initial_instance_count=2,
            weight=weight,
            routing=RoutingStrategy.RANDOM,
        )
        for name, version, weight in (("champion", "v7", 0.9), ("challenger", "v8", 0.1))
    ],
)
endpoint = Endpoint(
    stack,
    "Endpoint",
    configuration=configuration,
    endpoint_name="ranking",
    deployment=DeploymentPolicy.linear(step_percent=25, wait=Duration.minutes(5)),
)
link.serve(endpoint.name_in(link))

champion = endpoint.scale("champion", min_instances=2, max_instances=10)
champion.track_invocations(max_tps_per_instance=700, safety_factor=0.65)
champion.on_schedule(
    "BeforeTheRush",
    schedule=appscaling.Schedule.cron(hour="7", minute="30"),
    min_instances=6,
    time_zone="Europe/Berlin",
)
endpoint.scale("challenger", min_instances=2, max_instances=4).track_concurrency(
    max_concurrency_per_instance=8
)

on_call = cloudwatch_actions.SnsAction(
    sns.Topic.from_topic_arn(stack, "OnCall", "arn:aws:sns:us-east-1:123456789012:on-call")
)
alarms = LatencyAlarms(
    stack,
    "Alarms",
    endpoint=endpoint,
    options=replace(
        AlarmOptions.none(),
        model_latency={"p50": Duration.millis(6), "p99": Duration.millis(15)},
        overhead_latency={"Average": Duration.millis(5)},
        error_rate=0.01,
        actions=[on_call],
    ),
)

caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
endpoint.grant_invoke(caller)

app.synth()
