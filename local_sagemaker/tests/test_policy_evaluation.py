"""The evaluator, held against the rules and examples of IAM's documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_sagemaker.permissions.evaluator import (
    Asked,
    Decision,
    NotJudged,
    Policies,
    Policy,
    Principal,
    allows_everything,
    decide,
    holds,
    read_policy,
)

ROWS = yaml.safe_load(Path(__file__).with_name("policy_rows.yaml").read_text())
ACCOUNT, OTHER = "111122223333", "444455556666"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/JohnDoe"
SESSION = Principal(f"arn:aws:sts::{ACCOUNT}:assumed-role/JohnDoe/work", ACCOUNT, ROLE)
USER = Principal(f"arn:aws:iam::{ACCOUNT}:user/Nikki", ACCOUNT)
SERVICE = Principal("sns.amazonaws.com")
OBJECT = "arn:aws:s3:::example-bucket/folder/object"


def policy(*statements: dict[str, Any], version: str = "2012-10-17") -> Policy:
    """Write a policy of statements that allow, unless they say otherwise."""
    full = [{"Effect": "Allow", **each} for each in statements]
    return read_policy(json.dumps({"Version": version, "Statement": full}))


def allow(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Action": action, "Resource": resource, **more}


def judge(
    identity: list[Policy],
    *,
    action: str = "s3:GetObject",
    on: str = OBJECT,
    who: Principal = SESSION,
    account: str = ACCOUNT,
    context: dict[str, Any] | None = None,
    **policies: Any,
) -> Decision:
    asked = Asked(who, action, on, account, context or {})
    return decide(asked, Policies(tuple(identity), **policies))


def denied(kind: str, action: str = "s3:GetObject") -> Decision:
    return Decision(False, f"because no {kind} allows the {action} action")


EVERYTHING = policy(allow())
NOTHING = policy(allow("sqs:SendMessage"))
DENY = policy(allow("s3:*", Effect="Deny"))
DENY_ALL = policy(allow("s3:*", Effect="Deny", Principal="*"))
TO_ALL = policy(allow(Principal="*"))
GRANTED = Decision(True)

# --------------------------------------------------------------- the order of evaluation


def to(*names: str) -> Policy:
    """A policy of a resource that allows these principals."""
    return policy(allow(Principal={"AWS": list(names)}))


ROOT = f"arn:aws:iam::{ACCOUNT}:root"
S3 = policy(allow("s3:*"))
DECRYPT = {"action": "kms:Decrypt", "resource_decides": True}


@pytest.mark.parametrize(
    ("identity", "given", "lacks"),
    [
        ([], {}, "identity-based policy"),
        ([NOTHING], {}, "identity-based policy"),
        ([NOTHING, policy(allow("s3:GetObject", OBJECT))], {}, None),  # one of several allows
        # "Permissions boundaries": the effective permissions are the intersection of both.
        ([EVERYTHING], {"boundary": S3}, None),
        ([EVERYTHING], {"boundary": NOTHING}, "permissions boundary"),
        ([NOTHING], {"boundary": EVERYTHING}, "identity-based policy"),
        ([EVERYTHING], {"session": S3}, None),
        ([EVERYTHING], {"session": NOTHING}, "session policy"),
        ([NOTHING], {"session": EVERYTHING}, "identity-based policy"),
        # In one account the resource's policy is enough, for whom it names itself.
        ([], {"resource": to(ROLE)}, None),
        ([], {"resource": to(ROLE), "who": USER}, "identity-based policy"),
        ([], {"resource": to(ACCOUNT)}, "identity-based policy"),
        ([], {"resource": to(ROOT)}, "identity-based policy"),
        ([EVERYTHING], {"resource": to(ACCOUNT)}, None),
        ([EVERYTHING], {"resource": to(ROOT)}, None),
        # "Evaluating effective permissions": limits of the role, not of its session or of a user.
        ([], {"resource": to(ROLE), "boundary": NOTHING}, "permissions boundary"),
        ([], {"resource": to(ROLE), "session": NOTHING}, "session policy"),
        ([], {"resource": to(SESSION.arn), "boundary": NOTHING, "session": NOTHING}, None),
        ([], {"resource": to(USER.arn), "boundary": NOTHING, "who": USER}, None),
        # Between accounts both have to allow.
        ([EVERYTHING], {"resource": to(ROLE), "account": OTHER}, None),
        ([EVERYTHING], {"resource": to(ACCOUNT), "account": OTHER}, None),
        ([], {"resource": to(ROLE), "account": OTHER}, "identity-based policy"),
        ([], {"resource": to(ACCOUNT), "account": OTHER}, "identity-based policy"),
        ([EVERYTHING], {"account": OTHER}, "resource-based policy"),
        # KMS developer guide, "Key policies": without it IAM policies have no effect.
        ([EVERYTHING], {**DECRYPT, "resource": to(USER.arn)}, "resource-based policy"),
        ([EVERYTHING], {**DECRYPT, "resource": to(ROOT)}, None),
        ([], {**DECRYPT, "resource": to(ROOT)}, "identity-based policy"),
        ([], {**DECRYPT, "resource": to(ROLE)}, None),
        # The VPC endpoint that a request comes through.
        ([EVERYTHING], {"endpoint": policy(allow("sqs:*", Principal="*"))}, "VPC endpoint policy"),
        ([EVERYTHING], {"endpoint": TO_ALL}, None),
        ([], {"endpoint": TO_ALL}, "identity-based policy"),
    ],
)
def test_who_has_to_allow(identity: list[Policy], given: dict[str, Any], lacks: str | None) -> None:
    refused = denied(lacks, given.get("action", "s3:GetObject")) if lacks else GRANTED
    assert judge(identity, **given) == refused


@pytest.mark.parametrize("nearest", [ROLE, SESSION.arn])
@pytest.mark.parametrize("last", [False, True])
def test_of_several_statements_the_one_that_names_the_caller_nearest_counts(
    nearest: str, last: bool
) -> None:
    """IAM user guide, "Policy evaluation logic": statements are joined by OR, in any order."""
    statements = [allow(Principal={"AWS": name}) for name in (nearest, ACCOUNT)]
    resource = policy(*(reversed(statements) if last else statements))
    assert judge([], resource=resource) == GRANTED


@pytest.mark.parametrize(
    ("kind", "policies"),
    [
        ("an identity-based policy", {"identity": [EVERYTHING, DENY]}),
        ("a permissions boundary", {"boundary": DENY}),
        ("a session policy", {"session": DENY}),
        ("a resource-based policy", {"resource": DENY_ALL}),
        ("a VPC endpoint policy", {"endpoint": DENY_ALL}),
    ],
)
def test_an_explicit_deny_of_any_policy_overrides_every_allow(
    kind: str, policies: dict[str, Any]
) -> None:
    everywhere = {"boundary": EVERYTHING, "session": EVERYTHING}
    everywhere |= {"resource": TO_ALL, "endpoint": TO_ALL}
    assert judge([EVERYTHING], **everywhere) == GRANTED
    identity = policies.pop("identity", [EVERYTHING])
    assert judge(identity, **{**everywhere, **policies}) == Decision(
        False, f"with an explicit deny in {kind}"
    )


def test_a_service_has_what_the_resource_gives_it() -> None:
    service = {"Principal": {"Service": "sns.amazonaws.com"}}
    mine = {"Condition": {"StringEquals": {"aws:SourceAccount": ACCOUNT}}}
    for_service = policy({"Action": "sts:AssumeRole", **service, **mine})
    trust = {"resource": for_service, "resource_decides": True, "who": SERVICE}
    asks = {"action": "sts:AssumeRole", "on": ROLE}
    mine, others = ({"aws:sourceaccount": each} for each in (ACCOUNT, OTHER))
    assert judge([], **trust, **asks, context=mine) == GRANTED
    refused = denied("resource-based policy", "sts:AssumeRole")
    assert judge([], **trust, **asks, context=others) == refused
    assert judge([], **trust, **asks) == refused
    assert judge([EVERYTHING], **{**trust, "who": SESSION}, **asks, context=mine) == refused


# ----------------------------------------------------------------------- actions, resources


@pytest.mark.parametrize(("pattern", "matches"), ROWS["actions"])
def test_actions_match_in_any_case_and_by_wildcards(pattern: str, matches: bool) -> None:
    assert judge([policy(allow(pattern))]).allowed is matches


@pytest.mark.parametrize(("pattern", "resource", "matches"), ROWS["resources"])
def test_resources_match_field_by_field(pattern: str, resource: str, matches: bool) -> None:
    assert judge([policy(allow("*", pattern))], on=resource).allowed is matches


MANY = "*a" * 100 + "b"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("end", ["", "b"])
@pytest.mark.parametrize(
    "statement",
    [
        allow(f"s3:{MANY}"),
        allow("*", f"arn:aws:s3:::{MANY}"),
        allow("*", f"arn:aws:s3:::${{first}}{MANY}"),
        allow(Condition={"StringLike": {"text": MANY}}),
        allow(Condition={"StringLike": {"text": f"${{first}}{MANY}"}}),
        allow(Condition={"ArnLike": {"arn": f"arn:aws:s3:::{MANY}"}}),
    ],
)
def test_many_stars_take_no_time(statement: dict[str, Any], end: str) -> None:
    """Python's regular expressions take the length to the power of the stars."""
    text = "a" * 2000 + end
    resource = f"arn:aws:s3:::{text}"
    context = {"text": text, "arn": resource, "first": "a"}
    asked = {"action": f"s3:{text}", "on": resource, "context": context}
    assert judge([policy(statement)], **asked).allowed is bool(end)


