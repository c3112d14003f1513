"""The functions that send, with role, log group, dead letters, bounds and the payloads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from ..network.private_link import RuntimePrivateLink
from ..network.zone_aligned_network import ZoneAlignedNetwork, security_group_in
from ..options.warm_up import WarmUpPayload
from ..synthesis.annotations import acknowledge
from ..synthesis.construct_tree import TreePart
from ..synthesis.lambda_functions import function_properties, package_asset
from ..synthesis.rights import document, sending_dead_letters
from ..synthesis.safeguards import FunctionRole, key_arn_of, log_group, safeguards_of, writing_logs

_PACKAGE = "warm_up_function"

_INDEX = "payloads.json"


def function_code(scope: Construct, payloads: Sequence[WarmUpPayload]) -> s3_assets.Asset:
    """One archive for all functions: the package as it stands, and the payloads beside it."""
    return package_asset(
        scope,
        Path(__file__).parent / _PACKAGE,
        lambda folder: write_payloads(payloads, folder / "payloads"),
    )


class DeadLetters(TreePart):
    """Where events go that a function could not deal with; encrypted, TLS only, for 14 days."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        key_arn = key_arn_of(safeguards_of(self))
        queue = sqs.CfnQueue(
            self,
            "Queue",
            message_retention_period=14 * 24 * 3600,
            kms_master_key_id=key_arn,
            sqs_managed_sse_enabled=None if key_arn else True,
        )
        sqs.CfnQueuePolicy(
            self,
            "Policy",
            queues=[queue.ref],
            policy_document=document(
                {
                    "Effect": "Deny",
                    "Principal": "*",
                    "Action": "sqs:*",
                    "Resource": queue.attr_arn,
                    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                }
            ),
        )
        acknowledge(queue, "AwsSolutions-SQS3", reason="The queue holds the dead letters itself.")
        self.arn: str = queue.attr_arn


class WarmUpFunction(TreePart):
    """A function of the package."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        handler: str,
        description: str,
        code: s3_assets.Asset,
        environment: Mapping[str, str],
        timeout_seconds: int,
        memory_mib: int,
        dead_letters: DeadLetters,
        statements: Sequence[Mapping[str, Any]],
        vpc: lambda_.CfnFunction.VpcConfigProperty | None = None,
        retries: int,
        event_age_seconds: int,
        reserved_concurrency: int | None,
    ) -> None:
        super().__init__(scope, id)
        guards = safeguards_of(self)
        group = log_group(self, guards, days=30)
        # With a key the right to send dead letters opens the function's environment too.
        standing = [
            *statements,
            *writing_logs(guards, group),
            *sending_dead_letters(dead_letters.arn, key_arn_of(guards)),
        ]
        properties = function_properties(self, guards)
        if vpc is not None:
            properties["vpc_config"] = vpc
        in_vpc = properties["vpc_config"] is not None
        self.role = FunctionRole(self, guards, "warm-up", standing, owner=self, in_vpc=in_vpc)
        self.function = lambda_.CfnFunction(
            self,
            "Function",
            code=lambda_.CfnFunction.CodeProperty(
                s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key
            ),
            description=description,
            handler=f"{_PACKAGE}.{handler}",
            role=self.role.arn,
            memory_size=memory_mib,
            timeout=timeout_seconds,
            environment=lambda_.CfnFunction.EnvironmentProperty(variables=dict(environment)),
            kms_key_arn=key_arn_of(guards),
            dead_letter_config=lambda_.CfnFunction.DeadLetterConfigProperty(
                target_arn=dead_letters.arn
            ),
            reserved_concurrent_executions=reserved_concurrency,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=group.ref),
            **properties,
        )
        self.function.node.add_dependency(*self.role.before)
        lambda_.CfnEventInvokeConfig(
            self,
            "Retries",
            function_name=self.function.ref,
            qualifier="$LATEST",
            maximum_retry_attempts=retries,
            maximum_event_age_in_seconds=event_age_seconds,
        )
        self.arn: str = self.function.attr_arn

    def allow(self, *statements: Mapping[str, Any]) -> Construct:
        """Add to what the function may do: a policy, which follows its content."""
        policy = self.role.also("May", *statements)
        self.function.node.add_dependency(policy)
        return policy

    def on(
        self, id: str, *, description: str, input: str | None = None, **rule: Any
    ) -> events.CfnRule:
        """Run on an EventBridge rule: ``event_pattern`` or ``schedule_expression``."""
        made = events.CfnRule(
            self,
            id,
            description=description,
            targets=[events.CfnRule.TargetProperty(id="controller", arn=self.arn, input=input)],
            **rule,
        )
        lambda_.CfnPermission(
            self,
            f"{id}Permission",
            action="lambda:InvokeFunction",
            function_name=self.function.ref,
            principal="events.amazonaws.com",
            source_arn=made.attr_arn,
        )
        return made


def write_payloads(payloads: Sequence[WarmUpPayload], folder: Path) -> None:
    """Write bodies and their headers where the function finds them."""
    folder.mkdir()
    index = []
    for number, payload in enumerate(payloads):
        (folder / str(number)).write_bytes(payload.body)
        index.append({"File": str(number), **payload.headers})
    (folder / _INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")


def payload_digest(payloads: Sequence[WarmUpPayload]) -> str:
    """Changes with the payloads: a new payload is tried at once."""
    from hashlib import sha256  # OpenSSL: a tenth of what importing the constructs takes

    digest = sha256()
    for payload in payloads:
        digest.update(json.dumps([payload.headers, len(payload.body)]).encode())
        digest.update(payload.body)
    return digest.hexdigest()[:16]


def sender_group(
    scope: Construct, network: ZoneAlignedNetwork, private_link: RuntimePrivateLink, who: str
) -> ec2.SecurityGroup:
    """A group that lets nothing in, and nothing out but to the interface endpoint."""
    group = security_group_in(
        network,
        scope,
        "SecurityGroup",
        f"{who}: nothing in, the SageMaker Runtime interface endpoint out",
    )
    private_link.allow_from(group, who)
    if not private_link.connections.security_groups:
        # An adopted interface endpoint whose groups are unknown: no rule could be added to them.
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "HTTPS, to the endpoint")
        return group
    # The rule towards the link's group is a resource of its own, for which the CDK drops its
    # stand-in; EC2 gives a group that is created without any rule one that allows everything.
    resource = cast(ec2.CfnSecurityGroup, group.node.default_child)
    resource.security_group_egress = [
        ec2.CfnSecurityGroup.EgressProperty(
            cidr_ip="255.255.255.255/32",
            ip_protocol="icmp",
            from_port=252,
            to_port=86,
            description="Disallow all traffic",
        )
    ]
    return group
