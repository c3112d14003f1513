"""What the stack refers to and does not make: role, alarm topic, keys; and who may pass a role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...account.calls import Account, json_object, side_by_side
from ...account.keys import described_key
from ...errors import ConfigurationError
from ...errors.findings import path_of
from ...facts.homes import Home
from ...options.option import with_a_home
from ..checking.checks import Outcome, check, failed, passed, unknown, warned
from ..checking.policies import verdict
from .context import PreflightContext
from .deploying_role import DeployingStatement, DeploymentPlace, needed_statements

SAGEMAKER = "sagemaker.amazonaws.com"
TRUSTED = {
    "role_arn": SAGEMAKER,
    "function_role_arn": "lambda.amazonaws.com",
    "flow_log_role_arn": "vpc-flow-logs.amazonaws.com",
}
"""Which service a role has to trust, by the setting that states it."""
QUALIFIER = "hnb659fds"

_ROLES = "/sagemaker/latest/dg/sagemaker-roles.html"
_SIMULATION = "/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html"
_PASSED = "iam:PassedToService"


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


@check(
    "LLP502",
    "The deploying role may make what the stack needs",
    how="Simulates the statements of docs/reference/deploying-role.md with IAM: for --deploying-role, "
    "or the CDK bootstrap's execution role, or you.",
    source=_SIMULATION,
)
def deploying_role(context: PreflightContext) -> Iterator[Outcome]:
    """What the role may not, statement by statement; or one pass."""
    account, settings = context.account, context.settings
    deployer = context.deploying_role or _deployer(account)
    if deployer is None:
        yield unknown(
            "IAM can simulate only users and roles, and the deploying identity is neither"
        )
        return
    place = DeploymentPlace(
        settings.stack_name,
        account.account_id(),
        account.region,
        account.partition(),
        settings.parameters or "",
    )
    questions = [
        (statement, value, patterns)
        for statement in needed_statements(settings)
        for value, patterns in _questions(context, statement)
    ]
    answers = side_by_side(lambda question: _denied(account, deployer, place, *question), questions)
    who = deployer.rpartition("/")[2]
    for (statement, _, patterns), denied in zip(questions, answers, strict=True):
        if denied:
            outcome = warned if any(map(_is_made_up, patterns)) else failed
            yield outcome(
                f"{who} may not {', '.join(denied)} on {', '.join(map(place.arn, patterns))}, "
                "by IAM's simulation",
                f"Allow it: statement {statement.sid} of docs/reference/deploying-role.md.",
                about=statement.sid,
            )
    if not any(answers):
        sids = dict.fromkeys(statement.sid for statement, _, _ in questions)
        yield passed(
            f"{who} has the rights of {', '.join(sids)}, by IAM's simulation, which does not know "
            "all session policies"
        )


def _questions(
    context: PreflightContext, statement: DeployingStatement
) -> Iterator[tuple[str, Sequence[str]]]:
    """What is simulated for a statement: a value of its condition, and on what.

    Of roles that may be passed to a service, these are those that are stated for it, or else one
    that the stack makes.
    """
    key, values = statement.condition or ("", ("",))
    for value in values:
        stated = [arn for _, arn, service in _roles(context) if service == value]
        if key != _PASSED or not stated:
            yield value, statement.resources
            continue
        yield value, stated
        endpoints = context.settings.endpoints.values()
        if value == SAGEMAKER and any(endpoint.role_arn is None for endpoint in endpoints):
            yield value, statement.resources


def _denied(
    account: Account,
    deployer: str,
    place: DeploymentPlace,
    statement: DeployingStatement,
    value: str,
    patterns: Sequence[str],
) -> list[str]:
    """The actions of a statement that are allowed on none of the resources."""
    key, _ = statement.condition or ("", ())
    entry = {"ContextKeyName": key, "ContextKeyType": "string", "ContextKeyValues": [value]}
    results = account.every(
        "iam",
        "simulate_principal_policy",
        "EvaluationResults",
        PolicySourceArn=deployer,
        ActionNames=statement.actions,
        ResourceArns=[
            arn if arn == "*" else arn.replace("*", "x") for arn in map(place.arn, patterns)
        ],
        ContextEntries=[entry] if key else [],
    )
    allowed = {result["EvalActionName"] for result in results if _is_allowed(result)}
    return [action for action in statement.actions if action not in allowed]


def _is_allowed(result: Mapping[str, Any]) -> bool:
    """Whether an action is allowed on one of the resources at least."""
    parts = result.get("ResourceSpecificResults", ())
    decisions = [result["EvalDecision"], *(part["EvalResourceDecision"] for part in parts)]
    return "allowed" in decisions


def _is_made_up(pattern: str) -> bool:
    """Whether the name that is simulated is none of the stack's: a narrower policy may deny it alone."""
    before = pattern.removesuffix("{stack}-*").removesuffix("{bucket}-*")
    return pattern != "*" and "*" in before


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
