"""An encrypted SNS topic that CloudWatch alarms may publish to."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from ..options.argument_kinds import checked_arguments
from ..synthesis.arns import arn
from ..synthesis.safeguards import safeguards_of


@checked_arguments
class AlarmTopic(Construct):
    """A topic for alarms, encrypted with a KMS key that CloudWatch may use.

    With AWS's own key for SNS an alarm cannot publish: its key policy does not know CloudWatch.

    Attributes
    ----------
    topic : aws_sns.Topic
    action : aws_cloudwatch.IAlarmAction
        For ``actions=`` of :class:`LatencyAlarms`.

    Examples
    --------
    >>> from aws_cdk import App, Stack
    >>> from low_latency_endpoint import AlarmTopic
    >>> topic = AlarmTopic(Stack(App(), "OnCall"), "Topic", emails=["on-call@example.com"])
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        emails: Sequence[str] = (),
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """A topic for alarms, encrypted with a KMS key that CloudWatch may use.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            emails: Addresses that get a message, after they have confirmed.
            encryption_key: By default that of :class:`Safeguards`, else a new one, with yearly rotation. One that is not made in the app must let ``cloudwatch.amazonaws.com`` decrypt and generate data keys.
        """
        super().__init__(scope, id)
        key = (
            encryption_key
            or safeguards_of(self).encryption_key
            or kms.Key(
                self,
                "Key",
                enable_key_rotation=True,
                removal_policy=RemovalPolicy.DESTROY,
                description="Alarms of low-latency endpoints",
            )
        )
        key.add_to_resource_policy(  # does nothing to a key that is not made in the app
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                resources=["*"],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        self.topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnLike": {"aws:SourceArn": arn("cloudwatch", "alarm:*")},
                },
            )
        )
        for index, email in enumerate(emails):
            sns.CfnSubscription(
                self,
                f"Email{index}",
                topic_arn=self.topic.topic_arn,
                protocol="email",
                endpoint=email,
            )
        # As the interface: Pyright does not see that CDK's class has it.
        self.action: cloudwatch.IAlarmAction = cloudwatch_actions.SnsAction(self.topic)