def test_not_action_with_allow_is_everything_else() -> None:
    # IAM user guide, "NotAction": all of S3 but the deletion of a bucket.
    but_iam = policy({"NotAction": "iam:*", "Resource": "*"})
    assert judge([but_iam]) == GRANTED
    assert not judge([but_iam], action="iam:CreateUser").allowed


def test_not_action_with_deny_denies_all_others() -> None:
    only = policy({"Effect": "Deny", "NotAction": ["iam:*", "s3:Get*"], "Resource": "*"})
    assert judge([EVERYTHING, only]) == GRANTED
    assert not judge([EVERYTHING, only], action="s3:PutObject").allowed


def test_not_resource_is_every_other_one() -> None:
    # IAM user guide, "NotResource": deny everything but one bucket and its folder.
    but_folder = {"NotResource": "arn:aws:s3:::example-bucket/folder/*"}
    inside = policy({"Effect": "Deny", "Action": "s3:*", **but_folder})
    assert judge([EVERYTHING, inside]) == GRANTED
    assert not judge([EVERYTHING, inside], on="arn:aws:s3:::example-bucket/else").allowed
    assert not judge([EVERYTHING, inside], on="arn:aws:s3:::other/folder/x").allowed


# -------------------------------------------------------------------------------- conditions


@pytest.mark.parametrize(("operator", "wanted", "given", "result"), ROWS["operators"])
def test_condition_operators(operator: str, wanted: str, given: Any, result: bool) -> None:
    assert holds(operator, "K:Key", [wanted], context_of("k:key", given)) is result


