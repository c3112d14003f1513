"""A VPC of its own, by zone IDs: callers in another account land in the same physical zones."""

from aws_cdk import App, Duration, Environment, Stack
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns

from low_latency_endpoint import (
    AlarmOptions,
    ClientZones,
    Container,
    ContainerImage,
    EndpointOptions,
    InstanceType,
    LatencyTarget,
    LowLatencyEndpoint,
    MeasuredThroughput,
    ModelData,
    VariantOptions,
)

app = App()
stack = Stack(app, "Chat", env=Environment(account="123456789012", region="us-east-1"))

on_call = cloudwatch_actions.SnsAction(
    sns.Topic.from_topic_arn(stack, "OnCall", "arn:aws:sns:us-east-1:123456789012:on-call")
)

chat = LowLatencyEndpoint(
    stack,
    "Chat",
    client_zones=ClientZones.of_ids("use1-az1", "use1-az2", "use1-az4"),
    containers=[
        Container(
            image=ContainerImage.from_dlc("vllm", "0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"),
            data=ModelData.from_uri("s3://my-bucket/my-llm/"),  # uncompressed: starts faster
        )
    ],
    instance_type=InstanceType("ml.g6e.12xlarge"),
    # At twelve requests a second a p99 follows the seven slowest of a minute: the p90 is steadier.
    latency=LatencyTarget(p50=Duration.seconds(2), p90=Duration.seconds(8)),
    throughput=MeasuredThroughput(
        peak_tps=12, tps_per_instance=4, safety_factor=0.59, rise_tps_per_minute=0.15
    ),
    endpoint=EndpointOptions(endpoint_name="chat"),  # stays when scopes move
    alarms=AlarmOptions(actions=[on_call]),
    variant=VariantOptions(
        model_data_download_timeout=Duration.minutes(20),
        startup_health_check_timeout=Duration.minutes(15),
    ),
)
chat.private_link.allow_from(ec2.Peer.ipv4("10.0.0.0/16"))
chat.output_settings_for_callers()

app.synth()
