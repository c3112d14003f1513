"""ECS: tasks run."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError
from flask import request
from moto.ec2.models import ec2_backends
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ecs.exceptions import EcsClientException, ECSException, InvalidParameterException
from moto.ecs.models import EC2ContainerServiceBackend, Task

from .. import task_runner
from ..admission import credentials_at
from ..connections import ask, local_client
from ..permissions.evaluator import NotJudged
from ..permissions.gate import is_enforced
from ..permissions.service_roles import TaskRefused, check_roles
from .replacing import around

_START_SECONDS = 0.3
"""How long a task shows PROVISIONING; at AWS the image's pull and start take most of a minute."""
# Fargate tasks run as processes; those of container instances stay with moto.

_requirements_of = EC2ContainerServiceBackend._calculate_task_resource_requirements


def _requirements(definition: Any) -> Any:
    """What a container instance must have left; Fargate has no instance, nor each container CPU."""
    if "FARGATE" in (definition.requires_compatibilities or []):
        return {"CPU": 0, "MEMORY": 0, "PORTS": [], "PORTS_UDP": []}
    return _requirements_of(definition)


EC2ContainerServiceBackend._calculate_task_resource_requirements = staticmethod(_requirements)


# What Fargate runs, and what has to be gone first; each in the API reference, of its operation.

_FARGATE = {
    256: (512, 1024, 2048),
    512: range(1024, 4097, 1024),
    1024: range(2048, 8193, 1024),
    2048: range(4096, 16385, 1024),
    4096: range(8192, 30721, 1024),
    8192: range(16384, 61441, 4096),
    16384: range(32768, 122881, 8192),
}
"""MiB of memory by CPU units; RegisterTaskDefinition, memory."""


@around(EC2ContainerServiceBackend)
def register_task_definition(
    original: Callable[..., Any], self: Any, *given: Any, **more: Any
) -> Any:
    """Refuse what Fargate does not run; ECS's words as its users report them."""
    stated = inspect.signature(original).bind(self, *given, **more).arguments
    if "FARGATE" in (stated.get("requires_compatibilities") or ()):
        _check_fargate(stated)
    return original(self, *given, **more)


def _check_fargate(stated: Mapping[str, Any]) -> None:
    if stated.get("network_mode") != "awsvpc":
        raise EcsClientException("Fargate only supports network mode \u2018awsvpc\u2019.")
    cpu, memory = (_units(stated.get(name), large) for name, large in _UNITS)
    if memory not in _FARGATE.get(cpu, ()):
        raise EcsClientException(
            "No Fargate configuration exists for given values: "
            f"{stated.get('cpu')} CPU, {stated.get('memory')} memory. See the Amazon ECS documentation "
            "for the valid values."
        )
    if stated.get("execution_role_arn"):
        return
    for container in stated["container_definitions"]:
        driver = (container.get("logConfiguration") or {}).get("logDriver")
        if driver == "awslogs":
            raise EcsClientException(
                "Fargate requires task definition to have execution role ARN to support log driver "
                "awslogs."
            )
        if ".dkr.ecr." in container.get("image", ""):
            raise EcsClientException(
                "Fargate requires task definition to have execution role ARN to support ECR images."
            )


_UNITS = (("cpu", "vcpu"), ("memory", "gb"))


def _units(text: Any, large: str) -> int:
    """Read CPU units and MiB, which may be said in vCPU and GB; 0 for what is neither."""
    number = str(text or "").lower().replace(" ", "")
    try:
        if number.endswith(large):
            return int(float(number.removesuffix(large)) * 1024)
        return int(number)
    except (ValueError, OverflowError):
        return 0


@around(EC2ContainerServiceBackend)
def delete_cluster(original: Callable[..., Any], self: Any, cluster_str: str) -> Any:
    """Refuse while the cluster has services or tasks."""
    name = self._get_cluster(cluster_str).name
    services = [service for service in self.services.values() if service.cluster_name == name]
    services = [service for service in services if service.status != "INACTIVE"]
    tasks = [task for task in self.tasks.get(name, {}).values() if task.last_status != "STOPPED"]
    for kind, things in (("Services", services), ("Tasks", tasks)):
        if things:
            raise ECSException(
                f"ClusterContains{kind}Exception",
                f"The Cluster cannot be deleted while {kind} are active.",
            )
    return original(self, cluster_str)