def context_of(key: str, given: Any) -> dict[str, Any]:
    """A context with a key's value, or all of its values; without the key for null."""
    if given is None:
        return {}
    return {key: tuple(given) if isinstance(given, list) else given}


def test_several_values_are_alternatives_and_of_a_negated_operator_none() -> None:
    context = {"k": "b"}
    assert holds("StringEquals", "k", ["a", "b"], context)
    assert not holds("StringNotEquals", "k", ["a", "b"], context)
    assert holds("StringNotEquals", "k", ["a", "c"], context)


@pytest.mark.parametrize(("operator", "given", "result"), ROWS["several"])
def test_keys_with_several_values(operator: str, given: Any, result: bool) -> None:
    context = context_of("aws:tagkeys", given)
    assert holds(operator, "aws:TagKeys", ["a", "b"], context) is result


def test_all_operators_and_keys_of_a_condition_have_to_hold() -> None:
    place = {"aws:SourceVpc": "vpc-1", "aws:PrincipalAccount": ACCOUNT}
    wanted = {"StringEquals": place, "Bool": {"aws:SecureTransport": True}}
    both = policy(allow(Condition=wanted))
    right = {name.lower(): value for name, value in place.items()}
    right["aws:securetransport"] = "true"
    assert judge([both], context=right) == GRANTED
    for missing in right:
        assert not judge([both], context={**right, missing: "other"}).allowed


# --------------------------------------------------------------------------------- variables


def test_variables_are_filled_in_and_their_wildcards_are_letters() -> None:
    # IAM user guide, "Variables and tags": a home folder for each user.
    home = policy(allow("s3:*", "arn:aws:s3:::example-bucket/home/${aws:username}/*"))
    mine = "arn:aws:s3:::example-bucket/home/Nikki/a"
    assert judge([home], on=mine, context={"aws:username": "Nikki"}) == GRANTED
    assert not judge([home], on=mine, context={"aws:username": "Bob"}).allowed
    assert not judge([home], on=mine, context={"aws:username": "*"}).allowed
    assert not judge([home], on=mine).allowed


@pytest.mark.parametrize(("operator", "wanted", "result"), ROWS["variables"])
def test_wildcards_before_a_variable_are_those_of_the_operator(
    operator: str, wanted: str, result: bool
) -> None:
    """IAM user guide, "Condition operators": of a string only StringLike takes * and ?."""
    context = {"k": "home/Nikki", "aws:username": "Nikki"}
    assert holds(operator, "k", [wanted], context) is result


