"""The canary deployed: its functions run in the local AWS, whose paths are slow, lost, or misleading."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_cdk import Duration
from aws_cdk import aws_sns as sns
from aws_cdk.aws_cloudwatch_actions import SnsAction

from local_sagemaker import DeployedStack, LocalAws, RuntimeOptions, deploy_template
from low_latency_endpoint import CanaryOptions, RuntimePrivateLink, WarmUpPayload, ZoneCanary
from low_latency_endpoint.facts.canary_metrics import NAMESPACE, PUBLISHED
from tests.deploy.small_stacks import (
    REGISTRY,
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)

MINUTE = timedelta(minutes=1)
NOON = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
ZONES = ("use1-az1", "use1-az2")


@dataclass
class World:
    """One endpoint with a canary, minute by minute."""

    aws: LocalAws
    stack: DeployedStack
    endpoint: str
    alarms: dict[str, str]  # physical names by key; ``page`` for what pages

    def minute(self) -> None:
        """Each canary runs once; then CloudWatch judges."""
        assert len(self.aws.run_schedules()) == len(ZONES)
        self.aws.advance(60)
        self.aws.evaluate_alarms(at=self.aws.runtime_time())

    def on(self) -> set[str]:
        """The keys of the alarms that are on."""
        found = self.aws.client("cloudwatch").describe_alarms(
            AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        states = {
            each["AlarmName"]: each["StateValue"]
            for each in [*found["MetricAlarms"], *found["CompositeAlarms"]]
        }
        return {key for key, name in self.alarms.items() if states[name] == "ALARM"}

    def until(self, key: str, minutes: int) -> int:
        """After how many minutes an alarm is on."""
        for passed in range(1, minutes + 1):
            self.minute()
            if key in self.on():
                return passed
        raise AssertionError(f"{key} is off after {minutes} minutes; on are {self.on()}")

    def policy(self, document: dict[str, Any] | None) -> None:
        """The interface endpoint's policy, by default the one that allows everything."""
        ec2 = self.aws.client("ec2")
        (link,) = (
            found["VpcEndpointId"]
            for found in ec2.describe_vpc_endpoints()["VpcEndpoints"]
            if found["ServiceName"].endswith("sagemaker.runtime")
        )
        change = {"PolicyDocument": json.dumps(document)} if document else {"ResetPolicy": True}
        ec2.modify_vpc_endpoint(VpcEndpointId=link, **change)

    def refused(self) -> dict[str, float]:
        """By zone, whether the last run was refused."""
        metrics = self.aws.client("cloudwatch")
        now = self.aws.runtime_time()
        return {
            zone: metrics.get_metric_statistics(
                Namespace=NAMESPACE,
                MetricName=PUBLISHED["refused"],
                Dimensions=[
                    {"Name": "EndpointName", "Value": self.endpoint},
                    {"Name": "Zone", "Value": zone},
                ],
                StartTime=now - 2 * MINUTE,
                EndTime=now,
                Period=60,
                Statistics=["Maximum"],
            )["Datapoints"][-1]["Maximum"]
            for zone in ZONES
        }

    def rest(self) -> None:
        """All is well again, and nothing is on."""
        for zone in ZONES:
            self.aws.set_path(zone)
        self.aws.set_names("zone")
        for _ in range(6):
            self.minute()
        assert self.on() == set()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    options = RuntimeOptions(
        clock_speed=0, clock_start=(NOON + MINUTE / 2).timestamp(), interfaces_stay=0
    )
    out = tmp_path_factory.mktemp("canary")
    stack = stack_in(out, "Canary")
    network = network_in(stack)
    link = RuntimePrivateLink(stack, "Link", network=network)
    endpoint = endpoint_in(stack, variant_of(model_in(stack, network)))
    link.serve(endpoint.name_in(link))
    canary = ZoneCanary(
        stack,
        "Canary",
        endpoint=endpoint,
        private_link=link,
        network=network,
        options=CanaryOptions(
            payload=WarmUpPayload(text="hello"), zone_difference=Duration.millis(200)
        ),
        actions=[SnsAction(sns.Topic(stack, "OnCall"))],
    )
    ids = {
        key: stack.resolve(alarm.node.default_child.logical_id)  # type: ignore[union-attr]
        for key, alarm in [*canary.alarms.items(), ("page", canary.composites[""])]
    }
    assembly = synthesised(stack)
    with LocalAws.in_process(region="us-east-1", runtime=options) as aws:
        aws.reset()
        aws.add_image(f"{REGISTRY}/model:1")
        deployed = deploy_template(aws, assembly, "Canary", timeout=100)
        (called,) = aws.client("sagemaker").list_endpoints()["Endpoints"]
        names = {key: deployed.resources[each] for key, each in ids.items()}
        yield World(aws, deployed, called["EndpointName"], names)
        aws.reset()


def test_twenty_milliseconds_on_one_zones_path_are_told_within_three_minutes(world):
    world.rest()
    world.aws.set_path("use1-az2", delay_ms=20)
    assert world.until("path/use1-az2", 3) <= 3
    assert world.on() == {"path/use1-az2", "page"}
    (alarm,) = world.aws.client("cloudwatch").describe_alarms(
        AlarmNames=[world.alarms["path/use1-az2"]]
    )["MetricAlarms"]
    assert "connecting from use1-az2 takes more than 10 ms" in alarm["AlarmDescription"]


