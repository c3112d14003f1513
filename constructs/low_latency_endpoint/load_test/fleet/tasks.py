"""The fleet's tasks: started, watched, stopped through ECS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import rule
from .description import FleetDescription

FLEET_STARTS = rule(
    "LLT125",
    "the fleet's tasks did not start",
    fix="Read ECS's message above. CannotPullContainerError, ResourceInitializationError: the "
    "subnets do not reach ECR, S3 or Logs (interface_endpoints of LoadTestFleet). Capacity: "
    "use fewer workers, or try later.",
    source="/AmazonECS/latest/developerguide/stopped-task-error-codes.html",
)

_RUNTIME_URL = "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"
"""Where botocore takes the runtime's URL from."""

_TASKS_PER_CALL = 10  # https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html
_DESCRIBED_PER_CALL = 100
_LOG_LINES = 12


@dataclass(frozen=True)
class FleetTask:
    """A task as ECS describes it."""

    arn: str
    kind: str  # master or worker
    status: str
    address: str = ""  # empty until it has one
    reason: str = ""  # why it stopped; empty while it runs

    @property
    def id(self) -> str:
        """The last part of the ARN."""
        return self.arn.rpartition("/")[2]

    @property
    def ending(self) -> bool:
        """Whether it has ended, or is about to."""
        return self.ended or self.status in ("DEACTIVATING", "STOPPING")

    @property
    def ended(self) -> bool:
        """Whether its containers have ended; its network interface may still be there."""
        return self.status in ("DEPROVISIONING", "STOPPED", "DELETED")


class FleetTasks:
    """The tasks of one run; each is started by the run's name, so that none is lost sight of."""

    def __init__(self, client: Any, fleet: FleetDescription, run_id: str) -> None:
        self._ecs, self._logs = client("ecs"), client("logs")
        self.fleet, self.run_id = fleet, run_id
        self.arns: list[str] = []

    def start(self, kind: str, count: int, environment: Mapping[str, str]) -> None:
        """Start tasks, spread evenly over the fleet's subnets (LLT125)."""
        urls = dict(zip(self.fleet.subnets, self.fleet.zonal_urls, strict=False))
        for subnet, number in _spread(self.fleet.subnets, count):
            if kind == "worker" and subnet in urls:
                environment = {**environment, _RUNTIME_URL: urls[subnet]}
            while number > 0:
                batch = min(number, _TASKS_PER_CALL)
                self._run(kind, batch, subnet, environment)
                number -= batch

    def _run(self, kind: str, count: int, subnet: str, environment: Mapping[str, str]) -> None:
        answer = self._ecs.run_task(
            cluster=self.fleet.cluster,
            taskDefinition=self.fleet.master if kind == "master" else self.fleet.worker,
            count=count,
            launchType="FARGATE",
            startedBy=self.run_id,
            networkConfiguration={
                "awsvpcConfiguration": {
                    "subnets": [subnet],
                    "securityGroups": [self.fleet.security_group],
                    "assignPublicIp": "DISABLED",
                }
            },
            overrides={
                "containerOverrides": [
                    {
                        "name": kind,
                        "environment": [
                            {"name": name, "value": value} for name, value in environment.items()
                        ],
                    }
                ]
            },
        )
        self.arns += [task["taskArn"] for task in answer["tasks"]]
        if len(answer["tasks"]) < count:
            reasons = sorted(
                {
                    " ".join(filter(None, [failure.get("reason"), failure.get("detail")]))
                    for failure in answer.get("failures", [])
                }
            )
            raise FLEET_STARTS.error(
                got=f"{len(answer['tasks'])} of {count} in {subnet}: "
                + ("; ".join(reasons) or "ECS gives no reason"),
                allowed=f"{count} {kind} task{'s' * (count != 1)}",
                where=self.fleet.cluster,
            )

    def described(self, arns: Sequence[str] | None = None) -> list[FleetTask]:
        """The run's tasks as they are; by default all of them."""
        wanted = list(self.arns if arns is None else arns)
        found = []
        for start in range(0, len(wanted), _DESCRIBED_PER_CALL):
            answer = self._ecs.describe_tasks(
                cluster=self.fleet.cluster, tasks=wanted[start : start + _DESCRIBED_PER_CALL]
            )
            found += [_task(task) for task in answer["tasks"]]
        return found

    def stop(self, reason: str) -> None:
        """Stop every task of the run that ECS still runs, those of a lost answer too."""
        for arn in dict.fromkeys([*self.running(self.run_id), *self.arns]):
            self._ecs.stop_task(cluster=self.fleet.cluster, task=arn, reason=reason)

    def running(self, started_by: str | None = None) -> list[str]:
        """ARNs of the tasks in the fleet's cluster that are not to stop; of one run, or all."""
        named = {"startedBy": started_by} if started_by else {}
        pages = self._ecs.get_paginator("list_tasks").paginate(
            cluster=self.fleet.cluster, desiredStatus="RUNNING", **named
        )
        return [arn for page in pages for arn in page["taskArns"]]

    def last_words(self, task: FleetTask) -> str:
        """The end of a task's log; empty when there is none."""
        stream = f"load-test/{task.kind}/{task.id}"
        try:
            answer = self._logs.get_log_events(
                logGroupName=self.fleet.log_group,
                logStreamName=stream,
                limit=_LOG_LINES,
                startFromHead=False,
            )
        except self._logs.exceptions.ClientError:
            return ""
        return "\n".join(event["message"] for event in answer["events"])


def _spread(subnets: Sequence[str], count: int) -> Iterator[tuple[str, int]]:
    """Each subnet with how many of the tasks it takes.

    Examples
    --------
    >>> list(_spread(("a", "b"), 5)), list(_spread(("a", "b", "c"), 1))
    ([('a', 3), ('b', 2)], [('a', 1)])
    """
    each, rest = divmod(count, len(subnets))
    for number, subnet in enumerate(subnets):
        if here := each + (number < rest):
            yield subnet, here


def _task(task: Mapping[str, Any]) -> FleetTask:
    details = {
        detail["name"]: detail["value"]
        for attachment in task.get("attachments", [])
        for detail in attachment.get("details", [])
    }
    container = (task.get("containers") or [{}])[0]
    code = container.get("exitCode")
    reasons = filter(None, [task.get("stoppedReason"), container.get("reason")])
    return FleetTask(
        arn=task["taskArn"],
        kind=container.get("name", ""),
        status=task.get("lastStatus", ""),
        address=details.get("privateIPv4Address", ""),
        reason=": ".join(dict.fromkeys(reasons)) + (f" (exit code {code})" if code else ""),
    )