@around(EC2ContainerServiceBackend)
def create_service(original: Callable[..., Any], self: Any, *given: Any, **more: Any) -> Any:
    """Refuse a service without the network that its tasks need."""
    stated = inspect.signature(original).bind(self, *given, **more).arguments
    name = stated.get("task_definition_str")
    definition = self.describe_task_definition(name) if name else None
    _check_active(definition)
    network = (stated.get("network_configuration") or {}).get("awsvpcConfiguration")
    if definition and definition.network_mode == "awsvpc" and not network:
        raise InvalidParameterException(
            "Network Configuration must be provided when networkMode 'awsvpc' is specified."
        )
    _complete(network)
    return original(self, *given, **more)


def _complete(network: dict[str, Any] | None) -> None:
    """Give moto the security groups that it wants and that AWS does not need."""
    if network is not None:
        network.setdefault("securityGroups", [])


@around(EC2ContainerServiceBackend)
def describe_task_definition(original: Callable[..., Any], self: Any, name: str) -> Any:
    """Give the latest ACTIVE revision of a family: API reference, DescribeTaskDefinition."""
    family = name.rpartition("/")[2]
    revisions = self.task_definitions.get(family) or {}
    active = [number for number, one in revisions.items() if one.status == "ACTIVE"]
    return original(self, f"{family}:{max(active)}" if active else name)


@around(EC2ContainerServiceBackend)
def run_task(
    original: Callable[..., list[Any]], self: Any, *arguments: Any, **named: Any
) -> list[Any]:
    """Run Fargate tasks as processes; refuse more than a call takes, and what is deregistered."""
    stated = inspect.signature(original).bind(self, *arguments, **named).arguments
    if int(stated["count"]) > _MOST_TASKS:
        raise InvalidParameterException(f"You can specify up to {_MOST_TASKS} tasks for each call.")
    _check_active(self.describe_task_definition(stated["task_definition_str"]))
    _complete((stated.get("networking_configuration") or {}).get("awsvpcConfiguration"))
    tasks = original(self, *arguments, **named)
    url = f"http://{request.host}"
    for task in tasks:
        if task.container_instance_arn is None:
            _start(self, task, url)
    return tasks


_MOST_TASKS = 10
"""Source: API reference, RunTask, count."""


def _check_active(definition: Any) -> None:
    """Refuse a definition that is deregistered: API reference, DeregisterTaskDefinition."""
    if definition and definition.status == "INACTIVE":
        raise EcsClientException("TaskDefinition is inactive")


# moto gives an interface a name only in a VPC with DNS hostnames, and reads it of every task's.
NetworkInterface.private_dns_name = None


def _start(backend: Any, task: Any, url: str) -> None:
    definition = backend.describe_task_definition(task.task_definition_arn)
    container = definition.container_definitions[0]
    overrides: list[dict[str, Any]] = (task.overrides or {}).get("containerOverrides", [])
    override = next((each for each in overrides if each.get("name") == container["name"]), {})
    command = [
        *(container.get("entryPoint") or []),
        *(override.get("command") or container.get("command") or []),
    ]
    environment = {
        pair["name"]: pair["value"]
        for pair in [*(container.get("environment") or []), *(override.get("environment") or [])]
    }
    task.enable_execute_command = bool(request.get_json(force=True).get("enableExecuteCommand"))
    task.created_at = time.time()
    task.stop_seconds = float(container.get("stopTimeout") or 30)
    main_container = task.containers[0]
    main_container.task_arn = task.task_arn
    main_container.runtime_id = f"{task.id.replace('-', '')}-{int(task.created_at)}"
    main_container.exit_code = None
    main_container.exitCode = None
    _address(task)
    task.running = None
    task.last_status = "PROVISIONING"
    session = None
    try:
        if refused := task_runner.why_not(command):
            raise TaskRefused(f"CannotPullContainerError: {refused}")
        if is_enforced(url):
            session = check_roles(
                (backend.account_id, backend.region_name),
                _roles_and_containers(definition, task.overrides or {}),
                task.id,
                _subnets(),
            )
        log = _logging(container, task.id, backend.region_name, url)
    except (TaskRefused, NotJudged) as reason:
        _stopped(task, "TaskFailedToStart", str(reason), time.time())
        return
    task.running = task_runner.start(
        task_runner.Task(
            arn=task.task_arn,
            command=command,
            environment=environment,
            region=backend.region_name,
            url=url,
            runtime_url=_runtime_url(url),
            log=log,
            ended=task.advance,
            session=session,
        )
    )


