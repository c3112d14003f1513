"""Functions in a VPC reach SageMaker Runtime by the interface endpoint's names, as paths are set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from roles_under_test import HOSTING, allow, give_role
from stacks_under_test import zip_of

from local_sagemaker import LocalAws, LocalAwsError

SERVICE = "com.amazonaws.us-east-1.sagemaker.runtime"
PRIVATE = "runtime.sagemaker.us-east-1.amazonaws.com"
ZONES = ("us-east-1a", "us-east-1b")

PROBE = """
import http.client, socket, time

real_sleep = time.sleep

def handler(event, context):
    if not event.get("wait"):
        time.sleep = slept.append
    return [probed(name, event.get("timeout", 5)) for name in event["names"]]

slept = []

def probed(name, timeout):
    slept.clear()
    began, told = time.monotonic(), {}
    try:
        found = socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM)
        told["addresses"] = [entry[4][0] for entry in found]
        connection = http.client.HTTPConnection(name, 443, timeout=timeout)
        connection.connect()
        told["port"] = connection.sock.getpeername()[1]
        told["connect"], told["slept"] = time.monotonic() - began, [*slept]
        told["exchanges"], began = [], time.monotonic()
        for _ in range(2):
            slept.clear()
            connection.request("POST", "/endpoints/none/invocations", b"x")
            answer = connection.getresponse()
            told["status"], told["error"] = answer.status, answer.read().decode()
            told["exchanges"].append([*slept])
        told["exchanging"] = time.monotonic() - began
    except OSError as error:
        told.update(error=type(error).__name__, slept=[*slept])
    return told
"""


class World:
    """A VPC with a subnet in each of two zones, and the probe in the first one's."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws, self.ec2 = aws, aws.client("ec2")
        self.role = give_role(
            aws, "probe", *HOSTING, allow("sagemaker:InvokeEndpoint"), services=("lambda",)
        )
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.ec2.modify_vpc_attribute(VpcId=self.vpc, EnableDnsHostnames={"Value": True})
        self.subnets = [self.subnet(number, zone) for number, zone in enumerate(ZONES)]
        self.inside, self.around = self.group("functions"), self.group("endpoint")
        self.let(self.around, UserIdGroupPairs=[{"GroupId": self.inside}])
        self.function("probe", PROBE, self.subnets[0])

    def subnet(self, number: int, zone: str) -> str:
        made = self.ec2.create_subnet(
            VpcId=self.vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=zone
        )
        return str(made["Subnet"]["SubnetId"])

    def group(self, name: str) -> str:
        made = self.ec2.create_security_group(VpcId=self.vpc, GroupName=name, Description=name)
        return str(made["GroupId"])

    def let(self, group: str, port: int = 443, **others: Any) -> None:
        rule = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, **others}
        self.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])

    def function(self, name: str, code: str, *subnets: str) -> None:
        network = {"SubnetIds": list(subnets), "SecurityGroupIds": [self.inside]}
        self.aws.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.12",
            Handler="index.handler",
            Timeout=60,
            Role=self.role,
            Code={"ZipFile": zip_of(code)},
            **({"VpcConfig": network} if subnets else {}),
        )

    def endpoint(self, *subnets: str, private: bool = True, groups: Any = ()) -> list[str]:
        """Make the interface endpoint; gives its names: regional, zonal by zone, private."""
        made = self.ec2.create_vpc_endpoint(
            VpcId=self.vpc,
            ServiceName=SERVICE,
            VpcEndpointType="Interface",
            SubnetIds=list(subnets or self.subnets),
            SecurityGroupIds=[*(groups or [self.around])],
            PrivateDnsEnabled=private,
        )
        names = [entry["DnsName"] for entry in made["VpcEndpoint"]["DnsEntries"]]
        zonal = sorted(name for name in names[1:] if name.startswith("vpce-"))
        return [names[0], *zonal, *(name for name in names if name.startswith("runtime."))][:4]

    def run(self, name: str, event: Any) -> Any:
        answer = self.aws.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event))
        assert "FunctionError" not in answer, answer["Payload"].read()
        return json.loads(answer["Payload"].read())

    def probe(self, *names: str, **event: Any) -> Any:
        return self.run(event.pop("by", "probe"), {"names": names, **event})

    def addresses(self) -> dict[str, str]:
        """Give the addresses of the endpoint's network interfaces by zone."""
        cards = self.ec2.describe_network_interfaces()["NetworkInterfaces"]
        return {card["AvailabilityZone"]: card["PrivateIpAddress"] for card in cards}

    def port(self, zone: str) -> int:
        return int(self.aws.runtime_url(zone).rpartition(":")[2])


