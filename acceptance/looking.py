"""What a step writes down: read from the account, never changed, still with its names."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, ip_address
from types import TracebackType
from typing import Any, Self

from botocore.exceptions import BotoCoreError, ClientError

from .app import stack_name
from .world import World

Document = dict[str, Any]
_NAMESPACES = ("AWS/SageMaker", "/aws/sagemaker/Endpoints")
_EVERY = 15.0
_BETWEEN_CALLS = 2.0


def pages_of(client: Any, operation: str, key: str, **arguments: Any) -> Iterator[Any]:
    """Every entry of a listing, over all of its pages."""
    if not client.can_paginate(operation):
        yield from getattr(client, operation)(**arguments).get(key, [])
        return
    for page in client.get_paginator(operation).paginate(**arguments):
        yield from page.get(key, [])


def find_stack(world: World, name: str) -> Document | None:
    """The stack by name, or by ID once it is deleted; None when there never was one."""
    cloudformation = world.client("cloudformation")
    try:
        found: Document = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    return found


def settled(world: World, name: str) -> Document | None:
    """The stack once nothing works on it: what a killed run began, CloudFormation finishes."""
    while (found := find_stack(world, name)) and found["StackStatus"].endswith("_IN_PROGRESS"):
        world.wait(_EVERY)
    return found


def usable(world: World, name: str) -> Document | None:
    """The stack once it can be updated: a rollback that failed is continued, as updates.md says.

    CloudFormation's rollback updates the endpoint, which SageMaker has taken back already; should
    AWS refuse that, what it was refused for is skipped.
    """
    found = settled(world, name)
    if found is None or found["StackStatus"] != "UPDATE_ROLLBACK_FAILED":
        return found
    skipped: set[str] = set()
    for event in reversed(stack_events(world, found["StackId"])):
        if event["status"] == "UPDATE_ROLLBACK_IN_PROGRESS":
            break
        if event["status"] == "UPDATE_FAILED":
            skipped.add(event["resource"])
    world.client("cloudformation").continue_update_rollback(
        StackName=found["StackId"], ResourcesToSkip=sorted(skipped)
    )
    return settled(world, name)


def told(world: World, suffix: str) -> Document:
    """The stack's one output."""
    found = find_stack(world, stack_name(suffix))
    assert found is not None
    (value,) = [o["OutputValue"] for o in found["Outputs"] if o["OutputKey"] == "Told"]
    return dict(json.loads(value))


def stack_events(world: World, stack_id: str, after: str = "") -> list[Document]:
    """The stack's events, oldest first, since the one with an ID."""
    found = []
    for event in pages_of(
        world.client("cloudformation"), "describe_stack_events", "StackEvents", StackName=stack_id
    ):
        if event["EventId"] == after:
            break
        found.append(
            {
                "id": event["EventId"],
                "resource": event["LogicalResourceId"],
                "physical": event.get("PhysicalResourceId", ""),
                "type": event["ResourceType"],
                "status": event["ResourceStatus"],
                "reason": event.get("ResourceStatusReason", ""),
                "at": _moment(event["Timestamp"]),
            }
        )
    return found[::-1]


def serving(world: World, endpoint: str) -> Document | None:
    """The endpoint as DescribeEndpoint tells it; None when there is none."""
    sagemaker = world.client("sagemaker")
    try:
        found = sagemaker.describe_endpoint(EndpointName=endpoint)
    except ClientError as error:
        if "Could not find" in error.response["Error"]["Message"]:
            return None
        raise
    configuration = found["EndpointConfigName"]
    try:
        sagemaker.describe_endpoint_config(EndpointConfigName=configuration)
        exists = True
    except ClientError:
        exists = False
    return {
        "status": found["EndpointStatus"],
        "configuration": configuration,
        "configuration_exists": exists,
        "failure_reason": found.get("FailureReason", ""),
        "variants": [
            {
                "current": v.get("CurrentInstanceCount"),
                "desired": v.get("DesiredInstanceCount"),
                "capture": bool(found.get("DataCaptureConfig", {}).get("EnableCapture")),
            }
            for v in found.get("ProductionVariants", [])
        ],
    }


