"""Each change of ``docs/how-to/everyday-changes.md``, deployed in the local AWS and taken back.

Without warm-ups, whose requests take real time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.demo_surroundings import model_uris, stand_ins_for_images, uploaded
from local_sagemaker import DeployedStack, LocalAws, RuntimeOptions, deploy_template
from low_latency_endpoint import LowLatencyEndpointStack
from low_latency_endpoint.settings import load_settings
from tests.deploy.small_stacks import ACCOUNT, REGION, app_in
from tests.everyday_changes import PAGE, SHIPPED, changes_of, merged

pytestmark = pytest.mark.realtime
CHANGES = changes_of(PAGE.read_text("utf-8"))
STACK, NAME = SHIPPED["stack_name"], "sentiment"
#: What SageMaker refuses, and what it refuses to take back: the page says both.
REFUSED, REFUSED_BACK = "type", "type-2"
Deploy = Callable[[dict[str, Any]], DeployedStack]


@pytest.fixture
def aws() -> Iterator[LocalAws]:
    """One for each change, as some leave a stack that cannot be updated."""
    options = RuntimeOptions(clock_speed=600.0, seed=1, interfaces_stay=0)
    with LocalAws.in_process(region=REGION, runtime=options) as running:
        running.reset()
        yield running
        running.reset()


@pytest.fixture
def deploy(aws: LocalAws, tmp_path: Path) -> Deploy:
    """Deploy settings as they are, but for warm-up, on-call topic and account."""

    def run(settings: dict[str, Any]) -> DeployedStack:
        values = copy.deepcopy(settings)
        values["account"] = ACCOUNT
        del values["alarm_topic_arn"]
        for endpoint in values["endpoints"].values():
            endpoint.pop("warm_up", None)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        file = folder / "endpoint.yaml"
        file.write_text(yaml.safe_dump(values), "utf-8")
        app = app_in(folder)
        LowLatencyEndpointStack.from_settings(app, file)
        app.synth()
        stated = load_settings(file)
        list(stand_ins_for_images(aws, stated))
        with uploaded(aws, model_uris(stated)):
            template = folder / f"{STACK}.template.json"
            patient = template.read_text("utf-8")
            template.write_text(patient.replace("= 57 * 60, 20 * 60", "= 57 * 60, 1"), "utf-8")
            return deploy_template(aws, folder, STACK, expect_failure=True, timeout=200)

    return run


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_deployed_and_taken_back(name: str, deploy: Deploy) -> None:
    before, after = CHANGES[name]
    assert deploy(before).status == "CREATE_COMPLETE"
    changed = deploy(after)
    if name == REFUSED:
        assert changed.status == "UPDATE_ROLLBACK_FAILED"
        return
    assert changed.status == "UPDATE_COMPLETE", changed.failure_reason
    back = deploy(before)
    if name == REFUSED_BACK:
        assert back.status == "UPDATE_ROLLBACK_FAILED"
        return
    assert back.status == "UPDATE_COMPLETE", back.failure_reason


def test_weights_by_hand_stay_until_a_deployment_updates_the_endpoint(
    aws: LocalAws, deploy: Deploy
) -> None:
    before, after = CHANGES["weights"]
    deploy(before)
    sagemaker = aws.client("sagemaker")
    weights = {"primary": 1.0, "challenger": 0.0}
    sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=NAME,
        DesiredWeightsAndCapacities=[
            {"VariantName": variant, "DesiredWeight": weight} for variant, weight in weights.items()
        ],
    )
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=NAME, WaiterConfig={"Delay": 0.1, "MaxAttempts": 600}
    )
    assert current_weights(aws) == weights
    deploy(after)
    assert current_weights(aws) == {"primary": 5.0, "challenger": 5.0}


def current_weights(aws: LocalAws) -> dict[str, float]:
    described = aws.client("sagemaker").describe_endpoint(EndpointName=NAME)
    return {
        variant["VariantName"]: variant["CurrentWeight"]
        for variant in described["ProductionVariants"]
    }


def test_a_minimum_by_hand_stays_until_a_deployment_changes_the_range(
    aws: LocalAws, deploy: Deploy
) -> None:
    """docs/how-to/an-alarm-went-off.md."""
    deploy(SHIPPED)
    scaling = aws.client("application-autoscaling")
    target = {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "ResourceId": f"endpoint/{NAME}/variant/primary",
    }
    scaling.register_scalable_target(**target, MinCapacity=10)

    def minimum() -> int:
        (found,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")[
            "ScalableTargets"
        ]
        return int(found["MinCapacity"])

    deploy(stated(alarms={"cpu_utilization": 60}))
    assert minimum() == 10
    deploy(stated(instances={"max": 30}))
    assert minimum() == 2
    deploy(stated(instances={"min": 10, "max": 30}))
    assert minimum() == 10


def stated(**options: Any) -> dict[str, Any]:
    return merged(SHIPPED, {"endpoints": {NAME: options}})
