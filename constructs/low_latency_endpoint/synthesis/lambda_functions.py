"""Lambda functions: inline ones of custom resources, packages of others, their runtime."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aws_cdk import Stage
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from ..errors.frozen import dataclass
from ..options.safeguards import Safeguards
from .annotations import acknowledge, acknowledge_in_template, acknowledge_wildcard_resources
from .construct_tree import TreePart, only_child, region_of, stack_of
from .safeguards import FunctionRole, log_group, safeguards_of, writing_logs
from .template_values import is_token

_STAGING_OFF = "aws:cdk:disable-asset-staging"
_SOURCES = Path(__file__).parent / "custom_resource_functions"
# How Regions of other partitions than ``aws`` begin. CDK's table of Regions would know too, and
# takes Node.js longer to load than all functions take to make.
_ELSEWHERE = ("cn-", "us-gov-", "us-iso", "eu-iso", "eusc-")


def function_properties(scope: Construct, guards: Safeguards) -> dict[str, Any]:
    """What all functions have: runtime, architecture, and what the safeguards ask for."""
    return {
        **_runtime(scope),
        "code_signing_config_arn": guards.code_signing_config_arn,
        "vpc_config": vpc_config(guards),
    }


def vpc_config(guards: Safeguards) -> lambda_.CfnFunction.VpcConfigProperty | None:
    """The subnets and groups that the safeguards state for functions outside the client zones."""
    subnets = [subnet.subnet_id for subnet in guards.function_subnets]
    groups = [group.security_group_id for group in guards.function_security_groups]
    subnet_ids = [*guards.function_subnet_ids, *subnets]
    if not subnet_ids:
        return None
    return lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=subnet_ids, security_group_ids=[*guards.function_security_group_ids, *groups]
    )


def _runtime(scope: Construct) -> dict[str, Any]:
    """The newest runtime on Graviton in the partition ``aws`` (and where the Region is not known);
    in others, which get both later, the runtime before and x86."""
    region = region_of(scope)
    if is_token(region) or not region.startswith(_ELSEWHERE):
        return {"runtime": "python3.14", "architectures": ["arm64"]}
    acknowledge(
        scope,
        "AwsSolutions-L1",
        reason="The newest runtime comes later to partitions other than aws.",
    )
    return {"runtime": "python3.13", "architectures": ["x86_64"]}


def package_asset(
    scope: Construct, package: Path, beside: Callable[[Path], None] | None = None
) -> s3_assets.Asset:
    """A function's package as it stands, and what ``beside`` writes into the folder around it."""
    stage = Stage.of(scope)
    output = stage.outdir if stage else None  # where it stays when staging is off
    folder = Path(tempfile.mkdtemp(prefix=f"{package.name}-", dir=output))
    copy = folder / package.name
    copy.mkdir()
    for source in sorted(package.glob("*.py")):
        shutil.copyfile(source, copy / source.name)
    if beside is not None:
        beside(folder)
    for path in folder.rglob("*"):
        # Lambda's user must be able to read them, whatever this machine's umask.
        path.chmod(0o755 if path.is_dir() else 0o644)
    asset = s3_assets.Asset(scope, "Code", path=str(folder))
    if not scope.node.try_get_context(_STAGING_OFF):
        shutil.rmtree(folder)  # the CDK has its copy
    return asset


@dataclass(frozen=True)
class CustomResourceFunction:
    """A function, and the role that it runs with."""

    arn: str
    role: FunctionRole


def custom_resource_function(
    scope: Construct,
    source: str,
    *,
    description: str,
    statements: Sequence[Mapping[str, Any]],
    wildcards: str | None = None,
    timeout_seconds: int = 60,
    safeguards: Safeguards | None = None,
) -> CustomResourceFunction:
    """A function, its role and its log group; inline (4,096 characters are allowed at least), so
    that it needs no bootstrapped account, and AWS puts its ``cfnresponse`` beside it."""
    guards = safeguards or safeguards_of(scope)
    group = log_group(scope, guards, days=7)
    properties = function_properties(scope, guards)
    role = FunctionRole(
        scope,
        guards,
        "act",
        [*statements, *writing_logs(guards, group)],
        in_vpc=properties["vpc_config"] is not None,
    )
    if wildcards:
        for carrier in role.carriers:
            acknowledge_wildcard_resources(carrier, ["*"], reason=wildcards)
    function = lambda_.CfnFunction(
        scope,
        "Function",
        code=lambda_.CfnFunction.CodeProperty(
            zip_file=(_SOURCES / f"{source}.py").read_text(encoding="utf-8")
        ),
        description=description,
        handler="index.handler",
        role=role.arn,
        memory_size=256,
        timeout=timeout_seconds,
        logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=group.ref),
        **properties,
    )
    if role.before:
        function.node.add_dependency(*role.before)
    started_by_cloudformation(function)
    return CustomResourceFunction(function.attr_arn, role)


def started_by_cloudformation(function: lambda_.CfnFunction) -> None:
    """Acknowledge what scanners find in a function of custom resources."""
    rare = "Only CloudFormation starts the function."
    awaited = "CloudFormation waits for the response, and a failure fails the deployment."
    acknowledge_in_template(
        function,
        {
            "CKV_AWS_115": rare,
            "LAMBDA_CONCURRENCY_CHECK": rare,
            "CKV_AWS_116": awaited,
            "LAMBDA_DLQ_CHECK": awaited,
        },
    )


class _SharedFunction(TreePart):
    """Holds the one function for all custom resources of a kind in a stack."""

    function: CustomResourceFunction


def shared_function(scope: Construct, id: str, source: str, **given: Any) -> CustomResourceFunction:
    """The function ``id`` of the scope's stack, made with the first scope's safeguards."""
    stack = stack_of(scope)

    def make() -> _SharedFunction:
        holder = _SharedFunction(stack, id)
        guards = safeguards_of(scope)
        holder.function = custom_resource_function(holder, source, safeguards=guards, **given)
        return holder

    holder: _SharedFunction = only_child(stack, id, make)
    return holder.function