def test_a_lost_zone_is_told(world):
    world.rest()
    world.aws.set_path("use1-az1", lost=True)
    assert world.until("unreachable/use1-az1", 6) == 5
    assert world.on() == {"unreachable/use1-az1", "page"}


def test_a_policy_that_denies_the_callers_of_a_zone_pages(world):
    """What they get is an answer, and none that they can use."""
    world.rest()
    (zonal,) = (
        role["Arn"]
        for role in world.aws.client("iam").list_roles()["Roles"]
        if "CanaryZoneuse1az1" in role["RoleName"]
    )
    everything = {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}
    denied = {
        **everything,
        "Effect": "Deny",
        "Condition": {"ArnEquals": {"aws:PrincipalArn": zonal}},
    }
    world.policy({"Version": "2012-10-17", "Statement": [everything, denied]})
    try:
        assert world.until("unreachable/use1-az1", 6) == 5
        assert world.on() == {"unreachable/use1-az1", "page"}
        assert world.refused() == {"use1-az1": 1.0, "use1-az2": 0.0}
    finally:
        world.policy(None)


def test_a_name_that_answers_from_another_zone_is_found_and_pages_nobody(world):
    world.rest()
    world.aws.set_names("round robin")
    world.until("out-of-zone/use1-az1", 5)
    world.until("out-of-zone/use1-az2", 5)
    assert world.on() == {"out-of-zone/use1-az1", "out-of-zone/use1-az2"}


def test_a_canary_that_is_silent_is_a_zone_without_answers(world):
    """As where the zone that it runs in is lost, and the canary with it."""
    world.rest()
    events = world.aws.client("events")
    rules = [rule["Name"] for rule in events.list_rules()["Rules"]]
    silent = next(name for name in rules if "use1az1" in name)
    events.disable_rule(Name=silent)
    try:
        for _ in range(6):
            assert len(world.aws.run_schedules()) == 1
            world.aws.advance(60)
            world.aws.evaluate_alarms(at=world.aws.runtime_time())
        assert world.on() == {"unreachable/use1-az1", "page"}
    finally:
        events.enable_rule(Name=silent)


def test_metrics_that_come_two_minutes_late_are_no_silence(world):
    world.rest()
    world.aws.evaluate_alarms(at=world.aws.runtime_time() + 2 * MINUTE)
    assert world.on() == set()


def test_what_the_functions_print_is_in_the_log_and_never_the_payload(world):
    world.rest()
    logs = world.aws.client("logs")
    groups = [
        name for key, name in world.stack.resources.items() if key.startswith("CanaryZone")
        and "Logs" in key
    ]  # fmt: skip
    assert len(groups) == 2
    for group in groups:
        events = logs.filter_log_events(logGroupName=group)["events"]
        lines = [event["message"] for event in events if '"canary"' in event["message"]]
        assert lines
        assert not [line for line in lines if "hello" in line]
        line = json.loads(lines[-1])
        assert [path.get("error") for path in line["paths"].values()] == [None, None]
        assert [path["status"] for path in line["paths"].values()] == [200, 200]
        for path in line["paths"].values():
            assert path["told"]["x-amzn-invoked-production-variant"] == "primary"


def healthy(metric: str, noise: random.Random) -> float:
    """One minute of a path that is well: our assumption, since AWS publishes no numbers.

    Connecting takes half a millisecond to three, and one minute in a thousand a retransmission, a
    second later. Answers have the long tail of a model.
    """
    if metric == PUBLISHED["connect"]:
        return 1000.0 if noise.random() < 0.001 else noise.lognormvariate(0, 0.5)
    if metric == PUBLISHED["answer"]:
        return 40 * noise.lognormvariate(0, 0.5)
    return float(metric == PUBLISHED["unreachable"] and noise.random() < 0.001)


@pytest.mark.parametrize("days", [1, pytest.param(7, marks=pytest.mark.nightly)])
def test_healthy_minutes_raise_no_alarm(world, days):
    """Each alarm as it was deployed, over 10,080 minutes of a week."""
    world.rest()
    cloudwatch = world.aws.client("cloudwatch")
    minutes = days * 24 * 60
    begin = NOON - timedelta(days=days + 1)
    end = begin + minutes * MINUTE  # before all that the other tests did
    noise = random.Random(days)
    pending: list[dict[str, Any]] = []
    for zone in ZONES:
        (watched,) = cloudwatch.describe_alarms(AlarmNames=[world.alarms[f"path/{zone}"]])[
            "MetricAlarms"
        ]
        pending += [
            {
                "MetricName": metric,
                "Dimensions": watched["Dimensions"],
                "Timestamp": begin + minute * MINUTE,
                "Value": healthy(metric, noise),
            }
            for minute in range(minutes)
            for metric in PUBLISHED.values()
        ]
    for at in range(0, len(pending), 1000):
        cloudwatch.put_metric_data(Namespace=NAMESPACE, MetricData=pending[at : at + 1000])
    world.aws.evaluate_alarms(at=end, since=begin + 6 * MINUTE)
    history = [
        item
        for key, name in world.alarms.items()
        if key != "page"
        for item in cloudwatch.describe_alarm_history(
            AlarmName=name, HistoryItemType="StateUpdate", StartDate=begin, EndDate=end
        )["AlarmHistoryItems"]
        if "to ALARM" in item["HistorySummary"]
    ]
    assert history == []
    (judged,) = cloudwatch.describe_alarms(AlarmNames=[world.alarms["unreachable/use1-az1"]])[
        "MetricAlarms"
    ]
    assert judged["StateValue"] == "OK"  # were nothing published, it would be silence
