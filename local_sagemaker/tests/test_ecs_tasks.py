"""ECS tasks run as processes: their life, their log, and that nothing of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from roles_under_test import allow, give_role
from waiting import processes, until, wait_for

from local_sagemaker import LocalAws, process_supervisor

pytestmark = pytest.mark.realtime

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
LOG = {"logDriver": "awslogs", "options": {"awslogs-group": "tasks", "awslogs-stream-prefix": "p"}}


class Cluster:
    """A cluster and short words for what the tests do with it."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws, self.ecs, ec2 = aws, aws.client("ecs"), aws.client("ec2")
        self.ecs.create_cluster(clusterName="tasks")
        self.subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        self.group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
        aws.client("logs").create_log_group(logGroupName="tasks")
        writes = allow(["logs:CreateLogStream", "logs:PutLogEvents"])
        self.role = give_role(aws, "execution", writes, services=("ecs-tasks",))

    def define(self, **container: Any) -> str:
        answer = self.ecs.register_task_definition(
            family="task",
            requiresCompatibilities=["FARGATE"],
            networkMode="awsvpc",
            executionRoleArn=self.role,
            cpu="256",
            memory="512",
            containerDefinitions=[
                {"name": "one", "image": "nobody/nothing:1", "logConfiguration": LOG, **container}
            ],
        )
        return str(answer["taskDefinition"]["taskDefinitionArn"])

    def run(
        self, code: str, count: int = 1, override: dict[str, Any] | None = None, **container: Any
    ) -> list[str]:
        container.setdefault("entryPoint", ["python", "-c"])
        container.setdefault("command", [code])
        answer = self.ecs.run_task(
            cluster="tasks",
            taskDefinition=self.define(**container),
            launchType="FARGATE",
            count=count,
            startedBy="test",
            networkConfiguration={
                "awsvpcConfiguration": {"subnets": [self.subnet], "securityGroups": [self.group]}
            },
            overrides={"containerOverrides": [{"name": "one", **(override or {})}]},
        )
        self.started = {task["taskArn"]: task["lastStatus"] for task in answer["tasks"]}
        return list(self.started)

    def described(self, arn: str) -> dict[str, Any]:
        (task,) = self.ecs.describe_tasks(cluster="tasks", tasks=[arn])["tasks"]
        return dict(task)

    def until(self, arn: str, status: str) -> dict[str, Any]:
        return until(lambda: self.described(arn), lambda task: task["lastStatus"] == status)

    def log(self, arn: str) -> list[str]:
        events = self.aws.client("logs").get_log_events(
            logGroupName="tasks", logStreamName=f"p/one/{arn.rpartition('/')[2]}"
        )["events"]
        return [event["message"] for event in events]


def variables(**pairs: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs.items()]


# A module's own: it is reset, and in-process servers share their state.
@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with LocalAws.in_process(region="us-east-1") as aws:
        aws.reset()
        yield Cluster(aws)
        aws.reset()


def test_a_task_starts_runs_and_ends_with_its_exit_code(cluster):
    (arn,) = cluster.run("import time; print('hello', flush=True); time.sleep(1); exit(7)")
    seen = [cluster.started[arn]]  # a busy machine may be too slow to see it by asking
    wait_for(lambda: seen.append(cluster.described(arn)["lastStatus"]) or seen[-1] == "STOPPED")
    assert list(dict.fromkeys(seen)) == ["PROVISIONING", "RUNNING", "STOPPED"]
    task = cluster.described(arn)
    assert task["containers"][0]["exitCode"] == 7
    assert task["stopCode"] == "EssentialContainerExited"
    assert task["stoppedAt"] > task["startedAt"] >= task["createdAt"]
    assert cluster.log(arn) == ["hello"]
    stopped = {"desiredStatus": "STOPPED", "startedBy": "test"}
    assert arn not in cluster.ecs.list_tasks(cluster="tasks")["taskArns"]
    assert arn in cluster.ecs.list_tasks(cluster="tasks", **stopped)["taskArns"]


def test_its_address_is_loopback_everywhere_it_is_said(cluster):
    (arn,) = cluster.run(SLEEP)
    task = cluster.until(arn, "RUNNING")
    details = {d["name"]: d["value"] for d in task["attachments"][0]["details"]}
    assert details["privateIPv4Address"] == "127.0.0.1"
    assert details["subnetId"] == cluster.subnet
    (interface,) = task["containers"][0]["networkInterfaces"]
    assert interface["privateIpv4Address"] == "127.0.0.1"
    cluster.ecs.stop_task(cluster="tasks", task=arn)


def test_environment_of_definition_and_run_but_none_of_this_machines(cluster, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "mine")
    monkeypatch.setenv("AWS_PROFILE", "production")
    code = (
        "import os; print(sorted(k + '=' + v for k, v in os.environ.items() "
        "if k[:3] in ('AWS', 'MY_', 'A_1', 'B_2')), flush=True)"
    )
    (arn,) = cluster.run(
        code,
        environment=variables(A_1="defined", B_2="defined"),
        override={"environment": variables(B_2="given", AWS_ENDPOINT_URL="https://aws.amazon.com")},
    )
    cluster.until(arn, "STOPPED")
    (line,) = cluster.log(arn)
    assert "'A_1=defined'" in line
    assert "'B_2=given'" in line
    assert f"'AWS_ENDPOINT_URL={cluster.aws.url}'" in line
    assert "production" not in line
    assert "mine" not in line


