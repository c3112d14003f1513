"""Which instance takes a request: the rule alone, and through a deployed endpoint."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from botocore.exceptions import ClientError
from hosting_site import taking
from hypothesis import given
from hypothesis import strategies as st

from local_sagemaker import LocalAwsError
from local_sagemaker.admission import credentials_at
from local_sagemaker.connections import new_client
from local_sagemaker.runtime.routing import Routing, choose_instance, prefix_key

LOR = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
ENHANCED = {"EnableEnhancedMetrics": True}


@dataclass(eq=False)
class Fake:
    id: str
    outstanding: list[int] = field(default_factory=lambda: [0])


@given(
    counts=st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2), min_size=1, max_size=8),
    router=st.integers(0, 1),
    seed=st.integers(),
)
def test_least_outstanding_takes_one_with_the_fewest_its_router_sees(counts, router, seed):
    fakes = [Fake(str(n), pair) for n, pair in enumerate(counts)]
    routing = Routing("LEAST_OUTSTANDING_REQUESTS")
    chosen = choose_instance(fakes, routing, router, b"", random.Random(seed))
    assert chosen.outstanding[router] == min(pair[router] for pair in counts)


def test_least_outstanding_breaks_ties_evenly():
    fakes = [Fake(str(n)) for n in range(4)]
    routing, generator = Routing("LEAST_OUTSTANDING_REQUESTS"), random.Random(3)
    found = Counter(choose_instance(fakes, routing, 0, b"", generator).id for _ in range(4000))
    assert len(found) == 4
    assert all(850 < count < 1150 for count in found.values())  # 1000 +- 5 deviations of 27


def test_random_is_uniform_whatever_is_outstanding():
    fakes = [Fake(str(n), [n * 100]) for n in range(5)]
    generator = random.Random(5)
    found = Counter(choose_instance(fakes, Routing(), 0, b"", generator).id for _ in range(10000))
    # Chi-squared with 4 degrees of freedom exceeds 18.5 once in a thousand times.
    assert sum((found[f.id] - 2000) ** 2 / 2000 for f in fakes) < 18.5


class TestPrefixAware:
    routing = Routing("PREFIX_AWARE", prefix_length=1024, concurrency_threshold=2)

    def choose(self, fakes, body, prefix_id=""):
        key = prefix_key(self.routing, body, prefix_id)
        return choose_instance(fakes, self.routing, 0, key, random.Random())

    def test_same_prefix_same_instance(self):
        fakes = [Fake(str(n)) for n in range(6)]
        bodies = [b"s" * 1024 + str(n).encode() for n in range(50)]
        assert len({self.choose(fakes, body).id for body in bodies}) == 1

    def test_prefixes_spread(self):
        fakes = [Fake(str(n)) for n in range(4)]
        found = Counter(self.choose(fakes, str(n).encode()).id for n in range(400))
        assert min(found.values()) > 60  # 100 +- 5 deviations of 8.7

    def test_prefix_id_tells_applications_apart(self):
        fakes = [Fake(str(n)) for n in range(8)]
        assert len({self.choose(fakes, b"same", str(n)).id for n in range(40)}) > 3

    def test_an_instance_that_goes_moves_only_its_own_prefixes(self):
        fakes = [Fake(str(n)) for n in range(5)]
        bodies = [str(n).encode() for n in range(200)]
        before = {body: self.choose(fakes, body).id for body in bodies}
        after = {body: self.choose(fakes[1:], body).id for body in bodies}
        assert all(after[b] == before[b] for b in bodies if before[b] != "0")

    def test_beyond_the_threshold_to_the_least_busy_of_the_others(self):
        fakes = [Fake(str(n), [1]) for n in range(4)]
        home = self.choose(fakes, b"x")
        home.outstanding[0] = 2
        idle = next(fake for fake in fakes if fake is not home)
        idle.outstanding[0] = 0
        assert self.choose(fakes, b"x") is idle


def test_least_outstanding_avoids_a_slow_instance_and_random_does_not(site):
    # With least outstanding the slow instance holds what it is given longer than all other requests
    # take on a busy machine, so that its share does not depend on the machine.
    slower = {"random": 15.0, "lor": 500.0}
    servers = {
        name: taking(0.004, concurrency=2, slow_instances={0: factor})
        for name, factor in slower.items()
    }
    here, shares = site(servers), {}
    for name, routing in (("random", {"RoutingStrategy": "RANDOM"}), ("lor", LOR)):
        endpoint = here.endpoint(
            {"InitialInstanceCount": 4, "RoutingConfig": routing, "ModelName": here.model(name)},
            MetricsConfig=ENHANCED,
        )
        here.invoke_many(endpoint, 160, at_once=6)
        counts = here.by_instance(endpoint)
        assert sum(counts) == 160
        shares[name] = counts[0] / 160
    assert shares["random"] > 0.12  # a quarter each; even the least of four is seldom below
    # Two at a time and every two seconds two more, of 160.
    assert shares["lor"] < 0.10


def test_several_routers_see_only_their_own(served):
    most = {}
    for routers in (1, 4):
        variant = {"InitialInstanceCount": 4, "RoutingConfig": LOR}
        here, name = served(variant, model=taking(0.3, concurrency=9), routers=routers)
        for _ in range(3):
            here.invoke_many(name, 4, at_once=4)
            here.aws.advance(10)
        found = here.statistics(name, "ConcurrentRequestsPerModel", "Maximum", "Minimum")
        most[routers] = found
    # One router deals four requests to four instances; four blind ones do so once in ten times.
    assert most[1] == {"Maximum": 1.0, "Minimum": 1.0}
    assert most[4]["Maximum"] > 1


def test_weights_target_variant_and_a_change_of_weights(served):
    here, name = served(
        {"VariantName": "a", "InitialVariantWeight": 3.0},
        {"VariantName": "b", "InitialVariantWeight": 1.0},
    )
    found = Counter(here.invoke(name)["InvokedProductionVariant"] for _ in range(200))
    assert 25 < found["b"] < 75  # 50 +- 4 deviations of 6.1
    assert here.invoke(name, TargetVariant="b")["InvokedProductionVariant"] == "b"
    here.aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=name, DesiredWeightsAndCapacities=[{"VariantName": "a", "DesiredWeight": 0.0}]
    )
    here.settled(name)
    assert {here.invoke(name)["InvokedProductionVariant"] for _ in range(20)} == {"b"}
    with pytest.raises(ClientError, match=r"ValidationError.*Variant c of endpoint"):
        here.invoke(name, TargetVariant="c")


def test_a_session_stays_on_its_instance(served):
    here, name = served({"InitialInstanceCount": 4}, MetricsConfig=ENHANCED)
    session = here.invoke(name, SessionId="NEW_SESSION")["NewSessionId"]
    for _ in range(30):
        here.invoke(name, SessionId=session)
    assert max(here.by_instance(name)) == 31
    with pytest.raises(ClientError, match="ValidationError"):
        here.invoke(name, SessionId="unknown")


def test_zones_have_listeners_of_their_own(served):
    here, name = served({"InitialInstanceCount": 4})
    zones = here.aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    first = zones[0]
    url = here.aws.runtime_url(first["ZoneName"])
    assert url == here.aws.runtime_url(first["ZoneId"])
    host = f"vpce-0a-1b-{first['ZoneName']}.runtime.sagemaker.us-east-1.vpce.amazonaws.com"
    assert url == here.aws.runtime_url(host)
    assert len({url, here.aws.runtime_url(), here.aws.runtime_url(zones[1]["ZoneId"])}) == 3

    client = new_client("sagemaker-runtime", "us-east-1", url, credentials_at(here.aws.url))
    assert client.invoke_endpoint(EndpointName=name, Body=b"here")["Body"].read() == b"here"
    with pytest.raises(LocalAwsError, match="us-east-1 has no zone euw1-az1"):
        here.aws.runtime_url("euw1-az1")


@pytest.mark.parametrize(
    ("instances", "affinity", "own"), [(4, True, True), (4, False, False), (1, True, False)]
)
def test_a_zones_own_instances_may_be_preferred(served, instances, affinity, own):
    variant = {"InitialInstanceCount": instances}
    here, name = served(variant, MetricsConfig=ENHANCED, zone_affinity=affinity)
    url = here.aws.runtime_url("us-east-1b")  # one instance is in us-east-1a
    client = new_client("sagemaker-runtime", "us-east-1", url, credentials_at(here.aws.url))
    for _ in range(20):
        client.invoke_endpoint(EndpointName=name, Body=b"")
    place = {"AvailabilityZone": "us-east-1b", "InstanceType": "ml.c7i.xlarge"}
    found = here.statistics(name, "Invocations", "Sum", Region="us-east-1", **place)
    assert (found == {"Sum": 20}) is own
