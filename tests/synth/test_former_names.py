"""The function that remembers names: what it answers, and how much it can remember."""

from __future__ import annotations

import runpy
import sys
import types
from pathlib import Path

import pytest

import low_latency_endpoint.synthesis
from low_latency_endpoint.network.vpc_endpoints import LONGEST_ANSWER

SOURCE = (
    Path(low_latency_endpoint.synthesis.__file__).parent
    / "custom_resource_functions"
    / "former_names.py"
)


@pytest.fixture
def answer(monkeypatch):
    """Runs the function on one event; gives status, data and reason."""
    sent = []
    cfnresponse = types.ModuleType("cfnresponse")
    cfnresponse.SUCCESS, cfnresponse.FAILED = "SUCCESS", "FAILED"
    cfnresponse.send = lambda event, context, status, data, name, reason="": sent.append(
        (status, data, reason)
    )
    monkeypatch.setitem(sys.modules, "cfnresponse", cfnresponse)
    handler = runpy.run_path(str(SOURCE))["handler"]

    def run(kind, now, before=None):
        event = {
            "RequestType": kind,
            "LogicalResourceId": "Former",
            "ResourceProperties": {"ServiceToken": "arn", "ServiceTimeout": "120", "Read": now},
        }
        if before is not None:
            event["OldResourceProperties"] = {"ServiceToken": "arn", "Read": before}
        handler(event, None)
        return sent[-1]

    return run


def test_what_goes_is_remembered_until_the_next_change(answer):
    assert answer("Update", ["b", "c"], ["a", "b"]) == ("SUCCESS", {"Read": "a"}, "")
    assert answer("Update", ["c"], ["b", "c"]) == ("SUCCESS", {"Read": "b"}, "")


def test_where_nothing_went_a_name_that_is_there_stands_for_it(answer):
    assert answer("Create", ["a", "b"]) == ("SUCCESS", {"Read": "a"}, "")
    assert answer("Update", ["a", "b"], ["a"]) == ("SUCCESS", {"Read": "a"}, "")


def test_more_than_cloudformation_takes_is_refused_and_still_deleted(answer):
    longest = "a" * LONGEST_ANSWER
    assert answer("Update", ["b"], [longest]) == ("SUCCESS", {"Read": longest}, "")
    status, data, reason = answer("Update", ["b"], [f"{longest}a"])
    assert (status, data) == ("FAILED", {})
    assert f"{LONGEST_ANSWER + 1} characters" in reason
    assert "several deployments" in reason
    assert answer("Delete", ["b"]) == ("SUCCESS", {"Read": "b"}, "")
