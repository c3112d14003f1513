"""Credentials, Region, bootstrap, the state of the stack, and PromQL for alarms on tokens."""

from __future__ import annotations

from collections.abc import Iterator

from ...account.queries import START_ENRICHMENT, enrichment_status
from ...account.stacks import stack_description
from ...account.stuck_stacks import is_stuck, way_out
from ...errors.shell_words import shell_word
from ...facts.container_metrics import promql_regions
from ...settings.variant_plans import token_alarm_count
from ..checking.checks import Outcome, check, failed, passed, warned
from .context import PreflightContext

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
OLDEST_BOOTSTRAP = 6  # the rule in every template that CDK 2 writes

_STACK_STATES = "/AWSCloudFormation/latest/UserGuide/view-stack-events.html"
_NEVER_CREATED = ("ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS")


@check(
    "LLP101",
    "The credentials work and belong to the account",
    how="Compares the caller's account (STS) with the settings.",
    source="/STS/latest/APIReference/API_GetCallerIdentity.html",
)
def credentials(context: PreflightContext) -> Outcome:
    identity = context.account.identity()
    wanted = context.settings.account
    if wanted and identity["Account"] != wanted:
        return failed(
            f"{identity['Arn']} belongs to account {identity['Account']}, the settings say "
            f"{wanted}",
            f"Use a profile of account {wanted} (--profile), or change `account`.",
        )
    return passed(f"{identity['Arn']} in account {identity['Account']}")


@check(
    "LLP102",
    "The region is enabled and is the stack's",
    how="Compares `--region` with the settings; checks the account's opt-in.",
    source="/accounts/latest/reference/manage-acct-regions.html",
)
def region(context: PreflightContext) -> Outcome:
    here, wanted = context.account.region, context.settings.region
    if wanted and here != wanted:
        return failed(
            f"these checks read {here}, but the stack deploys to {wanted}",
            f"Leave --region out, or change `region` from {wanted} to {here}.",
        )
    regions = context.account.read(
        "ec2",
        "describe_regions",
        AllRegions=True,
        Filters=[{"Name": "region-name", "Values": [here]}],
    )["Regions"]
    if not regions:
        return failed(f"AWS lists no region {here}", "Correct `region` or --region.")
    if regions[0].get("OptInStatus") == "not-opted-in":
        return failed(
            f"{here} is not enabled in this account",
            "Enable it in AWS Account Management, Regions. This takes some minutes.",
        )
    return passed(f"{here}: {regions[0].get('OptInStatus', 'available')}")


@check(
    "LLP103",
    "The account and region are bootstrapped for the CDK",
    how=("Bootstrap version 6 or later with the default qualifier. `make bootstrap` does it."),
    source="/cdk/v2/guide/bootstrapping.html",
)
def bootstrap(context: PreflightContext) -> Outcome:
    answer = context.account.read(
        "ssm", "get_parameter", ("ParameterNotFound",), Name=BOOTSTRAP_PARAMETER
    )
    command = (
        f"`make bootstrap` (in your own app `npx cdk bootstrap "
        f"aws://ACCOUNT/{shell_word(context.account.region)}`)"
    )
    if answer is None:
        return failed(
            f"there is no parameter {BOOTSTRAP_PARAMETER}",
            f"Run {command} once. This check does not find a bootstrap with a custom qualifier.",
        )
    version = str(answer["Parameter"]["Value"])
    if not version.isdigit() or int(version) < OLDEST_BOOTSTRAP:
        return failed(
            f"bootstrap version {version}, the template asks for {OLDEST_BOOTSTRAP}",
            f"Run {command} again, with a recent CDK CLI.",
        )
    return passed(f"bootstrap version {version}")


@check(
    "LLP104",
    "The stack can be created or updated",
    how="Not in progress, not stuck in a failed state.",
    source=_STACK_STATES,
)
def stack_state(context: PreflightContext) -> Outcome:
    name = context.settings.stack_name
    stack = stack_description(context.account, name)
    if stack is None:
        return passed(f"there is no stack {name} yet: it will be created")
    status = stack["StackStatus"]
    reason = stack.get("StackStatusReason", "")
    evidence = f"{name} is {status}" + (f": {reason}" if reason else "")
    if status in _NEVER_CREATED:
        return warned(
            evidence,
            "Nothing to do: the CDK CLI replaces a stack that was never "
            "created. Its events report the reason.",
        )
    if status.endswith("_IN_PROGRESS"):
        return failed(evidence, "Wait until the operation ends.")
    if is_stuck(status):
        return failed(evidence, way_out(context.account, stack))
    if status == "UPDATE_ROLLBACK_COMPLETE":
        return warned(
            evidence,
            "The last update was rolled back, which a deploy may follow; read "
            "the stack's events for the reason first.",
        )
    return passed(evidence)


_ENRICHMENT = "/AmazonCloudWatch/latest/monitoring/CloudWatch-OTelEnrichment.html"


@check(
    "LLP605",
    "CloudWatch answers PromQL queries, for the alarms on tokens",
    how="Checks the Region, and the account's OTel enrichment there. Skipped for settings "
    "without such alarms.",
    source=_ENRICHMENT,
)
def queries_are_answered(context: PreflightContext) -> Iterator[Outcome]:
    settings = context.settings.endpoints
    count = sum(
        token_alarm_count(settings[variant.key], variant.plan) for variant in context.variants
    )
    if not count:
        return
    region = context.account.region
    if region not in promql_regions():
        yield warned(
            f"AWS does not list {region} among the Regions with PromQL queries, on which "
            f"{count} alarms rest",
            "Use a Region of the list, or turn the alarms on tokens off.",
            about="region",
        )
    if enrichment_status(context.account) == "Running":
        yield passed("OTel enrichment runs")
    else:
        yield warned(
            f"OTel enrichment is stopped: SageMaker's guide calls it required for queries, so "
            f"{count} alarms may never alarm; CloudWatch's guide contradicts it",
            START_ENRICHMENT,
        )