def staged_model(world: World, endpoint: str, prefixes: Mapping[str, str]) -> Document:
    """Of which commit the files are that an endpoint serves, and how many there are of each.

    ``prefixes`` are keys in the models' bucket that files of a commit begin with.
    """
    sagemaker = world.client("sagemaker")
    configuration = sagemaker.describe_endpoint(EndpointName=endpoint)["EndpointConfigName"]
    (variant,) = sagemaker.describe_endpoint_config(EndpointConfigName=configuration)[
        "ProductionVariants"
    ]
    model = sagemaker.describe_model(ModelName=variant["ModelName"])
    uri = model["PrimaryContainer"]["ModelDataSource"]["S3DataSource"]["S3Uri"]
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    s3 = world.client("s3")
    return {
        "served": [kind for kind, begins in prefixes.items() if prefix.startswith(begins)],
        "isolated": bool(model.get("EnableNetworkIsolation")),
        "files": {
            kind: len(list(pages_of(s3, "list_objects_v2", "Contents", Bucket=bucket, Prefix=each)))
            for kind, each in prefixes.items()
        },
    }


def link_policy_names(world: World, suffix: str, endpoints: Mapping[str, str]) -> list[str]:
    """Which of some endpoints (kind to name) the interface endpoint's policy names."""
    (link,) = world.client("ec2").describe_vpc_endpoints(
        VpcEndpointIds=[told(world, suffix)["interface_endpoint"]]
    )["VpcEndpoints"]
    named = {
        resource.rpartition(":endpoint/")[2]
        for statement in json.loads(link["PolicyDocument"])["Statement"]
        for resource in _listed(statement.get("Resource", []))
    }
    return [kind for kind, name in endpoints.items() if name in named]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def role_policies(world: World, role: str) -> dict[str, str]:
    """A role's inline policies by name, each as JSON."""
    iam = world.client("iam")
    return {
        name: json.dumps(
            iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"], sort_keys=True
        )
        for name in pages_of(iam, "list_role_policies", "PolicyNames", RoleName=role)
    }


def interfaces(world: World, group: str) -> list[Document]:
    """The network interfaces that a security group is on."""
    found = pages_of(
        world.client("ec2"),
        "describe_network_interfaces",
        "NetworkInterfaces",
        Filters=[{"Name": "group-id", "Values": [group]}],
    )
    return [
        {
            "interface": each["NetworkInterfaceId"],
            "status": each["Status"],
            "kind": each.get("InterfaceType", ""),
        }
        for each in found
    ]


class _Repeated:
    """Notes something at once, again and again while a block lasts, and once more at its end.

    The pause between two notes is by the target's clock.
    """

    def __init__(self, world: World, *, every: float, at_least: float) -> None:
        self._world = world
        self._pause = max(every / world.speed, at_least)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._began = datetime.now(UTC)

    def __enter__(self) -> Self:
        self._note()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._note()

    def _repeat(self) -> None:
        while not self._stop.wait(self._pause):
            self._note()

    def _seconds(self) -> int:
        """Seconds since the beginning, by the target's clock."""
        return round((datetime.now(UTC) - self._began).total_seconds() * self._world.speed)

    def _note(self) -> None:
        raise NotImplementedError


class Watch(_Repeated):
    """Looks every 15 seconds while a block lasts, and keeps what has changed."""

    def __init__(self, world: World, look: Callable[[], Any]) -> None:
        super().__init__(world, every=_EVERY, at_least=0.2)
        self._look = look
        self.seen: list[Document] = []

    def _note(self) -> None:
        try:
            found = self._look()
        except ClientError as error:
            found = {"error": error.response["Error"]["Code"]}
        if not self.seen or self.seen[-1]["saw"] != found:
            self.seen.append({"after_seconds": self._seconds(), "saw": found})


class Calls(_Repeated):
    """Calls endpoints from inside the VPC, again and again, and keeps every answer with its time.

    Each record has the answers to one round of calls; whether the new endpoint was in service
    before them; and what the stack did after them, so that a round which found CloudFormation's
    clean-up not begun was made before it.
    """

    def __init__(
        self, world: World, suffix: str, endpoints: Mapping[str, str], request: Mapping[str, Any]
    ) -> None:
        zones = told(world, suffix)["zones"]
        super().__init__(world, every=_BETWEEN_CALLS, at_least=0.05)
        self._stack, self._endpoints = stack_name(suffix), endpoints
        self._probe = zones[min(zones)]["probe"]
        self._event = json.dumps({"each": endpoints, "request": request}).encode()
        self.records: list[Document] = []

    def _note(self) -> None:
        try:
            new = serving(self._world, self._endpoints["new"])
            passed = self._seconds()
            told = self._world.client("lambda").invoke(
                FunctionName=self._probe, Payload=self._event
            )
            answers = json.loads(told["Payload"].read())
            stack = find_stack(self._world, self._stack)
        except (BotoCoreError, ClientError) as error:  # of who looks, not of who is called
            self.records.append({"not_asked": type(error).__name__})
            return
        if "FunctionError" in told:
            self.records.append({"not_asked": told["FunctionError"]})
            return
        self.records.append(
            {
                "after_seconds": passed,
                "answers": answers,
                "new_in_service": new is not None and new["status"] == "InService",
                "stack": stack["StackStatus"] if stack else "",
            }
        )


