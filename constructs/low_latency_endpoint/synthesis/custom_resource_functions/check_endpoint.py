"""Fails a deployment after which an endpoint does not serve the configuration it was given."""

import time

import boto3
import cfnresponse

BUSY = ("Creating", "Updating", "SystemUpdating", "RollingBack")
PAUSE = 5
MARGIN = 30  # seconds for the answer


def handler(event, context):
    properties = event["ResourceProperties"]
    name = properties["EndpointName"]
    try:
        # There is nothing to confirm, and neither may fail for it.
        relaxed = event["RequestType"] == "Delete" or rolling_back(event["StackId"])
        problem = "" if relaxed else check(name, properties["EndpointConfigName"], context)
    except Exception as error:
        problem = f"It could not be checked what {name} serves: {error}"
    print(f"{event['RequestType']} {name}: {problem or 'no objection'}")
    status = cfnresponse.FAILED if problem else cfnresponse.SUCCESS
    cfnresponse.send(event, context, status, {}, name, reason=problem[:2000] or None)


def rolling_back(stack_id):
    stacks = boto3.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"]
    return "ROLLBACK" in stacks[0]["StackStatus"]


def check(name, wanted, context):
    found = settled(name, context)
    status, serving = found["EndpointStatus"], found["EndpointConfigName"]
    failure = found.get("FailureReason", "")
    said = f"SageMaker's FailureReason: {failure[:1000] or 'none given'}."
    if serving != wanted:
        return (
            f"{name} is {status} with configuration {serving}, not with {wanted}: SageMaker "
            f"rolled the update back. {said} Look at its rollback alarms and at the log group "
            f"/aws/sagemaker/Endpoints/{name}, mend the cause, deploy again. If the stack ends in "
            "UPDATE_ROLLBACK_FAILED: low-latency verify prints the command that goes on."
        )
    # With the right configuration only scaling or maintenance is left to wait for: that may last.
    if status != "InService" and status not in BUSY:
        return f"{name} is {status} with configuration {serving}. {said}"
    if failure:
        return (
            f"{name} serves {serving}, but its last change failed. {said} SageMaker drops the "
            "reason with the next update: deploy with any change of the configuration, or "
            "once with confirm_updates off."
        )
    return ""


def settled(name, context):
    sagemaker = boto3.client("sagemaker")
    while True:
        late = context.get_remaining_time_in_millis() < (MARGIN + PAUSE) * 1000
        try:
            found = sagemaker.describe_endpoint(EndpointName=name)
            if late or found["EndpointStatus"] not in BUSY:
                return found
        except Exception as error:
            # The right to ask may be seconds old.
            if late or "AccessDenied" not in str(error):
                raise
        time.sleep(PAUSE)
