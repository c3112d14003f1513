"""What the stack refers to and does not make: role, alarm topic, keys; and who may pass a role."""

from __future__ import annotations

from collections.abc import Iterator

from ...account.calls import Account, json_object
from ...account.keys import described_key
from ...errors import ConfigurationError
from ...errors.findings import path_of
from ...facts.homes import Home
from ...options.option import with_a_home
from ..checking.checks import Outcome, check, endpoint_check, failed, passed, unknown, warned
from ..checking.policies import verdict
from .context import PlannedEndpoint, PreflightContext

SAGEMAKER = "sagemaker.amazonaws.com"
TRUSTED = {
    "role_arn": SAGEMAKER,
    "function_role_arn": "lambda.amazonaws.com",
    "flow_log_role_arn": "vpc-flow-logs.amazonaws.com",
}
"""Which service a role has to trust, by the setting that states it."""
QUALIFIER = "hnb659fds"

_ROLES = "/sagemaker/latest/dg/sagemaker-roles.html"
_PASS = "/IAM/latest/UserGuide/id_roles_use_passrole.html"


def _roles(context: PreflightContext) -> Iterator[tuple[str, str, str]]:
    return (
        (path_of(place), arn, TRUSTED[str(place[-1])])
        for place, arn in with_a_home(context.settings)
        if ":iam:" in arn
    )


@check(
    "LLP501",
    "Stated roles exist and trust their service",
    how="Roles of models, functions and flow logs; one of another account cannot be passed.",
    source=_ROLES,
    each=_roles,
)
def role_trusts(context: PreflightContext, arn: str, service: str) -> Outcome:
    if (elsewhere := _not_at_home(context.account, arn)) is not None:
        return elsewhere
    name = arn.rpartition("/")[2]
    answer = context.account.read("iam", "get_role", ("NoSuchEntity",), RoleName=name)
    if answer is None:
        return failed(
            f"there is no role {name}", "Create it, or leave it out: the stack then makes one."
        )
    trust = json_object(answer["Role"]["AssumeRolePolicyDocument"])
    owner = arn.split(":")[4]
    mine = {"aws:SourceAccount": owner, "aws:ResourceAccount": owner}
    found = verdict(trust, "sts:AssumeRole", arn, mine, service)
    if found.allowed:
        return passed(f"{name} trusts {service}")
    if found.allowed is None:
        return unknown(
            f"whether {name} trusts {service} depends on what is not read here: "
            f"{', '.join(found.depends_on)}"
        )
    return failed(
        f"the trust policy of {name} does not let {service} assume it",
        f"Let {service} sts:AssumeRole it.",
    )


def _not_at_home(account: Account, arn: str) -> Outcome | None:
    """What is wrong with an ARN's partition, Region or account, if anything is."""
    try:
        Home(account.region, account.account_id()).check(arn)
    except ConfigurationError as error:
        return failed(error.what, error.fix)
    return None


@endpoint_check(
    "LLP502",
    "The execution role may be passed to SageMaker",
    how="Simulates the policies of the CDK bootstrap's execution role, or yours, with IAM.",
    source=_PASS,
)
def role_passable(context: PlannedEndpoint) -> Outcome:
    account, arn = context.account, context.settings.role_arn
    partition, number = account.partition(), account.account_id()
    actions, role = ["iam:PassRole"], arn
    if arn is None:
        actions = ["iam:CreateRole", "iam:PassRole"]
        role = f"arn:{partition}:iam::{number}:role/{context.stack.settings.stack_name}-model"
    deployer = _deployer(account)
    if deployer is None:
        return unknown(
            "IAM can simulate only users and roles, and the deploying identity is neither"
        )
    answer = account.read(
        "iam",
        "simulate_principal_policy",
        PolicySourceArn=deployer,
        ActionNames=actions,
        ResourceArns=[role],
        ContextEntries=[
            {
                "ContextKeyName": "iam:PassedToService",
                "ContextKeyType": "string",
                "ContextKeyValues": [SAGEMAKER],
            }
        ],
    )
    who = deployer.rpartition("/")[2]
    denied = [
        result["EvalActionName"]
        for result in answer["EvaluationResults"]
        if result["EvalDecision"] != "allowed"
    ]
    if denied:
        return failed(
            f"{who} may not {', '.join(denied)} on {role}, by IAM's simulation",
            f"Allow {', '.join(denied)} on the role to {deployer}.",
        )
    return passed(
        f"{who} may {', '.join(actions)}, by IAM's simulation, which does not know "
        "all session policies"
    )


