"""Closes a VPC's default security group, which CloudFormation cannot do by itself."""

from __future__ import annotations

from aws_cdk import CustomResource, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from .findings import acknowledge_wildcard_resources
from .iam_documents import allow, arn, document, trust

__all__ = ["LAMBDA_RUNTIME", "ClosedDefaultSecurityGroup"]

LAMBDA_RUNTIME = "python3.14"
"""The newest Python runtime of AWS Lambda."""

# Inline (under 4 KiB), so that it needs no asset and no bootstrap bucket. A delete changes
# nothing: the group goes with its VPC.
_HANDLER = '''\
import boto3
import cfnresponse


def handler(event, context):
    group_id = event["ResourceProperties"]["SecurityGroupId"]
    try:
        if event["RequestType"] != "Delete":
            ec2 = boto3.client("ec2")
            group = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
            if group["IpPermissions"]:
                ec2.revoke_security_group_ingress(
                    GroupId=group_id, IpPermissions=group["IpPermissions"])
            if group["IpPermissionsEgress"]:
                ec2.revoke_security_group_egress(
                    GroupId=group_id, IpPermissions=group["IpPermissionsEgress"])
        cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, group_id)
    except Exception as error:
        print(f"closing {group_id} failed: {error!r}")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, group_id, reason=str(error))
'''


class ClosedDefaultSecurityGroup(Construct):
    """Removes the rules that every default security group is born with.

    The default group lets its members talk to each other and to everywhere. Nothing of ours uses
    it, so nothing may. It costs one Lambda function that runs once.

    Parameters
    ----------
    scope, id
        As for every construct.
    security_group_id : str
        ID of the VPC's default security group.
    """

    def __init__(self, scope: Construct, id: str, *, security_group_id: str) -> None:
        super().__init__(scope, id)
        log_group = logs.CfnLogGroup(self, "Logs", retention_in_days=7)
        log_group.apply_removal_policy(RemovalPolicy.DESTROY)
        role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=trust("lambda.amazonaws.com"),
            policies=[
                iam.CfnRole.PolicyProperty(
                    policy_name="close",
                    policy_document=document(
                        allow(["ec2:DescribeSecurityGroups"], "*"),
                        allow(
                            ["ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"],
                            arn("ec2", f"security-group/{security_group_id}"),
                        ),
                        allow(["logs:CreateLogStream", "logs:PutLogEvents"], log_group.attr_arn),
                    ),
                )
            ],
        )
        acknowledge_wildcard_resources(
            role,
            ["*"],
            reason="ec2:DescribeSecurityGroups takes no resource.",
        )
        function = lambda_.CfnFunction(
            self,
            "Function",
            code=lambda_.CfnFunction.CodeProperty(zip_file=_HANDLER),
            description="Removes the rules of a VPC's default security group",
            handler="index.handler",
            runtime=LAMBDA_RUNTIME,
            architectures=["arm64"],
            role=role.attr_arn,
            memory_size=256,
            timeout=60,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=log_group.ref),
        )
        CustomResource(
            self,
            "Rules",
            resource_type="Custom::ClosedDefaultSecurityGroup",
            service_token=function.attr_arn,
            properties={"SecurityGroupId": security_group_id},
        )