def test_a_variable_without_one_value_matches_nothing() -> None:
    """IAM user guide, "Variables and tags": a key that is not there, or one of several values."""
    home = policy(allow("s3:*", "arn:aws:s3:::example-bucket/home/${aws:username}/*"))
    nobody = "arn:aws:s3:::example-bucket/home//a"
    assert not judge([home], on=nobody).allowed
    assert not judge([home], on=nobody, context={"aws:username": ""}).allowed
    several = {"k": "red", "aws:tagkeys": ("red",)}
    assert not holds("StringEquals", "k", ["${aws:TagKeys}"], several)


def test_variables_have_defaults_and_escapes() -> None:
    wanted = ["${aws:PrincipalTag/team, 'company-wide'}"]
    assert holds("StringEquals", "k", wanted, {"k": "company-wide"})
    assert holds("StringEquals", "k", wanted, {"k": "red", "aws:principaltag/team": "red"})
    assert not holds("StringEquals", "k", wanted, {"k": "red"})
    assert holds("StringLike", "k", ["${*}a*"], {"k": "*ab"})
    assert not holds("StringLike", "k", ["${*}a*"], {"k": "xab"})


def test_the_older_version_has_no_variables() -> None:
    home = policy(allow("s3:*", "arn:aws:s3:::b/${aws:username}"), version="2008-10-17")
    context = {"aws:username": "Nikki"}
    assert not judge([home], on="arn:aws:s3:::b/Nikki", context=context).allowed
    assert judge([home], on="arn:aws:s3:::b/${aws:username}", context=context) == GRANTED


@pytest.mark.parametrize("version", ["2008-10-17", None])
@pytest.mark.parametrize("operator", ["StringEquals", "StringLike", "StringEqualsIgnoreCase"])
def test_nor_has_a_condition_of_it(operator: str, version: str | None) -> None:
    """IAM user guide, "Variables and tags": treated as literal strings, also without a version."""
    line = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    line["Condition"] = {operator: {"k": "${aws:username}"}}
    document = {"Statement": line} | ({"Version": version} if version else {})
    older = read_policy(json.dumps(document))
    assert not judge([older], context={"k": "Nikki", "aws:username": "Nikki"}).allowed
    assert judge([older], context={"k": "${aws:username}", "aws:username": "Nikki"}) == GRANTED


# ------------------------------------------------------------------ what AWS's pages leave open

SECRET = "arn:aws:secretsmanager:us-east-1:1:secret:db-Ab12"
STREAM = "arn:aws:logs:us-east-1:1:log-group:/aws/x:log-stream:y"
QUEUE = "arn:aws:sqs:us-east-1:1:queue"


@pytest.mark.parametrize(
    ("pattern", "resource"),
    [
        ("arn:aws:logs:us-east-1:1:log*m:y", STREAM),  # a `*` within a segment over a colon
        ("arn:aws:secretsmanager:us-east-1:1:*Ab12", SECRET),
        ("arn:aws:secretsmanager:us-east-1:1:secret?db-Ab12", SECRET),
        ("arn:aws:sqs:*:queue", QUEUE),  # one that ends a segment among the first five
        ("arn:aws:secretsmanager:us-east-1:1:s?cret:db-Ab12", SECRET),  # one in a type
        ("arn:aws:sagemaker:us-east-1:1:*/llm", "arn:aws:sagemaker:us-east-1:1:endpoint/llm"),
    ],
)
@pytest.mark.parametrize("name", ["Resource", "NotResource"])
def test_a_wildcard_in_doubt_denies_and_does_not_allow(
    name: str, pattern: str, resource: str
) -> None:
    """IAM user guide, "Resource" and "Identify AWS resources with ARNs"."""
    line = {"Action": "*", name: pattern}
    assert not judge([policy(line)], on=resource).allowed
    assert not judge([EVERYTHING, policy({**line, "Effect": "Deny"})], on=resource).allowed


@pytest.mark.parametrize(
    "line",
    [
        # "Policy variables with no value", and the note at the beginning of "Variables and tags".
        {"NotResource": "arn:aws:sqs:us-east-1:1:${aws:username}"},
        *(
            {"Resource": "*", "Condition": {operator: {"aws:SourceArn": pattern}}}
            for operator in ("ArnLike", "ArnNotEquals")
            for pattern in ("*", "arn:aws:sqs")
        ),
        # "Identify AWS resources with ARNs" completes them "in an identity-based policy".
        {"Resource": "arn:aws:sqs:us-east-1:1", "Principal": {"AWS": ROLE}},
    ],
)
def test_a_statement_in_doubt_denies_and_does_not_allow(line: dict[str, Any]) -> None:
    context = {"aws:sourcearn": QUEUE}
    for effect, identity in (("Allow", []), ("Deny", [EVERYTHING])):
        of_queue = policy({"Action": "*", "Principal": "*", **line, "Effect": effect})
        assert not judge(identity, on=QUEUE, resource=of_queue, context=context).allowed


