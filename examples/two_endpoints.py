"""Two endpoints share one network and one interface endpoint: a VPC takes one with private DNS.

Both belong to the stack and to neither endpoint, so that each of the two can be retired without the
other's network.
"""

from aws_cdk import App, Duration, Environment, Stack
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
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
    RuntimePrivateLink,
    ZoneAlignedNetwork,
)

app = App()
stack = Stack(app, "Search", env=Environment(account="123456789012", region="eu-west-1"))

on_call = cloudwatch_actions.SnsAction(
    sns.Topic.from_topic_arn(stack, "OnCall", "arn:aws:sns:eu-west-1:123456789012:on-call")
)

network = ZoneAlignedNetwork(
    stack,
    "Network",
    client_zones=ClientZones.of_ids("euw1-az1", "euw1-az2"),
    max_instances=50,  # of all endpoints together, and of those to come
)
link = RuntimePrivateLink(stack, "PrivateLink", network=network)

LowLatencyEndpoint(
    stack,
    "Embeddings",
    network=network,
    private_link=link,
    containers=[
        Container(
            image=ContainerImage.from_dlc(
                "huggingface-pytorch-inference-neuronx",
                "2.1.2-transformers4.43.2-neuronx-py310-sdk2.20.0-ubuntu20.04",
            ),
            data=ModelData.from_uri("s3://my-bucket/embeddings-inf2/model.tar.gz"),
        )
    ],
    instance_type=InstanceType("ml.inf2.xlarge"),
    latency=LatencyTarget(p99=Duration.millis(30)),
    throughput=MeasuredThroughput(
        peak_tps=900, tps_per_instance=225, safety_factor=0.44, rise_tps_per_minute=15
    ),
    endpoint=EndpointOptions(endpoint_name="embeddings"),  # stays when scopes move
    alarms=AlarmOptions(actions=[on_call]),
)
LowLatencyEndpoint(
    stack,
    "Ranking",
    network=network,
    private_link=link,
    containers=[
        Container(
            image=ContainerImage.from_dlc(
                "pytorch-inference", "2.6.0-cpu-py312-ubuntu22.04-sagemaker"
            ),
            data=ModelData.from_uri("s3://my-bucket/ranking/model.tar.gz"),
        )
    ],
    instance_type=InstanceType("ml.c7i.4xlarge"),
    latency=LatencyTarget(p99=Duration.millis(15)),
    throughput=MeasuredThroughput(
        peak_tps=2000, tps_per_instance=700, safety_factor=0.4, rise_tps_per_minute=50
    ),
    endpoint=EndpointOptions(endpoint_name="ranking"),
    alarms=AlarmOptions(actions=[on_call]),
)

app.synth()
