"""Reads from the account what a step keeps; changes nothing there."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, ip_address
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.canary import read_canary

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
    """The stack once CloudFormation has finished what it is doing with it."""
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
    found = cast(Document, find_stack(world, stack_name(suffix)))
    (value,) = [o["OutputValue"] for o in found["Outputs"] if o["OutputKey"] == "Told"]
    return dict(json.loads(value))


def stack_events(world: World, stack_id: str, after: str = "") -> list[Document]:
    """The stack's events, oldest first, since the one with an ID."""
    client, found = world.client("cloudformation"), list[Document]()
    for event in pages_of(client, "describe_stack_events", "StackEvents", StackName=stack_id):
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
    capture = bool(found.get("DataCaptureConfig", {}).get("EnableCapture"))
    return {
        "status": found["EndpointStatus"],
        "configuration": configuration,
        "configuration_exists": exists,
        "capture": capture,
        "arn_is_lower_case": found["EndpointArn"].islower(),
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
    # The names in ARNs are lower case.
    return [kind for kind, name in endpoints.items() if name.lower() in named]


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


def interfaces(world: World, group: str) -> list[str]:
    """The IDs of the network interfaces that a security group is on."""
    of_group = [{"Name": "group-id", "Values": [group]}]
    found = pages_of(
        world.client("ec2"), "describe_network_interfaces", "NetworkInterfaces", Filters=of_group
    )
    return [interface["NetworkInterfaceId"] for interface in found]


@contextmanager
def _repeated(
    world: World, note: Callable[[int], None], *, every: float, at_least: float
) -> Iterator[None]:
    """Note something at once, again and again while a block lasts, and once more at its end.

    The pause, and the seconds since the beginning that are told, are by the target's clock.
    """
    stop, began = threading.Event(), datetime.now(UTC)

    def now() -> None:
        note(round((datetime.now(UTC) - began).total_seconds() * world.speed))

    def repeat() -> None:
        while not stop.wait(max(every / world.speed, at_least)):
            now()

    thread = threading.Thread(target=repeat, daemon=True)
    now()
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        now()


@contextmanager
def watch(world: World, look: Callable[[], Any]) -> Iterator[list[Document]]:
    """Look every 15 seconds while a block lasts, and keep what has changed."""
    seen: list[Document] = []

    def note(seconds: int) -> None:
        try:
            found = look()
        except ClientError as error:
            found = {"error": error.response["Error"]["Code"]}
        if not seen or seen[-1]["saw"] != found:
            seen.append({"after_seconds": seconds, "saw": found})

    with _repeated(world, note, every=_EVERY, at_least=0.2):
        yield seen


@contextmanager
def calls_in_vpc(
    world: World, suffix: str, endpoints: Mapping[str, str], request: Mapping[str, Any]
) -> Iterator[list[Document]]:
    """Call endpoints from inside the VPC, again and again, and keep every answer with its time.

    Each record has the answers to one round of calls; whether the new endpoint was in service
    before them; and what the stack did after them, so that a round which found CloudFormation's
    clean-up not begun was made before it.
    """
    zones, records = told(world, suffix)["zones"], list[Document]()
    probe = zones[min(zones)]["probe"]
    event = json.dumps({"each": endpoints, "request": request}).encode()

    def note(seconds: int) -> None:
        try:
            new = serving(world, endpoints["new"])
            got = world.client("lambda").invoke(FunctionName=probe, Payload=event)
            answers = json.loads(got["Payload"].read())
            stack = find_stack(world, stack_name(suffix))
        except (BotoCoreError, ClientError) as error:  # of who looks, not of who is called
            records.append({"not_asked": type(error).__name__})
            return
        if "FunctionError" in got:
            records.append({"not_asked": got["FunctionError"]})
            return
        records.append(
            {
                "after_seconds": seconds,
                "answers": answers,
                "new_in_service": new is not None and new["status"] == "InService",
                "stack": stack["StackStatus"] if stack else "",
            }
        )

    with _repeated(world, note, every=_BETWEEN_CALLS, at_least=0.05):
        yield records


def metrics(world: World, endpoint: str) -> list[Document]:
    """Every metric of the endpoint: its name and its dimensions."""
    client = world.client("cloudwatch")
    of_endpoint = [{"Name": "EndpointName", "Value": endpoint}]
    found = []
    for namespace in _NAMESPACES:
        for metric in pages_of(
            client, "list_metrics", "Metrics", Namespace=namespace, Dimensions=of_endpoint
        ):
            dimensions = {entry["Name"]: entry["Value"] for entry in metric["Dimensions"]}
            found.append({"metric": metric["MetricName"], "dimensions": dimensions})
    return found


def invocations(world: World, endpoint: str, configuration: str) -> Document:
    """Invocations by minute: of the whole endpoint, and of one configuration's fleet."""
    named = {
        "EndpointName": endpoint,
        "VariantName": "primary",
        "EndpointConfigName": configuration,
    }
    fleet = [{"Name": name, "Value": value} for name, value in named.items()]
    metric = {"Namespace": "AWS/SageMaker", "MetricName": "Invocations"}
    return {
        name: _values(world, {**metric, "Dimensions": dimensions})
        for name, dimensions in (("whole", fleet[:2]), ("new", fleet))
    }


def _values(world: World, metric: Document) -> list[tuple[str, float]]:
    # Wide on both sides: the clock of a local AWS may run ahead of this machine's.
    now = datetime.now(UTC)
    chosen = {k: metric[k] for k in ("Namespace", "MetricName", "Dimensions")}
    query = {"Id": "m", "MetricStat": {"Metric": chosen, "Period": 60, "Stat": "Sum"}}
    answer = world.client("cloudwatch").get_metric_data(
        StartTime=now - timedelta(hours=12),
        EndTime=now + timedelta(hours=24),
        ScanBy="TimestampAscending",
        MetricDataQueries=[query],
    )["MetricDataResults"][0]
    return [(_moment(t), v) for t, v in zip(answer["Timestamps"], answer["Values"], strict=True)]


def alarms(world: World, stack: str) -> list[Document]:
    """The first endpoint's alarms: definition, state, and what they did."""
    cloudwatch, found = world.client("cloudwatch"), []
    # A composite alarm's name, unlike a metric alarm's, does not begin with the stack's.
    names = [
        each["PhysicalResourceId"].rpartition(":alarm:")[2]
        for each in _resources(world, stack)
        if each["ResourceType"] in _ALARMS and each["LogicalResourceId"].startswith("Endpoint")
    ]
    for kind in ("MetricAlarm", "CompositeAlarm"):
        for alarm in pages_of(
            cloudwatch, "describe_alarms", f"{kind}s", AlarmNames=names, AlarmTypes=[kind]
        ):
            named = {"AlarmName": alarm["AlarmName"], "AlarmTypes": [kind]}
            history = pages_of(cloudwatch, "describe_alarm_history", "AlarmHistoryItems", **named)
            found.append(
                {
                    "alarm": alarm["AlarmName"],
                    "kind": kind,
                    "state": alarm["StateValue"],
                    "definition": {k: alarm[k] for k in alarm.keys() & _DEFINITION},
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
    client, key = world.client("cloudformation"), "StackResourceSummaries"
    return pages_of(client, "list_stack_resources", key, StackName=stack)


_ALARMS = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
_DEFINITION = {
    *("MetricName", "Namespace", "Dimensions", "Statistic", "ExtendedStatistic", "Period"),
    *("Metrics", "EvaluationPeriods", "DatapointsToAlarm", "Threshold", "ComparisonOperator"),
    *("TreatMissingData", "AlarmRule", "ActionsSuppressor", "AlarmActions"),
}


def messages(world: World, queue: str) -> list[Document]:
    """What a queue holds; reading leaves it there."""
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


def canary(world: World, endpoint: str) -> Document:
    """What the canary in each zone has seen in the last quarter of an hour; empty without runs."""
    end = datetime.now(UTC)
    window = (end - timedelta(minutes=15), end, timedelta(minutes=1))
    readings = read_canary(Account(world.client, world.region), endpoint, *window)
    return {
        each.zone: {
            "runs": len(each.unreachable),
            "unreachable": each.unreachable.sum,
            "out_of_zone": each.out_of_zone.sum,
            "connect_ms": each.connect.median,
            "answer_ms": each.answer.median,
        }
        for each in readings
        if each.unreachable
    }


def probes(world: World, suffix: str) -> Document:
    """What names answer in each zone, whose addresses these are, and who served the calls."""
    outputs, ec2 = told(world, suffix), world.client("ec2")
    subnets = {
        zone: ec2.describe_subnets(SubnetIds=[each["subnet"]])["Subnets"][0]
        for zone, each in outputs["zones"].items()
    }
    networks = {zone: IPv4Network(subnet["CidrBlock"]) for zone, subnet in subnets.items()}

    def zone_of(address: str) -> str:
        """The client zone in whose subnet an address lies."""
        found = (z for z, network in networks.items() if ip_address(address) in network)
        return next(found, "elsewhere")

    found: Document = {}
    for zone, each in outputs["zones"].items():
        event = {
            "names": {"regional": outputs["regional"], "zonal": each["zonal"]},
            "endpoint": stack_name(suffix),
            "foreign": "llee-accept-no-such-endpoint",
            "calls": 20,
        }
        payload = json.dumps(event).encode()
        answer = world.client("lambda").invoke(FunctionName=each["probe"], Payload=payload)
        document = json.loads(answer["Payload"].read())
        for name in document.get("names", {}).values():
            if isinstance(name.get("dns"), list):
                name["dns"] = [{"address": a, "in": zone_of(a)} for a in name["dns"]]
            if "invoked" in name:
                served = Counter[str]()
                for addresses, number in name["invoked"].pop("served").items():
                    zones = {zone_of(a) for a in addresses.split()} - {"elsewhere"}
                    served[" ".join(sorted(zones)) or "unknown"] += number
                name["invoked"]["served_in"] = dict(served)
        found[zone] = {
            **document,
            "subnet_zone_id": subnets[zone].get("AvailabilityZoneId", ""),
            "subnet_zone_name_as_output": subnets[zone]["AvailabilityZone"] == each["zone_name"],
        }
    return found


def _moment(moment: datetime) -> str:
    return str(moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