@pytest.mark.parametrize(
    ("name", "at_gateway"),
    [("*", True), (ACCOUNT, False), (ROOT, False), (ROLE, False), (SESSION.arn, False)],
)
def test_at_a_gateway_endpoint_an_account_is_its_root_user_only(
    name: str, at_gateway: bool
) -> None:
    """AWS PrivateLink guide, "Principals for gateway endpoints"."""
    named = policy(allow(Principal={"AWS": name}))
    assert judge([EVERYTHING], endpoint=named) == GRANTED
    assert judge([EVERYTHING], endpoint=named, gateway=True).allowed is at_gateway
    if name in (ACCOUNT, ROOT):
        root = Principal(ROOT, ACCOUNT)
        assert judge([EVERYTHING], endpoint=named, gateway=True, who=root) == GRANTED


# ------------------------------------------------------------------------------- the unknown


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (allow(Condition={"StringMatches": {"k": "v"}}), "StringMatches"),
        (allow(Condition={"ForSomeValues:StringEquals": {"k": "v"}}), "ForSomeValues:StringEquals"),
        (allow(Condition={"NullIfExists": {"k": "v"}}), "NullIfExists"),
        (allow(NotPrincipal={"AWS": "*"}), "NotPrincipal"),
        (allow(Resources="*"), "Resources"),
        (allow(Principal={"Robot": "r2"}), "Robot"),
        (allow(Effect="Maybe"), "Maybe"),
        ({"Resource": "*"}, "Action"),
        (allow(NotAction="s3:*"), "Action"),
    ],
)
def test_what_is_unknown_is_named_and_never_allowed(statement: dict[str, Any], named: str) -> None:
    with pytest.raises(NotJudged, match=named):
        policy(allow(), statement)


def test_a_principal_with_a_wildcard_in_it_is_named() -> None:
    with pytest.raises(NotJudged, match="assumed-role"):
        judge([], resource=policy(allow(Principal={"AWS": "arn:aws:sts::1:assumed-role/R/*"})))


class Unknown(dict[str, str]):
    """A context of which no key is known."""

    def get(self, key: str, default: Any = None) -> Any:
        raise NotJudged(key)


ODD = allow(Condition={"StringEquals": {"odd:key": "v"}})


def test_what_is_unknown_is_of_no_matter_where_another_statement_allows() -> None:
    for identity in ([policy(ODD, allow())], [policy(ODD), EVERYTHING], [EVERYTHING, policy(ODD)]):
        assert judge(identity, context=Unknown(a="b")) == GRANTED
    denies = policy({**ODD, "Effect": "Deny"})
    for identity in ([policy(ODD)], [policy(ODD), NOTHING], [EVERYTHING, denies]):
        with pytest.raises(NotJudged, match="odd:key"):
            judge(identity, context=Unknown(a="b"))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("unknown", "known", "judged"),
    [
        ([ROLE], ROLE, True),
        ([ROLE], SESSION.arn, True),
        # Then a boundary and a session policy limit it, or do not.
        ([SESSION.arn], ROLE, False),
        ([SESSION.arn, ROLE], ROLE, False),
    ],
)
def test_what_is_unknown_matters_where_it_may_give_more_than_is_known(
    unknown: list[str], known: str, judged: bool, last: bool
) -> None:
    statements = [{**ODD, "Principal": {"AWS": name}} for name in unknown]
    statements.append(allow(Principal={"AWS": known}))
    resource = policy(*(reversed(statements) if last else statements))
    if judged:
        assert judge([], resource=resource, context=Unknown(a="b")) == GRANTED
    else:
        with pytest.raises(NotJudged, match="odd:key"):
            judge([], resource=resource, context=Unknown(a="b"))


def test_administrators_are_those_whom_nothing_limits() -> None:
    assert allows_everything(Policies((NOTHING, EVERYTHING)))
    assert not allows_everything(Policies((EVERYTHING, DENY)))
    assert not allows_everything(Policies((EVERYTHING,), boundary=EVERYTHING))
    assert not allows_everything(Policies((policy(allow("s3:*")),)))
    conditional = policy(allow(Condition={"Bool": {"aws:SecureTransport": "true"}}))
    assert not allows_everything(Policies((conditional,)))
