"""Removes the rules of a security group. A delete changes nothing: the group goes with its VPC."""

import time

import boto3
import cfnresponse

PAUSE, PATIENCE = 5, 60  # seconds


def handler(event, context):
    group_id = event["ResourceProperties"]["SecurityGroupId"]
    try:
        if event["RequestType"] != "Delete":
            close(group_id)
        cfnresponse.send(event, context, cfnresponse.SUCCESS, {}, group_id)
    except Exception as error:
        print(f"closing {group_id} failed: {error!r}")
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, group_id, reason=str(error))


def close(group_id):
    ec2 = boto3.client("ec2")
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            group = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
            if group["IpPermissions"]:
                ec2.revoke_security_group_ingress(
                    GroupId=group_id, IpPermissions=group["IpPermissions"])
            if group["IpPermissionsEgress"]:
                ec2.revoke_security_group_egress(
                    GroupId=group_id, IpPermissions=group["IpPermissionsEgress"])
            return
        except Exception as error:
            # The role is seconds old: its rights may not have reached EC2 yet.
            if "UnauthorizedOperation" not in str(error) or time.monotonic() > ends:
                raise
            time.sleep(PAUSE)
