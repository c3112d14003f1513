"""Answers with the names that a custom resource's properties had before and have no more."""

import cfnresponse

LONGEST = 3500  # CloudFormation takes 4,096 bytes of an answer
OWN = ("ServiceToken", "ServiceTimeout")


def handler(event, context):
    now = {kind: names for kind, names in event["ResourceProperties"].items() if kind not in OWN}
    before = event.get("OldResourceProperties", {})
    former = {
        kind: ",".join([name for name in before.get(kind, ()) if name not in names] or names[:1])
        for kind, names in now.items()
    }
    length = sum(map(len, former.values()))
    print(f"{event['RequestType']}: {former}")
    if event["RequestType"] == "Delete" or length <= LONGEST:
        cfnresponse.send(event, context, cfnresponse.SUCCESS, former, event["LogicalResourceId"])
        return
    reason = (
        f"{length} characters of names go at once, and at most {LONGEST} can be kept for what "
        "still uses them: take them out in several deployments."
    )
    cfnresponse.send(
        event, context, cfnresponse.FAILED, {}, event["LogicalResourceId"], reason=reason
    )
