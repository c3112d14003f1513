"""``low-latency list`` over many endpoints: few calls, and what one lacks hides no other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from low_latency_endpoint.account import sessions
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.deployed_endpoints import deployed_endpoints
from low_latency_endpoint.account.sessions import AwsUnavailable
from low_latency_endpoint.cli import app
from low_latency_endpoint.operate.standing import standings

from .fleet import NOW, Fleet


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command over a fleet."""

    def _listed(fleet: Fleet, *arguments: str) -> Result:
        monkeypatch.setattr(sessions, "open_clients", lambda *_: (fleet, "us-east-1"))
        monkeypatch.setattr("low_latency_endpoint.account.clock.account_now", lambda: NOW)
        monkeypatch.setenv("COLUMNS", "80")
        return CliRunner().invoke(app, ["list", *arguments])

    return _listed


def rows(done: Result) -> dict[str, Any]:
    return {each["endpoint"]: each for each in json.loads(done.stdout)["endpoints"]}


@pytest.mark.parametrize(
    ("endpoints", "in_stack", "others"),
    [(12, 1, 5000), (12, 12, 5000), (300, 1, 2600), (300, 5, 0)],
)
def test_few_calls_for_many_endpoints(
    endpoints: int, in_stack: int, others: int, listed: Any
) -> None:
    fleet = Fleet(endpoints, in_stack=in_stack, alarms_of_others=others)
    done = listed(fleet, "--json")
    assert done.exit_code == 0, done.output
    assert list(rows(done)) == fleet.names
    asked = Counter(fleet.asked)
    # CloudWatch gives a hundred alarms in one answer: these calls are as many as the alarms want.
    assert asked.pop("cloudwatch.DescribeAlarms") <= len(fleet.alarms) / 100 + 2
    assert sum(asked.values()) <= 6 * endpoints, asked
    assert asked["cloudwatch.GetMetricData"] <= endpoints / 100 + 1


def test_what_stands_is_told_of_each(listed: Any) -> None:
    """Deleted, below its minimum, failing, updating: each of its own endpoint, and of no other."""
    fleet = Fleet(5, in_stack=2)
    configured, served, fewer, updating, well = fleet.names
    fleet.deleted = {f"{configured}-c", f"{served}-m"}
    fleet.targets[fewer]["MinCapacity"] = 5
    pending = {"EndpointConfigName": "new", "StartTime": NOW}
    fleet.endpoints[updating].update(EndpointStatus="Updating", PendingDeploymentSummary=pending)
    text = listed(fleet)
    assert text.exit_code == 0, text.output
    told = text.stdout.split(f"\n{configured}\n")[1]
    words = {
        configured: "- deleted: model-000-c, the configuration that serves, is deleted",
        served: "- deleted: model-001-m, the model that serves primary, is deleted",
        fewer: "3 of 3 x ml.m5.large, below the scalable target's minimum\n  of 5",
        updating: "- update: updating to new since 04:00",
    }
    for name, said in words.items():
        section = f"{configured}\n{told}".split(f"{name}\n")[1].split("\n\n")[0]
        assert said in section
        assert text.stdout.count(said) == 1
    assert [len(line) for line in text.stdout.splitlines() if len(line) > 80] == []
    found = rows(listed(fleet, "--json"))
    assert found[well]["drift"] == []
    assert found[well]["failed_share_last_hour"] == 3 / 150
    assert [each["below_minimum"] for each in found.values()] == [{}, {}, {"primary": 5}, {}, {}]


@cache
def _calls() -> list[tuple[str, str]]:
    """Each call that a list of four endpoints makes: its operation, and what it asks for."""
    made: dict[tuple[str, str], None] = {}
    fleet = Fleet(4, in_stack=2)
    # A configuration that differs: the stack is asked whether it is being deployed.
    fleet.targets[fleet.names[0]]["MaxCapacity"] = 9

    def noted(operation: str, asked: Mapping[str, Any]) -> bool:
        made[operation, _asked(asked)] = None
        return False

    fleet.throttled = noted
    account = Account(fleet, "us-east-1")
    standings(account, deployed_endpoints(account), NOW)
    return list(made)


def _asked(request: Mapping[str, Any]) -> str:
    return json.dumps({**request, "NextToken": ""}, sort_keys=True, default=str)


@pytest.mark.parametrize("number", range(len(_calls())))
def test_a_call_that_is_throttled_for_good_hides_no_other(number: int, listed: Any) -> None:
    call = _calls()[number]
    fleet = Fleet(4, in_stack=2)
    fleet.targets[fleet.names[0]]["MaxCapacity"] = 9
    usual = rows(listed(fleet, "--json"))
    fleet.throttled = lambda operation, asked: (operation, _asked(asked)) == call
    done = listed(fleet, "--json")
    if call[0] == "sagemaker.ListEndpoints":  # no name is known
        assert isinstance(done.exception, AwsUnavailable)
        return
    assert done.exit_code == 3, call
    found = rows(done)
    assert sorted(found) == fleet.names
    unread = [name for name, row in found.items() if row["unknown"]]
    assert unread, call
    for name, row in found.items():
        whys = {each["why"].partition(": ")[2] for each in row.pop("unknown")}
        before = {key: value for key, value in usual[name].items() if key != "unknown"}
        assert (row == before) == (name not in unread), "what is not known is not taken for fine"
        assert whys <= {"ThrottlingException: Rate exceeded"}
    text = listed(fleet)
    assert text.exit_code == 3
    assert "?" in text.stdout
    assert "Rate exceeded" in " ".join(text.stdout.split())


def test_a_refusal_of_all_stacks_ends_it(listed: Any) -> None:
    fleet = Fleet(2)
    fleet.denied = {"DescribeStackResources": "AccessDenied"}
    done = listed(fleet)
    assert isinstance(done.exception, AwsUnavailable)
    assert "DescribeStackResources" in str(done.exception)


def test_what_many_lack_is_said_once(listed: Any) -> None:
    fleet = Fleet(9)
    fleet.denied = {"GetMetricData": "AccessDenied"}
    text = listed(fleet).stdout
    assert text.count("cloudwatch:GetMetricData") == 1
    assert "unknown of 9 endpoints: requests (cloudwatch:GetMetricData: not permitted)" in text