def test_stopping_asks_first_and_then_makes_it(cluster):
    polite = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('up', flush=True); time.sleep(600)"
    )
    deaf = polite.replace("lambda *_: sys.exit(5)", "signal.SIG_IGN")
    (first,), (second,) = cluster.run(polite), cluster.run(deaf, stopTimeout=2)
    for arn in (first, second):
        wait_for(lambda arn=arn: cluster.log(arn))
        answer = cluster.ecs.stop_task(cluster="tasks", task=arn, reason="enough")["task"]
        assert (answer["desiredStatus"], answer["lastStatus"]) == ("STOPPED", "STOPPING")
    task = cluster.until(first, "STOPPED")
    assert task["containers"][0]["exitCode"] == 5
    assert (task["stopCode"], task["stoppedReason"]) == ("UserInitiated", "enough")
    assert cluster.until(second, "STOPPED")["containers"][0]["exitCode"] == 137


def test_an_interface_of_its_own_that_goes_with_it(cluster):
    def interfaces() -> int:
        answer = cluster.aws.client("ec2").describe_network_interfaces(
            Filters=[{"Name": "subnet-id", "Values": [cluster.subnet]}]
        )
        return len(answer["NetworkInterfaces"])

    before = interfaces()
    arns = cluster.run("import time; time.sleep(1)", count=2)
    assert interfaces() == before + 2
    wait_for(lambda: interfaces() == before)  # without anybody asking for the tasks
    assert {cluster.described(arn)["attachments"][0]["status"] for arn in arns} == {"DELETED"}


@pytest.mark.parametrize(
    ("container", "named"),
    [
        ({"entryPoint": [], "command": ["nginx"]}, "nginx"),
        ({"entryPoint": [], "command": []}, "the image's own command"),
    ],
)
def test_what_is_not_python_does_not_start_and_says_why(cluster, container, named):
    (arn,) = cluster.run("", **container)
    task = cluster.described(arn)
    assert (task["lastStatus"], task["stopCode"]) == ("STOPPED", "TaskFailedToStart")
    assert task["stoppedReason"].startswith("CannotPullContainerError: the local AWS has no Docker")
    assert task["stoppedReason"].endswith(named)


def test_a_task_without_its_log_group_stops_and_says_why(cluster):
    options = {**LOG["options"], "awslogs-group": "nobody-made-it"}
    (arn,) = cluster.run("", logConfiguration={**LOG, "options": options})
    task = cluster.described(arn)
    assert (task["lastStatus"], task["stopCode"]) == ("STOPPED", "TaskFailedToStart")
    assert task["stoppedReason"].startswith(
        "ResourceInitializationError: failed to validate logger"
    )
    assert "ResourceNotFoundException" in task["stoppedReason"]
    cluster.ecs.stop_task(cluster="tasks", task=arn)  # again: it stays as it is
    assert cluster.described(arn)["stoppedReason"] == task["stoppedReason"]


def test_a_task_that_nobody_knows_is_ecss_refusal(cluster):
    with pytest.raises(ClientError):
        cluster.ecs.stop_task(cluster="no-such-cluster", task="x")


def test_reset_stops_them(cluster):
    marker = f"'reset-{os.getpid()}'"
    cluster.run(f"{marker}; {SLEEP}", count=2)
    wait_for(lambda: len(processes(marker)) >= 4)  # each with its supervisor
    cluster.aws.reset()
    wait_for(lambda: not processes(marker))
    cluster.__init__(cluster.aws)  # for whoever comes next


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_none_outlives_the_local_aws(end):
    marker = f"'outlives-{end}-{os.getpid()}'"
    program = (
        "import runpy, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"here = runpy.run_path({__file__!r})\n"
        "with here['LocalAws'].start() as aws:\n"
        f"    here['Cluster'](aws).run({f'{marker}; {SLEEP}'!r})\n"
        "    print('started', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        text=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        assert owner.stdout.readline() == "started\n"
        # The task, its supervisor, and the owner, whose command line has the marker too.
        wait_for(lambda: len(processes(marker)) >= 3)
        if end == "kill":
            owner.kill()
        owner.stdin.close()
    wait_for(lambda: not processes(marker))


def test_no_signal_is_too_early_for_the_supervisor():
    marker = f"'early-{os.getpid()}'"
    command = [sys.executable, "-c", f"{marker}; {SLEEP}"]
    supervised = [sys.executable, "-I", process_supervisor.__file__, "2", *command]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    for number in range(25):
        with subprocess.Popen(supervised, **pipes) as supervisor:
            time.sleep(0.004 * number)
            supervisor.terminate()
            supervisor.wait(20)
    wait_for(lambda: not processes(marker))