def metrics(world: World, endpoint: str) -> list[Document]:
    """Every metric of the endpoint: its dimensions, its first and last minute with data."""
    cloudwatch = world.client("cloudwatch")
    listed = [
        metric
        for namespace in _NAMESPACES
        for metric in pages_of(
            cloudwatch,
            "list_metrics",
            "Metrics",
            Namespace=namespace,
            Dimensions=[{"Name": "EndpointName", "Value": endpoint}],
        )
    ]
    found = []
    for metric in listed:
        data = _values(world, metric, "SampleCount")
        found.append(
            {
                "namespace": metric["Namespace"],
                "metric": metric["MetricName"],
                "dimensions": {d["Name"]: d["Value"] for d in metric["Dimensions"]},
                "first": data[0][0] if data else None,
                "last": data[-1][0] if data else None,
            }
        )
    return sorted(found, key=lambda each: json.dumps(each, sort_keys=True))


def invocations(world: World, endpoint: str, configuration: str) -> Document:
    """Invocations by minute: of the whole endpoint, and of one configuration's fleet."""
    common = [
        {"Name": "EndpointName", "Value": endpoint},
        {"Name": "VariantName", "Value": "primary"},
    ]
    fleet = [*common, {"Name": "EndpointConfigName", "Value": configuration}]
    return {
        name: _values(
            world,
            {"Namespace": "AWS/SageMaker", "MetricName": "Invocations", "Dimensions": dimensions},
            "Sum",
        )
        for name, dimensions in (("whole", common), ("new", fleet))
    }


def _values(world: World, metric: Document, statistic: str) -> list[tuple[str, float]]:
    # Wide on both sides: the clock of a local AWS may run ahead of this machine's.
    now = datetime.now(UTC)
    chosen = {k: metric[k] for k in ("Namespace", "MetricName", "Dimensions")}
    answer = world.client("cloudwatch").get_metric_data(
        StartTime=now - timedelta(hours=12),
        EndTime=now + timedelta(hours=24),
        ScanBy="TimestampAscending",
        MetricDataQueries=[
            {"Id": "m", "MetricStat": {"Metric": chosen, "Period": 60, "Stat": statistic}}
        ],
    )["MetricDataResults"][0]
    return [(_moment(t), v) for t, v in zip(answer["Timestamps"], answer["Values"], strict=True)]


def alarms(world: World, stack: str, part: str = "Endpoint") -> list[Document]:
    """The alarms of one part of the stack: definition, state, and what they did."""
    cloudwatch, found = world.client("cloudwatch"), []
    # A composite alarm's name, unlike a metric alarm's, does not begin with the stack's.
    names = [
        each["PhysicalResourceId"].rpartition(":alarm:")[2]
        for each in _resources(world, stack)
        if each["ResourceType"] in _ALARMS and each["LogicalResourceId"].startswith(part)
    ]
    for kind in ("MetricAlarm", "CompositeAlarm"):
        for alarm in pages_of(
            cloudwatch, "describe_alarms", f"{kind}s", AlarmNames=names, AlarmTypes=[kind]
        ):
            history = pages_of(
                cloudwatch,
                "describe_alarm_history",
                "AlarmHistoryItems",
                AlarmName=alarm["AlarmName"],
                AlarmTypes=[kind],
            )
            found.append(
                {
                    "alarm": alarm["AlarmName"],
                    "kind": kind,
                    "state": alarm["StateValue"],
                    "definition": {k: alarm[k] for k in _DEFINITION if k in alarm},
                    "history": [
                        {
                            "at": _moment(h["Timestamp"]),
                            "kind": h["HistoryItemType"],
                            "what": h["HistorySummary"],
                        }
                        for h in history
                        if h["HistoryItemType"] != "ConfigurationUpdate"
                    ],
                }
            )
    return sorted(found, key=lambda each: str(each["alarm"]))


def _resources(world: World, stack: str) -> Iterator[Document]:
    return pages_of(
        world.client("cloudformation"),
        "list_stack_resources",
        "StackResourceSummaries",
        StackName=stack,
    )