def _deployer(account: Account) -> str | None:
    """Who makes the resources: the bootstrap's execution role, else the caller's own identity."""
    arn = str(account.identity()["Arn"])
    execution = f"cdk-{QUALIFIER}-cfn-exec-role-{account.account_id()}-{account.region}"
    found = account.read("iam", "get_role", ("NoSuchEntity",), RoleName=execution)
    if found is not None:
        return str(found["Role"]["Arn"])
    kind = arn.split(":")[5].partition("/")[0]
    if kind == "assumed-role":
        # The session's ARN lacks the role's path.
        found = account.read("iam", "get_role", ("NoSuchEntity",), RoleName=arn.split("/")[1])
        return None if found is None else str(found["Role"]["Arn"])
    return arn if kind == "user" else None


@check(
    "LLP503",
    "The alarm topic exists and has subscribers",
    how="Checks the Region, confirmed subscriptions, and that CloudWatch may use the key.",
    source="/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html",
)
def alarm_topic(context: PreflightContext) -> Outcome | None:
    arn = context.settings.alarm_topic_arn
    if arn is None:
        return None
    region = arn.split(":")[3]
    if region != context.account.region:
        return failed(
            f"the topic is in {region}, the alarms in {context.account.region}: an alarm "
            "notifies topics of its own region",
            f"Name a topic in {context.account.region}.",
        )
    answer = context.account.read("sns", "get_topic_attributes", ("NotFound",), TopicArn=arn)
    if answer is None:
        return failed(f"there is no topic {arn}", "Create it, or correct `alarm_topic_arn`.")
    attributes = answer["Attributes"]
    confirmed = int(attributes.get("SubscriptionsConfirmed", "0") or 0)
    if attributes.get("KmsMasterKeyId") == "alias/aws/sns":
        return warned(
            "the topic is encrypted with alias/aws/sns, whose key policy does not let "
            "CloudWatch publish",
            "Encrypt the topic with your own key, and let cloudwatch.amazonaws.com use the key.",
        )
    if confirmed == 0:
        return warned(
            "nobody has confirmed a subscription to the topic",
            "Subscribe those who are on call, and confirm.",
        )
    return passed(f"{arn.rpartition(':')[2]}: {confirmed} confirmed subscriptions")


def _keys(context: PreflightContext) -> Iterator[tuple[str, str]]:
    return ((path_of(place), arn) for place, arn in with_a_home(context.settings) if ":kms:" in arn)


@check(
    "LLP504",
    "The KMS keys are enabled",
    how="Every key that the settings state.",
    source="/kms/latest/developerguide/key-state.html",
    each=_keys,
)
def keys_enabled(context: PreflightContext, arn: str) -> Outcome:
    if (elsewhere := _not_at_home(context.account, arn)) is not None:
        return elsewhere
    key = described_key(context.account, arn)
    if key is None:
        return failed(f"there is no key {arn}", "Correct the ARN.")
    evidence = f"{key['KeyId']}: {key.get('KeyState', '?')}, {key.get('KeyUsage', '?')}"
    if key.get("KeyState") != "Enabled":
        return failed(evidence, "Enable the key, or cancel its deletion.")
    if key.get("KeyUsage", "ENCRYPT_DECRYPT") != "ENCRYPT_DECRYPT":
        return failed(evidence, "Name a symmetric key for encryption.")
    return passed(evidence)
