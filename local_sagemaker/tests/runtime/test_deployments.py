"""Creating and updating endpoints whose instances have to start; traffic, baking, rollback."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from alarms_under_test import dimensions, put_alarm
from botocore.exceptions import ClientError
from hosting_site import rolling, taking
from signed_requests import signed

from local_sagemaker.model_servers import SimulatedModelServer

SERVERS = {
    "model": taking(0.0),
    "next": taking(0.0),
    "failing": taking(0.0, failure_share=1.0),
    "sick": SimulatedModelServer(ping_status=500),
    "cold": taking(0.0, cold_start=100.0),
}
CANARY = {
    "Type": "CANARY",
    "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1},
    "WaitIntervalInSeconds": 300,
}
LINEAR = {
    "Type": "LINEAR",
    "LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": 25},
    "WaitIntervalInSeconds": 60,
}
AT_ONCE = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
UNHEALTHY = (
    "The primary container for production variant primary did not pass the ping health check. "
    "Please check CloudWatch logs for this endpoint."
)


def blue_green(routing: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing, **policy}}


@pytest.fixture
def here(site):
    return site(SERVERS)


@pytest.fixture
def telling(site):
    """Where the reason of a rollback stays beside InService."""
    return site(SERVERS, keeps_failure_reason=True)


def begin(here: Any, name: str, server: str, count: int = 4, **deployment: Any) -> str:
    """Begin an update to another model; the name of the new configuration."""
    config = here.config({"ModelName": here.model(server), "InitialInstanceCount": count})
    here.update(name, config, **deployment)
    return config


def fates(here: Any, name: str, count: int) -> Counter[str]:
    """Send requests; how many were answered by which fleet (the new one fails)."""
    found: Counter[str] = Counter()
    url = urlsplit(here.aws.client("sagemaker-runtime").meta.endpoint_url)
    headers = signed(here.aws.exports()["AWS_ACCESS_KEY_ID"], "sagemaker")
    # By hand, as boto3 takes several times as long as the endpoint.
    with closing(HTTPConnection(url.netloc, timeout=60)) as connection:
        for _ in range(count):
            connection.request("POST", f"/endpoints/{name}/invocations", b"{}", headers)
            answer = connection.getresponse()
            answer.read()
            code = answer.headers.get("x-amzn-ErrorType")
            found[{None: "old", "ModelError": "new"}.get(code, str(code))] += 1
    return found


def baking(here: Any, name: str) -> dict[str, Any]:
    """Wait until a deployment bakes; what is pending."""

    def is_baking(found: dict[str, Any]) -> bool:
        variants = found.get("PendingDeploymentSummary", {}).get("ProductionVariants") or [{}]
        return variants[0].get("VariantStatus", [{}])[0].get("Status") == "Baking"

    return here.until(name, is_baking)["PendingDeploymentSummary"]


# ----------------------------------------------------------------------------------------- creation


def test_creation_waits_for_ping(here):
    name = here.endpoint({"ModelName": here.model("cold"), "InitialInstanceCount": 2}, wait=False)
    found = here.described(name)
    assert found["EndpointStatus"] == "Creating"
    assert found["ProductionVariants"][0]["VariantStatus"][0]["Status"] == "Creating"
    assert found["ProductionVariants"][0]["CurrentInstanceCount"] == 0
    here.aws.advance(90)
    assert here.described(name)["EndpointStatus"] == "Creating"
    here.aws.advance(20)
    found = here.settled(name)
    assert found["EndpointStatus"] == "InService"
    assert found["ProductionVariants"][0]["CurrentInstanceCount"] == 2


@pytest.mark.parametrize("server", ["sick", "cold"])
def test_creation_fails_when_the_container_is_not_healthy_in_time(here, server):
    name = here.endpoint(
        {"ModelName": here.model(server), "ContainerStartupHealthCheckTimeoutInSeconds": 60},
        wait=False,
    )
    here.aws.advance(40)
    assert here.described(name)["EndpointStatus"] == "Creating"
    here.aws.advance(30)
    found = here.settled(name)
    assert (found["EndpointStatus"], found["FailureReason"]) == ("Failed", UNHEALTHY)
    with pytest.raises(ClientError, match=r"ValidationError.*not found"):
        here.invoke(name)
    # API reference: "DeleteEndpoint is the only operation that can be performed on a failed
    # endpoint."
    with pytest.raises(ClientError, match="Cannot update failed endpoint"):
        here.aws.client("sagemaker").update_endpoint(
            EndpointName=name, EndpointConfigName=found["EndpointConfigName"]
        )
    assert log_groups(here, name) == [f"/aws/sagemaker/Endpoints/{name}"]
    here.aws.client("sagemaker").delete_endpoint(EndpointName=name)


def log_groups(here: Any, name: str) -> list[str]:
    prefix = f"/aws/sagemaker/Endpoints/{name}"
    found = here.aws.client("logs").describe_log_groups(logGroupNamePrefix=prefix)
    return [group["logGroupName"] for group in found["logGroups"]]


VLLM = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.30.0-gpu-py312-cu130-ubuntu24.04"


@pytest.mark.parametrize(
    ("instance_type", "ami", "starts"),
    [
        ("ml.g6e.xlarge", None, False),
        ("ml.g6e.xlarge", "al2-ami-sagemaker-inference-gpu-3-1", False),
        ("ml.g6e.xlarge", "al2023-ami-sagemaker-inference-gpu-4-1", True),
        ("ml.g7e.2xlarge", None, True),  # nothing is known of its driver
    ],
)
def test_a_cuda_13_image_starts_on_its_driver_only(site, instance_type, ami, starts):
    here = site({"vllm": taking(0.0)})
    name = here.endpoint(
        {
            "ModelName": here.model(Image=VLLM),
            "InstanceType": instance_type,
            "ContainerStartupHealthCheckTimeoutInSeconds": 60,
            **({"InferenceAmiVersion": ami} if ami else {}),
        },
        wait=False,
    )
    if not starts:
        here.aws.advance(40)
        assert here.described(name)["EndpointStatus"] == "Creating"
        here.aws.advance(30)
    assert here.settled(name)["EndpointStatus"] == ("InService" if starts else "Failed")
    assert len(log_groups(here, name)) == starts


def test_nothing_else_may_be_done_meanwhile(here):
    name = here.endpoint({"ModelName": here.model("cold")}, wait=False)
    sagemaker = here.aws.client("sagemaker")
    for call in (
        lambda: begin(here, name, "next"),
        lambda: sagemaker.delete_endpoint(EndpointName=name),
        lambda: here.scale(name, 2),
    ):
        with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
            call()
    here.aws.advance(110)
    here.settled(name)


# ------------------------------------------------------------------------------------------ updates


def test_all_at_once_is_the_default(here):
    name = here.endpoint({"InitialInstanceCount": 2})
    config = begin(here, name, "failing")
    found = here.settled(name)
    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", config)
    assert found["ProductionVariants"][0]["CurrentInstanceCount"] == 4
    assert "PendingDeploymentSummary" not in found
    assert fates(here, name, 10) == {"new": 10}


def test_the_old_fleet_answers_until_the_new_one_is_healthy(here):
    name = here.endpoint()
    begin(here, name, "cold")
    found = here.until(name, lambda d: "PendingDeploymentSummary" in d)
    pending = found["PendingDeploymentSummary"]["ProductionVariants"][0]
    assert pending["VariantStatus"][0]["Status"] == "Creating"
    assert fates(here, name, 10) == {"old": 10}
    here.aws.advance(110)
    assert here.settled(name)["EndpointStatus"] == "InService"


def test_a_canary_takes_its_share_then_everything(here):
    name = here.endpoint({"InitialInstanceCount": 4})
    before = here.described(name)["EndpointConfigName"]
    config = begin(here, name, "failing", **blue_green(CANARY, TerminationWaitInSeconds=120))
    assert baking(here, name)["EndpointConfigName"] == config
    found = here.described(name)
    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("Updating", before)
    assert 70 < fates(here, name, 400)["new"] < 135  # a quarter: 100 +- 4 deviations of 8.7
    here.aws.advance(310)
    assert fates(here, name, 20) == {"new": 20}
    assert here.described(name)["EndpointStatus"] == "Updating"  # baking, then termination wait
    here.aws.advance(310)
    assert here.described(name)["EndpointStatus"] == "Updating"
    here.aws.advance(120)
    found = here.settled(name)
    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", config)
    assert "FailureReason" not in found


def test_linear_shifts_step_by_step(here):
    name = here.endpoint({"InitialInstanceCount": 4})
    begin(here, name, "failing", **blue_green(LINEAR))
    baking(here, name)
    shares = []
    for _ in range(4):
        shares.append(fates(here, name, 200)["new"] / 200)
        here.aws.advance(65)
    assert shares == [pytest.approx(e, abs=0.14) for e in (0.25, 0.5, 0.75, 1.0)]
    assert here.settled(name)["EndpointStatus"] == "InService"


def test_rolling_replaces_batch_by_batch(here):
    name = here.endpoint({"InitialInstanceCount": 4})
    half = {"Type": "CAPACITY_PERCENT", "Value": 50}
    policy = {"MaximumBatchSize": half, "WaitIntervalInSeconds": 100}
    config = begin(here, name, "failing", RollingUpdatePolicy=policy)
    baking(here, name)
    assert 60 < fates(here, name, 200)["new"] < 140
    here.aws.advance(105)
    assert fates(here, name, 20) == {"new": 20}
    here.aws.advance(105)
    assert here.settled(name)["EndpointConfigName"] == config


def test_a_fleet_that_does_not_start_is_rolled_back(telling):
    here = telling
    name = here.endpoint({"InitialInstanceCount": 2})
    before = here.described(name)["EndpointConfigName"]
    begin(here, name, "sick", **blue_green(AT_ONCE))
    here.aws.advance(300)
    found = here.settled(name)
    assert found["EndpointStatus"] == "InService"
    assert found["EndpointConfigName"] == before
    assert found["FailureReason"] == UNHEALTHY
    assert fates(here, name, 10) == {"old": 10}


class TestRollbackOnAnAlarm:
    def alarm(self, here, name, config):
        """An alarm that watches the new fleet alone."""
        new = dimensions(EndpointName=name, VariantName="primary", EndpointConfigName=config)
        put_alarm(
            here.aws.client("cloudwatch"),
            f"{name}-errors",
            "InvocationModelErrors",
            Namespace="AWS/SageMaker",
            Statistic="Sum",
            TreatMissingData="notBreaching",
            Dimensions=new,
        )
        return {"Alarms": [{"AlarmName": f"{name}-errors"}]}

    @pytest.mark.parametrize("policy", [blue_green(CANARY), rolling(1)], ids=["canary", "rolling"])
    @pytest.mark.parametrize(("server", "kept"), [("failing", False), ("next", True)])
    def test_it_comes_back_to_what_it_was(self, telling, policy, server, kept):
        here = telling
        name = here.endpoint({"InitialInstanceCount": 4})
        before = here.described(name)["EndpointConfigName"]
        config = here.config({"ModelName": here.model(server), "InitialInstanceCount": 4})
        alarms = self.alarm(here, name, config)
        here.to_full_minute()
        here.update(name, config, **policy, AutoRollbackConfiguration=alarms)
        baking(here, name)
        found = fates(here, name, 60)
        here.aws.advance(60)
        if kept:
            assert found == {"old": 60}
            assert here.described(name)["EndpointStatus"] == "Updating"
            here.aws.advance(1300)
            assert here.settled(name)["EndpointConfigName"] == config
            return
        assert 0 < found["new"] < 40
        described = here.settled(name)
        assert described["EndpointStatus"] == "InService"
        assert described["EndpointConfigName"] == before
        assert described["FailureReason"] == (
            f"The deployment was rolled back: alarm(s) [{name}-errors] in ALARM state."
        )
        assert fates(here, name, 20) == {"old": 20}
        here.invoke(name)
        assert described["ProductionVariants"][0]["CurrentInstanceCount"] == 4

    def test_the_new_fleet_has_metrics_of_its_own(self, here):
        name = here.endpoint({"InitialInstanceCount": 4})
        config = begin(here, name, "failing", **blue_green(CANARY))
        baking(here, name)
        found = fates(here, name, 80)
        own = here.statistics(name, "Invocations", "Sum", EndpointConfigName=config)
        assert own == {"Sum": found["new"]}
        assert here.statistics(name, "Invocations", "Sum") == {"Sum": 80}
        here.aws.advance(700)

    @pytest.mark.parametrize("from_create", [True, False])
    def test_its_metrics_last(self, site, from_create):
        """After the deployment, for good; AWS does not say whether the first fleet has them."""
        here = site(SERVERS, configuration_metrics_from_create=from_create)
        name = here.endpoint()
        first = here.described(name)["EndpointConfigName"]
        here.invoke_many(name, 3)
        own = here.statistics(name, "Invocations", "Sum", EndpointConfigName=first)
        assert own == ({"Sum": 3} if from_create else {})
        config = begin(here, name, "next")
        assert here.settled(name)["EndpointConfigName"] == config
        here.aws.advance(3600)
        here.invoke_many(name, 5)
        assert here.statistics(name, "Invocations", "Sum", EndpointConfigName=config) == {"Sum": 5}
        assert here.statistics(name, "Invocations", "Sum") == {"Sum": 8}


def test_a_deployment_that_takes_too_long_is_rolled_back(telling):
    here = telling
    name = here.endpoint({"InitialInstanceCount": 4})
    before = here.described(name)["EndpointConfigName"]
    slow = {**CANARY, "WaitIntervalInSeconds": 900}
    begin(here, name, "next", **blue_green(slow, MaximumExecutionTimeoutInSeconds=600))
    baking(here, name)
    here.aws.advance(700)
    found = here.settled(name)
    assert found["EndpointConfigName"] == before
    assert "longer than it may" in found["FailureReason"]


class TestRollbackNeedsRoom:
    """Of four instances three are new when the alarm goes off, so three have to come back.

    AWS's RollingUpdatePolicy: without RollbackMaximumBatchSize "the default value will be set to
    100% of total capacity which means to bring up the whole capacity of the old fleet at once".
    """

    def rolled_back(self, site, room, back):
        here = site(SERVERS, instance_limit=room, keeps_failure_reason=True)
        name = here.endpoint({"InitialInstanceCount": 4})
        config = here.config({"ModelName": here.model("failing"), "InitialInstanceCount": 4})
        alarms = TestRollbackOnAnAlarm().alarm(here, name, config)
        here.to_full_minute()
        here.update(name, config, **rolling(1, back), AutoRollbackConfiguration=alarms)
        for _ in range(2):
            baking(here, name)
            here.aws.advance(305)
        baking(here, name)
        assert fates(here, name, 40)["new"] > 15
        here.aws.advance(120)
        return here, name, here.settled(name)

    @pytest.mark.parametrize(
        ("room", "back"),
        [
            (5, 1),  # the fleet and one batch
            (6, 2),
            (7, None),  # what is new stays until all that was old is back
            (7, 4),
        ],
    )
    def test_with_room_the_old_fleet_comes_back(self, site, room, back):
        here, name, found = self.rolled_back(site, room, back)
        assert found["EndpointStatus"] == "InService"
        assert "in ALARM state" in found["FailureReason"]
        assert fates(here, name, 20) == {"old": 20}

    @pytest.mark.parametrize(("room", "back"), [(6, None), (5, 2), (6, 4)])
    def test_without_room_the_endpoint_stays_a_mixture(self, site, room, back):
        here, name, found = self.rolled_back(site, room, back)
        assert found["EndpointStatus"] == "UpdateRollbackFailed"
        assert "InsufficientInstanceCapacity" in found["FailureReason"]
        assert set(fates(here, name, 60)) == {"old", "new"}
        # The next deployment ends the mixture.
        config = begin(here, name, "next", **rolling(1, 1))
        here.aws.advance(1300)
        found = here.settled(name)
        assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", config)

    def test_a_second_fleet_needs_room_too(self, site):
        here = site(SERVERS, instance_limit=7, keeps_failure_reason=True)
        name = here.endpoint({"InitialInstanceCount": 4})
        before = here.described(name)["EndpointConfigName"]
        begin(here, name, "next")
        found = here.settled(name)
        assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", before)
        assert "InsufficientInstanceCapacity" in found["FailureReason"]
        assert fates(here, name, 10) == {"old": 10}


@pytest.mark.parametrize(
    ("size", "back", "problem"),
    [
        (("CAPACITY_PERCENT", 4), None, "MaximumBatchSize"),
        (("CAPACITY_PERCENT", 51), None, "MaximumBatchSize"),
        (("INSTANCE_COUNT", 3), None, "MaximumBatchSize"),  # of four instances
        (("CAPACITY_PERCENT", 5), None, ""),
        (("CAPACITY_PERCENT", 50), ("CAPACITY_PERCENT", 100), ""),
        (("INSTANCE_COUNT", 2), ("INSTANCE_COUNT", 4), ""),
        (("INSTANCE_COUNT", 2), ("CAPACITY_PERCENT", 101), "RollbackMaximumBatchSize"),
    ],
)
def test_sizes_of_rolling_batches(here, size, back, problem):
    def sized(found):
        return dict(zip(("Type", "Value"), found, strict=True))

    name = here.endpoint({"InitialInstanceCount": 4})
    policy = {
        "MaximumBatchSize": sized(size),
        "WaitIntervalInSeconds": 0,
        **({"RollbackMaximumBatchSize": sized(back)} if back else {}),
    }
    if problem:
        with pytest.raises(ClientError, match=f"ValidationException.*{problem} "):
            begin(here, name, "next", RollingUpdatePolicy=policy)
    else:
        config = begin(here, name, "next", RollingUpdatePolicy=policy)
        assert here.settled(name)["EndpointConfigName"] == config


@pytest.mark.parametrize("replaced", [False, True], ids=["scaled in", "replaced"])
def test_no_request_is_lost_whatever_happens_to_the_fleet(site, replaced):
    model = taking(0.05, concurrency=4)
    here = site({"model": model, "next": model})
    name = here.endpoint({"InitialInstanceCount": 4})
    here.invoke(name)
    with ThreadPoolExecutor(9) as pool:
        sent = [pool.submit(here.invoke, name, b"x") for _ in range(8)]
        if replaced:
            change = pool.submit(begin, here, name, "next", 1)
        else:
            change = pool.submit(here.scale, name, 1)
        sent += [pool.submit(here.invoke, name, b"x") for _ in range(40)]
        assert {one.result()["Body"] for one in sent} == {b"x"}
        change.result()
    assert here.settled(name)["ProductionVariants"][0]["CurrentInstanceCount"] == 1