@pytest.fixture
def world(aws: LocalAws) -> Iterator[World]:
    aws.reset()
    yield World(aws)
    aws.reset()


def test_zonal_names_lead_to_their_zone_and_regional_ones_to_the_functions_own(world):
    regional, in_a, in_b, private = world.endpoint()
    assert private == PRIVATE
    found = world.probe(regional, in_a, in_b, private)
    a, b = (world.addresses()[zone] for zone in ZONES)
    assert [each["addresses"] for each in found] == [[a], [a], [b], [a]]
    ports = {address: world.port(zone) for zone, address in world.addresses().items()}
    assert [each["port"] for each in found] == [ports[a], ports[a], ports[b], ports[a]]
    # The runtime's own refusal of a request without a signature: it takes requests to these names.
    assert {each["status"] for each in found} == {403}
    assert {json.loads(each["error"])["message"] for each in found} == {
        json.loads(found[0]["error"])["message"]
    }
    assert "Missing Authentication Token" in found[0]["error"]


CALLER = """
import boto3, os
def handler(event, context):
    url = event.get("url", os.environ["AWS_ENDPOINT_URL"])
    runtime = boto3.client("sagemaker-runtime", endpoint_url=url)
    try:
        runtime.invoke_endpoint(EndpointName="none", Body=b"x")
    except runtime.exceptions.ClientError as error:
        return error.response["Error"]["Message"]
"""


def test_boto3_signs_for_a_zonal_name_and_still_reaches_the_local_aws(world):
    _, _, in_b, _ = world.endpoint()
    world.function("caller", CALLER, world.subnets[0])
    world.aws.set_path("us-east-1a", lost=True)
    for event in ({"url": f"http://{in_b}:443"}, {}):
        assert "none" in world.run("caller", event)


def test_a_delay_is_in_the_connect_and_in_each_exchange_of_its_zone_only(world):
    _, in_a, in_b, private = world.endpoint()
    (zone,) = world.ec2.describe_availability_zones(ZoneNames=["us-east-1b"])["AvailabilityZones"]
    world.aws.set_path(zone["ZoneId"], delay_ms=20)
    found = world.probe(in_a, in_b, private)
    assert [each["slept"] for each in found] == [[0.0], [0.02], [0.0]]
    assert [each["exchanges"] for each in found] == [[[0.0]] * 2, [[0.02]] * 2, [[0.0]] * 2]
    world.aws.set_path("us-east-1b")
    assert world.probe(in_b)[0]["slept"] == [0.0]


@pytest.mark.realtime
def test_a_delay_takes_its_time(world):
    _, in_a, in_b, _ = world.endpoint()
    world.aws.set_path("us-east-1b", delay_ms=200)
    tries = [world.probe(in_a, in_b, wait=True) for _ in range(3)]
    fast, slow = (min(tries, key=lambda each: each[n]["exchanging"])[n] for n in (0, 1))
    assert fast["connect"] < 0.2 <= slow["connect"]
    assert fast["exchanging"] < 0.2
    assert 0.4 <= slow["exchanging"] < 0.8


def test_a_delay_beyond_the_sockets_timeout_is_a_timeout(world):
    _, in_a, _, _ = world.endpoint()
    world.aws.set_path("us-east-1a", delay_ms=30_000)
    (found,) = world.probe(in_a, timeout=10)
    assert found["error"] == "TimeoutError"
    assert found["slept"] == [pytest.approx(10, abs=2)]


