"""Waits, on delete, until SageMaker's network interfaces have left security groups."""

import json
import time

import cfnresponse

GOING = "DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"
WAIT, WAIT_FOR_OTHERS = 57 * 60, 20 * 60  # CloudFormation waits for an hour at most


def handler(event, context):
    properties = event["ResourceProperties"]
    name = event["LogicalResourceId"] + "/" + ",".join(properties["GroupIds"])
    # All of the model's interfaces are in each of its groups: one that goes with the stack will do.
    groups = properties.get("OwnGroupIds") or properties["GroupIds"]
    status, reason = cfnresponse.SUCCESS, None
    try:
        if event["RequestType"] == "Delete":
            left = drained(event, context, groups)
            if left is None:
                return  # the next invocation goes on, and answers
            if left:
                status = cfnresponse.FAILED
                reason = (f"SageMaker still has {len(left)} network interfaces in "
                          f"{', '.join(groups)} after {WAIT // 60} minutes: {', '.join(left[:9])}."
                          " Delete the stack again later; role and network wait for that.")
    except Exception as error:
        # Who may not look must not hold the stack: CloudFormation tries the groups for itself.
        print(f"waiting for {groups} ended: {error!r}")
    cfnresponse.send(event, context, status, {}, name, reason=reason)


def drained(event, context, groups):
    """What is left at the end; nothing when the waiting goes on in another invocation."""
    import boto3

    ec2 = boto3.client("ec2")
    started = event.setdefault("Started", time.time())
    if "Own" not in event:
        stack = boto3.client("cloudformation").describe_stacks(StackName=event["StackId"])
        going = stack["Stacks"][0]["StackStatus"] in GOING
        event["Own"] = going and bool(event["ResourceProperties"].get("OwnGroupIds"))
    left = ["which ones is not known"]
    while True:
        try:
            found = ec2.describe_network_interfaces(
                Filters=[{"Name": "group-id", "Values": groups}])["NetworkInterfaces"]
            left = [interface["NetworkInterfaceId"] for interface in found]
        except Exception as error:  # throttled, or the network: the next look may do
            if "UnauthorizedOperation" in str(error) or "AccessDenied" in str(error):
                raise
            print(f"could not look: {error!r}")
        waited = time.time() - started
        print(f"{len(left)} network interfaces in {groups} after {waited:.0f} s: {left[:9]}")
        if not left:
            return []
        if not event["Own"] and waited >= WAIT_FOR_OTHERS:
            print("they may be of others: not waited for any longer")
            return []
        if waited >= WAIT:
            return left
        pause = min(15, waited + 1)  # 1, 2, 4, 8, and then every 15 seconds
        if context.get_remaining_time_in_millis() < (pause + 15) * 1000:
            boto3.client("lambda").invoke(
                FunctionName=context.invoked_function_arn, InvocationType="Event",
                Payload=json.dumps(event))
            return None
        time.sleep(pause)
