"""Differences between template and account, by what is read of both."""

from __future__ import annotations

from typing import Any

import pytest

import low_latency_endpoint.account.drift as module
from low_latency_endpoint.account.drift import (
    TARGET,
    Drift,
    DriftedProperty,
    _policy_drift,
    differences,
    stated_targets,
)
from low_latency_endpoint.account.stacks import StackEndpoint

KIND = "TargetTrackingScalingPolicyConfiguration"
TRACKING = {"PredefinedMetricSpecification": {"PredefinedMetricType": "Tps"}, "TargetValue": 5.0}
MATH = {"CustomizedMetricSpecification": {"Metrics": []}, "TargetValue": 5.0}


def policy(name: str, configuration: dict[str, Any]) -> dict[str, Any]:
    return {"PolicyName": name, "PolicyType": "TargetTrackingScaling", KIND: configuration}


def test_a_place_in_a_list_is_no_part_of_a_propertys_name() -> None:
    """CloudTrail's request has the property's name, and the list as a whole."""
    changed = (DriftedProperty("AlarmActions[0]", "a", "b"), DriftedProperty("A.B[1].C", 1, 2))
    drift = Drift("AWS::CloudWatch::Alarm", "", "", "PutMetricAlarm", "alarm", changed)
    assert drift.properties == {"AlarmActions", "C"}


@pytest.mark.parametrize(
    ("stated", "found", "same"),
    [
        ("007", "7", False),
        ("1e3", "1000", False),
        ("1_0", "10", False),
        ("nan", "nan", True),
        (" 7", "7", False),
        ("7", "7", True),
        (7, 7.0, True),
        (7, "7", True),
        ("7", 7, True),
        (7, "8", False),
        (10, "1_0", False),
        (7, "\u0667", False),
        (0.45, "0.450", True),
        (1000, "1e3", True),
        (9007199254740993, "9007199254740992", False),
        (10**400, "1", False),
        (True, "true", True),
        (True, False, False),
    ],
)
def test_text_is_compared_as_text(stated: object, found: object, *, same: bool) -> None:
    """Of two texts nothing says that they are numbers; beside a number a text is one."""
    assert (not list(differences({"Name": stated}, {"Name": found}))) is same


@pytest.mark.parametrize(
    ("configuration", "live", "said"),
    [
        (TRACKING, policy("mine", TRACKING), []),
        (TRACKING, policy("another", {**TRACKING, "TargetValue": 9.0}), ["Tps: TargetValue is 9"]),
        # Neither metric has a name, which makes them no two of a kind.
        (MATH, policy("another", {**MATH, "TargetValue": 9.0}), ["mine is missing"]),
    ],
)
def test_a_policy_is_known_by_its_name_or_its_metric(
    configuration: dict[str, Any], live: dict[str, Any], said: list[str]
) -> None:
    drifts = list(
        _policy_drift(policy("mine", configuration), [live], "mine", "endpoint/e", "primary")
    )
    assert len(drifts) == len(said)
    for drift, words in zip(drifts, said, strict=True):
        assert words in drift.text
        put = live["PolicyName"] if drift.differences else "mine"
        assert f"--policy-name {put} " in drift.repair


def test_an_endpoint_has_no_target_of_one_whose_logical_id_begins_likewise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def target(endpoint: str) -> dict[str, Any]:
        name = {"Fn::GetAtt": [endpoint, "EndpointName"]}
        resource_id = {"Fn::Join": ["", ["endpoint/", name, "/variant/primary"]]}
        return {"Type": TARGET, "Properties": {"ResourceId": resource_id, "MaxCapacity": 4}}

    resources = {"A": target("Search2Endpoint"), "B": target("SearchEndpoint2Endpoint")}
    monkeypatch.setattr(module, "template_resources", lambda account, stack: resources)
    search = StackEndpoint("SearchEndpoint", "search", "", {}, {})
    account: Any = None
    assert stated_targets(account, "Stack", search) == {}
    resources["C"] = target("SearchEndpoint")
    assert list(stated_targets(account, "Stack", search)) == ["primary"]
