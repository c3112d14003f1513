"""Most teams start here: callers run in a VPC already, and the endpoint comes to them.

Run it with ``cdk synth --app "python examples/existing_vpc.py"``.
"""

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
)

app = App()
stack = Stack(app, "Sentiment", env=Environment(account="123456789012", region="us-east-1"))

# In your app: ec2.Vpc.from_lookup(stack, "Vpc", vpc_id="vpc-...")
vpc = ec2.Vpc.from_vpc_attributes(
    stack,
    "Vpc",
    vpc_id="vpc-0123456789abcdef0",
    availability_zones=["us-east-1a", "us-east-1b"],
    private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    private_subnet_route_table_ids=["rtb-0123456789abcdef0", "rtb-0123456789abcdef1"],
)
on_call = cloudwatch_actions.SnsAction(
    sns.Topic.from_topic_arn(stack, "OnCall", "arn:aws:sns:us-east-1:123456789012:on-call")
)
service = ec2.SecurityGroup.from_security_group_id(
    stack, "CallersSecurityGroup", "sg-0123456789abcdef0"
)

LowLatencyEndpoint(
    stack,
    "Sentiment",
    vpc=vpc,
    client_zones=ClientZones.of_names("us-east-1a", "us-east-1b"),
    # Private DNS leads every SageMaker caller of the VPC here, so all of them are let in. To leave
    # them alone: private_dns=False, callers=[service], and the service takes its zone's URL.
    private_dns=True,
    callers=[service, ec2.Peer.ipv4("10.0.0.0/16")],  # the VPC's range
    containers=[
        Container(
            image=ContainerImage.from_dlc(
                "huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04"
            ),
            data=ModelData.from_uri("s3://my-bucket/distilbert-base-uncased/model.tar.gz"),
            environment={"HF_TASK": "text-classification"},
        )
    ],
    instance_type=InstanceType("ml.m5.12xlarge"),
    latency=LatencyTarget(p99=Duration.millis(200)),
    # With a zone lost, the other one holds the peak, at 83 % of its limit.
    throughput=MeasuredThroughput(
        peak_tps=1000, tps_per_instance=200, safety_factor=0.45, rise_tps_per_minute=15
    ),
    endpoint=EndpointOptions(endpoint_name="sentiment"),  # stays when scopes move
    alarms=AlarmOptions(actions=[on_call]),
)

app.synth()