_ALARMS = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
_DEFINITION = (
    "MetricName",
    "Namespace",
    "Dimensions",
    "Statistic",
    "ExtendedStatistic",
    "Period",
    "Metrics",
    "EvaluationPeriods",
    "DatapointsToAlarm",
    "Threshold",
    "ComparisonOperator",
    "TreatMissingData",
    "AlarmRule",
    "ActionsSuppressor",
    "AlarmActions",
)


def messages(world: World, queue: str) -> list[Document]:
    """What a queue holds; it stays there, so that a run that is killed finds it again."""
    sqs = world.client("sqs")
    found: dict[str, str] = {}
    while True:
        got = sqs.receive_message(
            QueueUrl=queue,
            MaxNumberOfMessages=10,
            VisibilityTimeout=2,
            WaitTimeSeconds=int(5 / world.speed),  # else a few of a queue's servers are asked
        ).get("Messages", [])
        new = {m["MessageId"]: m["Body"] for m in got if m["MessageId"] not in found}
        if not new:
            return [_message(body) for body in found.values()]
        found |= new


def _message(body: str) -> Document:
    document = json.loads(body)
    inner = document.get("Message")
    return dict(json.loads(inner)) if isinstance(inner, str) else dict(document)


def warm_ups(world: World, stack_id: str, endpoint: str) -> list[Document]:
    """The reports that an endpoint's warm-up has logged, oldest first."""
    logs, found = world.client("logs"), []
    groups = [
        _LOG_GROUPS[resource["ResourceType"]] + resource["PhysicalResourceId"]
        for resource in _resources(world, stack_id)
        if resource["ResourceType"] in _LOG_GROUPS
    ]
    for group in groups:
        try:
            entries = list(pages_of(logs, "filter_log_events", "events", logGroupName=group))
        except logs.exceptions.ResourceNotFoundException:
            continue
        for entry in entries:
            for line in entry["message"].splitlines():
                if line.startswith("{") and '"warm-up"' in line:
                    found.append((entry["timestamp"], json.loads(line)))
    return [
        report
        for _, report in sorted(found, key=lambda each: str(each[0]))
        if report.get("event") == "warm-up" and report.get("endpoint") == endpoint
    ]


# Of each type what goes before the physical ID: a function without a group of its own has that one.
_LOG_GROUPS = {"AWS::Logs::LogGroup": "", "AWS::Lambda::Function": "/aws/lambda/"}


def probes(world: World, suffix: str, calls: int = 20) -> Document:
    """What names answer in each zone, whose addresses these are, and who served the calls."""
    outputs, ec2 = told(world, suffix), world.client("ec2")
    subnets = {
        zone: ec2.describe_subnets(SubnetIds=[each["subnet"]])["Subnets"][0]
        for zone, each in outputs["zones"].items()
    }
    networks: dict[str, IPv4Network] = {
        zone: IPv4Network(subnet["CidrBlock"]) for zone, subnet in subnets.items()
    }

    def zone_of(address: str) -> str:
        """The client zone in whose subnet an address lies."""
        where = ip_address(address)
        return next(
            (zone for zone, network in networks.items() if where.version == 4 and where in network),
            "elsewhere",
        )

    found: Document = {}
    for zone, each in outputs["zones"].items():
        event = {
            "names": {"regional": outputs["regional"], "zonal": each["zonal"]},
            "endpoint": stack_name(suffix),
            "foreign": "llee-accept-no-such-endpoint",
            "calls": calls,
        }
        answer = world.client("lambda").invoke(
            FunctionName=each["probe"], Payload=json.dumps(event).encode()
        )
        document = json.loads(answer["Payload"].read())
        for name in document.get("names", {}).values():
            if isinstance(name.get("dns"), list):
                name["dns"] = [{"address": a, "in": zone_of(a)} for a in name["dns"]]
            if "invoked" in name:
                by = name["invoked"].pop("served")
                zones = [sorted({zone_of(a) for a in key.split()} - {"elsewhere"}) for key in by]
                name["invoked"]["served_in"] = {
                    " ".join(z) or "unknown": sum(
                        n for k, n in zip(zones, by.values(), strict=True) if k == z
                    )
                    for z in zones
                }
        found[zone] = {
            **document,
            "subnet_zone_id": subnets[zone].get("AvailabilityZoneId", ""),
            "subnet_zone_name_as_output": subnets[zone]["AvailabilityZone"] == each["zone_name"],
        }
    return found


def _moment(moment: datetime) -> str:
    return str(moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
