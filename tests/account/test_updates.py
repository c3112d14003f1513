"""What DescribeEndpoint says of a change that is under way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from low_latency_endpoint.account.endpoints import DeployedEndpoint

BEGUN = datetime(2026, 11, 20, 3, 42, tzinfo=UTC)


def described(status: str, **pending: Any) -> DeployedEndpoint:
    """An endpoint of the configuration ``old``, with what is said to come."""
    answer: dict[str, Any] = {
        "EndpointName": "sentiment",
        "EndpointConfigName": "old",
        "EndpointStatus": status,
    }
    if pending:
        variant = {"VariantName": "primary", "VariantStatus": [{"Status": pending.pop("Stage")}]}
        answer["PendingDeploymentSummary"] = {**pending, "ProductionVariants": [variant]}
    return DeployedEndpoint(answer, {})


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("Updating", "updating to new since 03:42 (Baking)"),
        ("SystemUpdating", "under SageMaker's maintenance since 03:42 (Baking)"),
        ("RollingBack", "rolling back from new since 03:42 (Baking)"),
    ],
)
def test_an_update_says_what_comes_and_since_when(status: str, words: str) -> None:
    endpoint = described(status, EndpointConfigName="new", StartTime=BEGUN, Stage="Baking")
    assert endpoint.configuration_name == "old"
    assert endpoint.update is not None
    assert endpoint.update.words == words
    assert list(endpoint.update.variants) == ["primary"]


def test_a_roll_back_is_one_although_nothing_more_is_told() -> None:
    update = described("RollingBack").update
    assert update is not None
    assert update.words == "rolling back"


def test_maintenance_is_an_update_although_nothing_more_is_told() -> None:
    """Instances are replaced, and no setting is changed."""
    update = described("SystemUpdating").update
    assert update is not None
    assert update.by_aws
    assert update.words == "under SageMaker's maintenance"


def test_a_roll_back_begins_after_the_update() -> None:
    turned = BEGUN + timedelta(minutes=7)
    pending = {"EndpointConfigName": "new", "StartTime": BEGUN, "Stage": "Updating"}
    endpoint = described("RollingBack", **pending)
    (variant,) = endpoint.description["PendingDeploymentSummary"]["ProductionVariants"]
    variant["VariantStatus"][0]["StartTime"] = turned
    assert endpoint.update is not None
    assert endpoint.update.begun == turned


@pytest.mark.parametrize("status", ["InService", "Updating", "Failed", "OutOfService"])
def test_counts_that_change_are_no_update(status: str) -> None:
    """SageMaker calls an endpoint Updating while it scales, too."""
    assert described(status).update is None


def test_a_first_deployment_is_no_update() -> None:
    """PendingDeploymentSummary is there while an endpoint is created, too."""
    creating = described("Creating", EndpointConfigName="old", StartTime=BEGUN, Stage="Creating")
    assert creating.update is None