def _roles_and_containers(definition: Any, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Give the parts of a definition that roles are judged by, as the run has them."""
    return {
        "taskRoleArn": overrides.get("taskRoleArn") or getattr(definition, "task_role_arn", None),
        "executionRoleArn": overrides.get("executionRoleArn")
        or getattr(definition, "execution_role_arn", None),
        "containerDefinitions": definition.container_definitions,
    }


def _subnets() -> list[str]:
    network = request.get_json(force=True).get("networkConfiguration") or {}
    return list((network.get("awsvpcConfiguration") or {}).get("subnets") or ())


def _address(task: Any) -> None:
    """Say that the task is reached on loopback, wherever AWS would say its own address."""
    for attachment in task.attachments:
        attachment["details"] = [one for one in attachment["details"] if one["value"] is not None]
        for detail in attachment["details"]:
            if detail["name"] == "privateIPv4Address":
                detail["value"] = task_runner.ADDRESS
        task.containers[0].network_interfaces = [
            {"attachmentId": attachment["id"], "privateIpv4Address": task_runner.ADDRESS}
        ]


def _runtime_url(url: str) -> str:
    answer = ask(url, credentials_at(url).token, "/_local/runtime/url?zone=")
    return str(json.loads(answer)["url"])


def _logging(
    container: Mapping[str, Any], task_id: str, region: str, url: str
) -> Callable[[list[str]], None]:
    """Give what writes into the container's log group; without one, nothing is kept."""
    configuration = container.get("logConfiguration") or {}
    options = configuration.get("options") or {}
    group = options.get("awslogs-group")
    if configuration.get("logDriver") != "awslogs" or not group:
        return lambda lines: None
    stream = f"{options.get('awslogs-stream-prefix', 'ecs')}/{container['name']}/{task_id}"
    logs = local_client("logs", region, url)
    try:
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
    except ClientError as error:
        words = "ResourceInitializationError: failed to validate logger args"
        raise TaskRefused(f"{words}: {error}") from None

    def write(lines: list[str]) -> None:
        now = int(time.time() * 1000)
        events = [{"timestamp": now, "message": line or " "} for line in lines]
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)

    return write


@around(Task)
def advance(_: Any, self: Any) -> None:
    """Bring a task's status up to that of its process."""
    if not hasattr(self, "running"):
        self._tick += 1  # as moto has it
        return
    if self.running is None or self._status == "STOPPED":  # None: not yet started
        return
    code = self.running.exit_code
    container = self.containers[0]
    if code is not None:
        container.exit_code = container.exitCode = code
        reason = self.stopped_reason or "Essential container in task exited"
        stop_code = "UserInitiated" if self.stopped_reason else "EssentialContainerExited"
        _stopped(self, stop_code, reason, self.running.stopped_at or time.time())
    elif self._status != "STOPPING":
        started = time.time() - self.created_at >= _START_SECONDS
        self.last_status = container.last_status = "RUNNING" if started else "PROVISIONING"
        if started:
            self.started_at = self.running.started_at


def _stopped(task: Any, code: str, reason: str, at: float) -> None:
    task.last_status = task.containers[0].last_status = "STOPPED"
    task.desired_status = "STOPPED"
    task.stop_code, task.stopped_reason, task.stopped_at = code, reason, at
    _release(task)


def _release(task: Any) -> None:
    """Delete the task's network interface, which would keep its subnet from being deleted."""
    ec2 = ec2_backends[task._account_id][task.region_name]
    for attachment in task.attachments:
        attachment["status"] = "DELETED"
        for detail in attachment["details"]:
            if detail["name"] == "networkInterfaceId" and detail["value"] in ec2.enis:
                ec2.delete_network_interface(detail["value"])


@around(EC2ContainerServiceBackend)
def stop_task(
    original: Callable[..., Any], self: Any, cluster_str: str, task_str: str, reason: str
) -> Any:
    """Have a task end as ECS does: it is asked to, and then made to."""
    cluster = self._get_cluster(cluster_str)
    there, name = self.tasks.get(cluster.name, {}), task_str.split("/")[-1]
    task = next((one for arn, one in there.items() if arn.endswith(name)), None)
    if task is None or not hasattr(task, "running"):
        return original(self, cluster_str, task_str, reason)
    task.advance()
    if task._status != "STOPPED":
        task.desired_status = "STOPPED"
        task.stopped_reason = reason or "Task stopped by user"
        task.last_status = "STOPPING"
        task.running.terminate(task.stop_seconds)
    return task


@around(EC2ContainerServiceBackend)
def list_tasks(
    original: Callable[..., list[Any]], self: Any, *given: Any, **named: Any
) -> list[Any]:
    """List those that run unless others are asked for, as ECS does; moto lists stopped ones too."""
    for tasks in self.tasks.values():
        for task in tasks.values():
            if hasattr(task, "running"):
                task.advance()
    wanted = inspect.signature(original).bind(self, *given, **named)
    wanted.arguments["desiredStatus"] = wanted.arguments.get("desiredStatus") or "RUNNING"
    return original(*wanted.args, **wanted.kwargs)
