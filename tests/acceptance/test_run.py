"""A run from its start to its end in the local AWS, killed wherever it can be."""

from __future__ import annotations

import dataclasses
import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest

from acceptance.app import TAG
from acceptance.claims import CLAIMS, Verdict, judge
from acceptance.evidence import evidence_files
from acceptance.run import run_steps
from acceptance.steps import CORE, LAST, SEVERAL, Pace, Run, Step, steps_of
from acceptance.sweep import remaining, sweep
from acceptance.world import World
from local_sagemaker import LocalAws, deploy_template

from .replay import differences

pytestmark = pytest.mark.realtime

PACE = Pace(traffic=3, after_update=8, longest_for_page=20)


class Killed(BaseException):
    """The process is gone: nothing after this is done, nothing is caught."""


# After a kill a step is done again from its top. For these that is more than doing it twice: the
# account is no longer what it was. The others only wait and look, or are another of the same kind.
CHANGES = {"deploy", "update", "crash", "share", "destroy"}


def killed(step: Step, attempts: list[tuple[str, int]]) -> Step:
    """The step, killed before it does anything, or before what it changed is remembered."""
    numbers = itertools.count(1)

    def act(run: Run) -> dict[str, Any]:
        number = next(numbers)
        attempts.append((step.name, number))
        if number == 1:
            raise Killed
        saw = step.act(run)
        if number == 2 and step.name in CHANGES:
            raise Killed
        return saw

    return dataclasses.replace(step, act=act)


@dataclass
class Walked:
    """A run that was killed before each step, and after each that changes the account."""

    status: int
    attempts: list[tuple[str, int]]
    evidence: dict[str, Any]
    text: str
    state: dict[str, Any]
    left_in_aws: list[str]


@pytest.fixture(scope="module")
def walked(world: World, aws: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> Walked:
    folder = tmp_path_factory.mktemp("walked")
    attempts: list[tuple[str, int]] = []
    steps = [killed(step, attempts) for step in steps_of()]
    while True:
        try:
            status = run_steps(
                world, folder / "state.json", steps, pace=PACE, evidence_folder=folder / "evidence"
            )
        except Killed:
            continue
        break
    (evidence,) = evidence_files(folder / "evidence").values()
    (file,) = (folder / "evidence").iterdir()
    state = json.loads((folder / "state.json").read_text("utf-8"))
    return Walked(status, attempts, evidence, file.read_text("utf-8"), state, aws.leftovers())


def test_killed_wherever_it_can_be_it_does_each_step_and_comes_to_its_end(walked: Walked) -> None:
    assert walked.status == 0
    assert {step.name for step in steps_of()} > CHANGES
    assert walked.attempts == [
        (step.name, n)
        for step in steps_of()
        for n in ((1, 2, 3) if step.name in CHANGES else (1, 2))
    ]
    assert walked.state["finished"]
    assert {name: step["status"] for name, step in walked.evidence["steps"].items()} == {
        step.name: "done" for step in (*CORE, *SEVERAL, LAST)
    }


def test_nothing_is_left(walked: Walked) -> None:
    assert walked.evidence["left"] == []
    assert walked.left_in_aws == []


def test_its_evidence_says_that_it_proves_nothing_of_aws(walked: Walked) -> None:
    assert walked.evidence["target"] == "local"
    for step in walked.evidence["steps"].values():
        assert "saw" in step
    probes = walked.evidence["steps"]["deploy"]["saw"]["probes"]
    for zone in probes.values():
        assert zone["names"]["zonal"] == {"unavailable": "not available here"}


def test_its_evidence_has_nothing_of_the_account(walked: Walked, aws: LocalAws) -> None:
    assert aws.account not in walked.text
    assert walked.state["suffix"] not in walked.text
    assert walked.state["kept"]["group"] not in walked.text


#: The issue's own claims, whatever else the local AWS comes to show.
SHOWN = {
    *("create", "warm-up", "verify", "subnets-by-zone-id", "alarms-have-data", "update", "pages"),
    *("crash-fails", "alarm-fails", "two-endpoints", "hub-staged", "repin", "former-files"),
    *("renamed-served", "new-name", "former-names", "removed", "shared-role", "delete"),
    "nothing-left",
}
NOT_SHOWN = {
    *("private-dns", "zonal-names", "tls", "same-zone", "endpoint-policy", "rolling-back"),
    "capture",
}


def test_what_a_local_aws_can_show_of_the_claims_it_shows(walked: Walked) -> None:
    told = {name: judge(claim, walked.evidence) for name, claim in CLAIMS.items()}
    for claim in SHOWN:
        assert told[claim] is Verdict.SEEN, claim
    for claim in NOT_SHOWN:
        assert told[claim] is Verdict.OPEN, claim


@pytest.mark.parametrize("name", [*evidence_files(), "none yet"])
def test_the_local_aws_shows_what_aws_has_shown(name: str, walked: Walked) -> None:
    seen = evidence_files().get(name) or {**walked.evidence, "target": "aws"}
    assert differences(seen, walked.evidence) == []


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("crash", "saw", "stack_status"), "UPDATE_COMPLETE", "crash: stack status"),
        (("update", "saw", "after", "configuration"), "<EndpointConfiguration-9>", "claim"),
        (("slow", "saw", "after", "configuration_exists"), False, "claim former-configuration"),
        (("page", "saw", "arrived"), False, "page: a page arrives"),
        (("remove", "saw", "updated", "stack_status"), "X", "remove, updated: stack status"),
        (("share", "saw", "lost"), ["<policy-1>"], "claim shared-role"),
        (("destroy", "saw", "stack_status"), "DELETE_FAILED", "claim delete"),
        (("traffic", "saw", "metrics", 0, "metric"), "SomethingNew", "AWS has"),
    ],
)
def test_a_tape_that_differs_is_told(
    path: tuple[Any, ...], value: Any, word: str, walked: Walked
) -> None:
    seen = json.loads(walked.text) | {"target": "aws"}
    inner = seen["steps"]
    for key in path[:-1]:
        inner = inner[key]
    if path[-1] == "configuration":  # as if the deployment had been taken back without a word
        value = inner["configuration"] = seen["steps"]["update"]["saw"]["before"]["configuration"]
        word = "update: another configuration"
    inner[path[-1]] = value
    found = differences(seen, walked.evidence)
    assert any(word in line for line in found), found