@pytest.mark.parametrize(("timeout", "waited"), [(5, 0.2), (0.05, 0.05), (None, 0.2)])
def test_connecting_to_a_lost_zone_times_out_soon(world, timeout, waited):
    _, in_a, in_b, private = world.endpoint()
    world.aws.set_path("us-east-1a", lost=True)
    lost, there, own = world.probe(in_a, in_b, private, timeout=timeout)
    assert (lost["error"], lost["slept"]) == ("TimeoutError", [waited])
    assert there["status"] == 403
    assert own["error"] == "TimeoutError"


def test_round_robin_gives_all_zones_in_any_order(world):
    regional, in_a, _, private = world.endpoint()
    world.aws.set_names("round robin")
    found = world.probe(in_a, *[regional] * 20, *[private] * 20)
    a, b = (world.addresses()[zone] for zone in ZONES)
    assert found[0]["addresses"] == [a]
    for of_name in (found[1:21], found[21:]):
        assert {tuple(each["addresses"]) for each in of_name} == {(a, b), (b, a)}
    world.aws.set_names("zone")
    assert world.probe(regional)[0]["addresses"] == [a]


def test_names_without_an_interface_do_not_resolve(world):
    """Not without any, not without private DNS, not for a zone that has none."""
    assert world.probe(PRIVATE)[0]["error"] == "gaierror"
    regional, in_b = world.endpoint(world.subnets[1], private=False)
    own, there, private, elsewhere = world.probe(
        regional, in_b, PRIVATE, in_b.replace("us-east-1b", "us-east-1a")
    )
    assert there["addresses"] == [world.addresses()["us-east-1b"]]
    # The function is in the other zone: "you may see DNS failures".
    assert own["error"] == private["error"] == elsewhere["error"] == "gaierror"
    world.aws.set_names("round robin")
    assert world.probe(regional)[0]["addresses"] == there["addresses"]


def test_security_groups_that_do_not_let_the_function_through_lose_it(world):
    closed = world.group("closed")
    _, in_a, _, _ = world.endpoint(groups=[closed])
    assert world.probe(in_a)[0]["error"] == "TimeoutError"
    world.let(closed, 80, IpRanges=[{"CidrIp": "10.0.0.0/16"}])
    world.let(closed, 443, IpRanges=[{"CidrIp": "10.0.1.0/24"}])
    assert world.probe(in_a)[0]["error"] == "TimeoutError"
    world.let(closed, 443, IpRanges=[{"CidrIp": "10.0.0.0/16"}])
    assert world.probe(in_a)[0]["status"] == 403
    everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    world.ec2.revoke_security_group_egress(GroupId=world.inside, IpPermissions=[everything])
    assert world.probe(in_a)[0]["error"] == "TimeoutError"


OUTSIDE = """
import socket
def handler(event, context):
    return [socket.getaddrinfo.__module__, socket.socket.connect.__objclass__.__name__]
"""


def test_outside_of_a_vpc_nothing_is_played(world):
    world.endpoint()
    world.function("outside", OUTSIDE)
    assert world.run("outside", {}) == ["socket", "socket"]


def test_a_reset_clears_paths_and_names(aws):
    aws.reset()
    aws.set_path("us-east-1a", lost=True)
    aws.set_names("round robin")
    aws.reset()
    world = World(aws)
    regional, _, _, _ = world.endpoint()
    (found,) = world.probe(regional)
    assert (len(found["addresses"]), found["status"]) == (1, 403)
    aws.reset()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda aws: aws.set_path("mars-1a"), "us-east-1 has no zone mars-1a"),
        (lambda aws: aws.set_path("us-east-1a", delay_ms=-1), "delay_ms must be from 0 to 60000"),
        (lambda aws: aws.set_path("us-east-1a", delay_ms=float("nan")), "delay_ms must be"),
        (lambda aws: aws.set_names("alphabetical"), "one of zone, round robin: alphabetical"),
    ],
)
def test_what_cannot_be_set_is_refused(aws, wrong, told):
    with pytest.raises(LocalAwsError, match=told):
        wrong(aws)
