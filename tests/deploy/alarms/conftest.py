"""Endpoints of every shape with all of their alarms, deployed once for each module here.

A package's fixture would live on among the other tests of a worker, which find its resources.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from local_sagemaker import deploy_template
from low_latency_endpoint import (
    AlarmOptions,
    ClientZones,
    Container,
    ContainerImage,
    LatencyAlarms,
    Model,
    ModelData,
    SlowRequests,
    ZoneAlignedNetwork,
)
from tests.deploy.small_stacks import (
    REGISTRY,
    endpoint_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)

MINUTE = timedelta(minutes=1)
ms = cdk.Duration.millis

COMMON: dict[str, Any] = {
    "model_latency": {"p50": ms(50), "p99": ms(200)},
    "overhead_latency": {"Average": ms(20)},
    "error_rate": 0.01,
    "client_error_rate": 0.05,
    "model_error_rate": 0.02,
    "slow_requests": SlowRequests(threshold=ms(200), objective=0.99),
    "cpu_utilization": 70,
    "memory_utilization": 80,
    "disk_utilization": 85,
    "expect_traffic": True,
}
PAGING: dict[str, Any] = {
    "error_rate": 0.01,
    "slow_requests": SlowRequests(threshold=ms(200), objective=0.99),
}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    # 4 vCPUs; scales to 4 instances.
    "single": (
        "ml.m5.xlarge",
        {
            **COMMON,
            "capacity_at_maximum": True,
            "zone_imbalance": 1.5,
            "anomalies": {"Invocations": "Sum"},
            "service_level_objective": 0.99,
        },
    ),
    # 48 vCPUs, 4 GPUs.
    "gpu": (
        "ml.g5.12xlarge",
        {
            **COMMON,
            "gpu_utilization": 85,
            "gpu_memory_utilization": 90,
            "model_latency": {"Warning": {"p99": ms(150)}, "Critical": {"p99": ms(300)}},
        },
    ),
    "multi": ("ml.m5.xlarge", {**COMMON, "cache_miss_rate": 0.05, "model_loading_wait": ms(500)}),
    # What pages: few alarms, so that each test says what goes on.
    "pager": ("ml.m5.xlarge", PAGING),
    "quiet": ("ml.m5.xlarge", {**PAGING, "quiet_during_deployments": True}),
    "two": ("ml.m5.xlarge", {"error_rate": 0.01, "quiet_during_deployments": True}),
    "rollback": ("ml.m5.xlarge", {"error_rate": 0.01, "model_latency": {"p99": ms(200)}}),
    "rare": ("ml.m5.xlarge", {"error_rate": 0.01, "model_latency": {"p99": ms(200)}}),
}
PEAK_TPS = {"rare": {"primary": 0.1}}
UTILIZATION = {
    "CPUUtilization",
    "MemoryUtilization",
    "DiskUtilization",
    "GPUUtilization",
    "GPUMemoryUtilization",
}


class World:
    """An endpoint of each of some shapes with its alarms, in one stack."""

    def __init__(self, aws: Any, out: Path, shapes: Sequence[str]) -> None:
        self.aws = aws
        self.cloudwatch = aws.client("cloudwatch")
        self.topic = aws.client("sns").create_topic(Name="Paging")["TopicArn"]
        queue = self.topic.replace(":sns:", ":sqs:")
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue,
            "Condition": {"ArnEquals": {"aws:SourceArn": self.topic}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs = aws.client("sqs")
        self.queue = sqs.create_queue(QueueName="Paging", Attributes={"Policy": policy})["QueueUrl"]
        aws.client("sns").subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=queue)
        self.times = (
            datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=30 * n) for n in itertools.count()
        )
        stack = stack_in(out, "Alarms", flags=True)
        zones = ClientZones.of_names("us-east-1a", "us-east-1b")
        network = network_in(stack, client_zones=zones)
        topic = sns.Topic.from_topic_arn(stack, "Topic", self.topic)
        made = {shape: self._alarms(stack, network, topic, shape) for shape in shapes}
        deployed = deploy_template(aws, synthesised(stack), "Alarms").resources
        self.names = {
            shape: {key: deployed[logical_id] for key, logical_id in found.items()}
            for shape, found in made.items()
        }
        self.configs = {
            shape: aws.client("sagemaker").describe_endpoint(EndpointName=shape)[
                "EndpointConfigName"
            ]
            for shape in shapes
        }

    def _alarms(
        self, stack: cdk.Stack, network: ZoneAlignedNetwork, topic: sns.ITopic, shape: str
    ) -> dict[str, str]:
        """Key of each alarm below the construct -> its logical ID."""
        scope = Construct(stack, shape)
        instance_type, options = SHAPES[shape]
        multi = shape == "multi"
        data = ModelData.from_uri("s3://models/m/" if multi else "s3://models/m.tar.gz")
        held = Container(
            image=ContainerImage.from_uri(f"{REGISTRY}/m:1"), data=data, multi_model=multi
        )
        model = Model(scope, "Model", network=network, containers=[held])
        names = ("primary", "other") if shape == "two" else ("primary",)
        variants = [
            variant_of(model, None, name=name, instance_type=instance_type) for name in names
        ]
        endpoint = endpoint_in(scope, *variants, endpoint_name=shape)
        endpoint.scale("primary", min_instances=2, max_instances=4).track_invocations(
            max_tps_per_instance=10
        )
        alarms = LatencyAlarms(
            scope,
            "Alarms",
            endpoint=endpoint,
            options=replace(AlarmOptions.none(), actions=[actions.SnsAction(topic)], **options),
            peak_tps=PEAK_TPS.get(shape),
            new_fleet_only=shape == "rollback",
        )
        known = {
            alarm.node.id: key.removeprefix("primary/") for key, alarm in alarms.alarms.items()
        }
        found = {}
        # Everything below the construct, listed by it or not.
        for child in alarms.node.find_all():
            if isinstance(child, (cloudwatch.CfnAlarm, cloudwatch.CfnCompositeAlarm)):
                name = child.node.scope.node.id
                key = known.get(name, name.removeprefix("primary-"))
                found[key] = stack.get_logical_id(child)
        return found

    def states(self, shape: str) -> dict[str, str]:
        """Key of each alarm of a shape -> its state, as DescribeAlarms says."""
        names = self.names[shape]
        found = self.cloudwatch.describe_alarms(
            AlarmNames=list(names.values()),
            AlarmTypes=["MetricAlarm", "CompositeAlarm"],
            MaxRecords=100,
        )
        both = found["MetricAlarms"] + found["CompositeAlarms"]
        states = {alarm["AlarmName"]: alarm["StateValue"] for alarm in both}
        return {key: states[name] for key, name in names.items()}

    def publish(self, shape: str, *minutes: tuple[datetime, dict[str, Any]]) -> None:
        """Publish data of some minutes as SageMaker does.

        By metric; behind an @ that of a zone, of the new fleet, of the
        other variant.
        """
        batches: dict[str, list[dict[str, Any]]] = {}
        for at, data in minutes:
            for name, datum in data.items():
                metric, _, part = name.partition("@")
                dimensions = {"EndpointName": shape, "VariantName": "primary"}
                if part.startswith("zone"):
                    dimensions |= {
                        "Region": "us-east-1",
                        "InstanceType": SHAPES[shape][0],
                        "AvailabilityZone": f"us-east-1{'ab'[int(part[-1])]}",
                    }
                elif part in ("new", "new-other"):
                    dimensions["EndpointConfigName"] = self.configs[shape]
                if part.endswith("other"):
                    dimensions["VariantName"] = "other"
                namespace = "/aws/sagemaker/Endpoints" if metric in UTILIZATION else "AWS/SageMaker"
                batches.setdefault(namespace, []).append(
                    {
                        "MetricName": metric,
                        "Timestamp": at,
                        **datum,
                        "Dimensions": [{"Name": n, "Value": v} for n, v in dimensions.items()],
                    }
                )
        for namespace, batch in batches.items():
            for at in range(0, len(batch), 1000):  # the most that one request may have
                data = batch[at : at + 1000]
                self.cloudwatch.put_metric_data(Namespace=namespace, MetricData=data)


def shares(high: float, low: float, percent: float, count: int = 1000) -> dict[str, Any]:
    """Values of which a share is high."""
    many = count * percent / 100
    return {"Values": [high, low], "Counts": [many, count - many]}


class Pager:
    """What an endpoint's composite alarm does, minute by minute."""

    def __init__(self, world: Any, shape: str = "pager") -> None:
        self.world = world
        self.shape = shape
        self.name = world.names[shape]["Composite"]
        self.start = next(world.times)
        # Long enough for what an earlier test left to be said and over.
        world.aws.evaluate_alarms(self.start, since=self.start - 40 * MINUTE)
        self.before = len(self.taken())
        self.received()

    def taken(self) -> list[tuple[str, int]]:
        """What the endpoint's alarms did: the state and the minute."""
        names = set(self.world.names[self.shape].values())
        return [
            (
                a["StateValue"],
                round(
                    (datetime.strptime(a["Time"], "%Y-%m-%dT%H:%M:%S.%f%z") - self.start) / MINUTE
                ),
            )
            for a in self.world.aws.alarm_actions()
            if a["AlarmName"] in names
        ]

    def received(self) -> list[str]:
        """The alarms that the topic's subscriber has been told of since the last question."""
        sqs, found = self.world.aws.client("sqs"), []
        while got := sqs.receive_message(QueueUrl=self.world.queue, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for message in got:
                sqs.delete_message(
                    QueueUrl=self.world.queue, ReceiptHandle=message["ReceiptHandle"]
                )
                found.append(json.loads(json.loads(message["Body"])["Message"])["AlarmName"])
        return found

    def run(
        self,
        minutes: int,
        *,
        failing: range,
        deploying: Collection[int] = (),
        deploying_other: Collection[int] = (),
        lasting: Collection[int] = (),
        asleep: range = range(0),
    ) -> list[Any]:
        """Let time pass, and give what was done.

        Each minute has 1000 requests for a variant. The new fleet, which the series with
        EndpointConfigName is of, takes 100 of them while deploying and all of them while lasting.
        Alarms are judged every minute, but only every tenth one for the minutes asleep.
        """
        for first in range(0, minutes, 100):
            self.world.publish(
                self.shape,
                *(
                    (
                        self.start + minute * MINUTE,
                        {
                            "Invocation5XXErrors": shares(1, 0, 50 if minute in failing else 0),
                            "Invocations": shares(1, 1, 0),
                            **({"Invocations@new": {"Value": 100}} if minute in deploying else {}),
                            **({"Invocations@new": {"Value": 1000}} if minute in lasting else {}),
                            **(
                                {
                                    "Invocations@other": {"Value": 1000},
                                    "Invocations@new-other": {"Value": 100},
                                }
                                if minute in deploying_other
                                else {}
                            ),
                        },
                    )
                    for minute in range(first, min(first + 100, minutes))
                ),
            )
        self._judge_every_minute(0, asleep.start)
        for minute in asleep[10::10]:
            self.world.aws.evaluate_alarms(self.start + minute * MINUTE)
        self._judge_every_minute(asleep.stop, minutes)
        return self.taken()[self.before :]

    def _judge_every_minute(self, start: int, end: int) -> None:
        for first in range(start, end, 100):
            self.world.aws.evaluate_alarms(
                self.start + min(first + 100, end) * MINUTE, since=self.start + first * MINUTE
            )


@pytest.fixture(scope="module")
def world(aws, request, tmp_path_factory) -> Iterator[World]:
    aws.reset()
    out = tmp_path_factory.mktemp("alarms") / "cdk.out"
    yield World(aws, out, request.module.ENDPOINTS)
    aws.reset()