def test_evidence_of_a_local_aws_is_no_yardstick(walked: Walked) -> None:
    with pytest.raises(ValueError, match="'local'"):
        differences(walked.evidence, walked.evidence)


def test_the_sweep_finds_by_tag_what_nothing_remembers(world: World, aws: LocalAws) -> None:
    tag, suffix = [{"Key": TAG, "Value": "00c0ffee"}], "00c0ffee"
    s3, logs, sqs, ec2 = (aws.client(name) for name in ("s3", "logs", "sqs", "ec2"))
    s3.create_bucket(Bucket="lost")
    s3.put_bucket_tagging(Bucket="lost", Tagging={"TagSet": tag})
    s3.put_object(Bucket="lost", Key="a", Body=b"a")
    s3.create_bucket(Bucket=f"llee-accept-{suffix}-captured-1")
    s3.create_bucket(Bucket="of-somebody-else")
    logs.create_log_group(logGroupName=f"/aws/sagemaker/Endpoints/llee-accept-{suffix}")
    logs.create_log_group(logGroupName="/of/somebody-else")
    sqs.create_queue(QueueName="lost", tags={TAG: suffix})
    vpc, subnet, interface = (
        {"TagSpecifications": [{"ResourceType": kind, "Tags": tag}]}
        for kind in ("vpc", "subnet", "network-interface")
    )
    vpc_id = ec2.create_vpc(CidrBlock="10.9.0.0/16", **vpc)["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.9.0.0/24", **subnet)["Subnet"]
    ec2.create_network_interface(SubnetId=made["SubnetId"], **interface)
    topic = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    deploy_template(aws, topic, f"llee-accept-{suffix}", tags={TAG: suffix})
    assert len(remaining(world)) == 8
    assert remaining(world, "0badcafe") == []
    assert sweep(world) == []
    assert aws.leftovers() == ["logs: /of/somebody-else", "s3: of-somebody-else"]
    s3.delete_bucket(Bucket="of-somebody-else")
    logs.delete_log_group(logGroupName="/of/somebody-else")
