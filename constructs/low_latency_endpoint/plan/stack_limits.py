"""How much one stack may hold: resources, outputs, a composite alarm's rule; and how long it takes.

Counted part by part, as the constructs make them: a test holds every number to templates. What
cannot be counted before synthesis, such as what a CDK app of your own adds, is not in here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import rule
from ..errors.frozen import dataclass
from ..facts.limit_kinds import Range

COMPOSITE_RULE_LENGTH = Range(
    rule(
        "LLE736",
        "the rule of a composite alarm is longer than CloudWatch takes",
        fix="Watch fewer percentiles, thresholds or variants. A shorter stack name makes the name "
        "of every alarm shorter.",
        source="/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html",
    ),
    "the length of a composite alarm's rule",
    1,
    10_240,
    "characters",
)
LONGEST_NAME = 255
_ADDED = 15  # two hyphens, and 13 characters at random


def generated_name_length(stack_name: int, logical_id: int) -> int:
    """Characters of a name that CloudFormation makes of a stack's name and a logical ID."""
    return min(stack_name + logical_id + _ADDED, LONGEST_NAME)


UNSEEN = "not seen on AWS yet"
"""The mark of what nobody of this project has watched in an account."""

_ROADMAP = "https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/"
_SAGEMAKER_INTERFACES = _ROADMAP + "1327"
_LAMBDA_INTERFACES = (_ROADMAP + "392", "https://github.com/serverless/serverless/issues/5008")


@dataclass(frozen=True)
class StackMinutes:
    """One of the times."""

    what: str  # ``create`` or ``delete``
    minutes: str  # how many, in words: nobody has timed them
    why: str  # what takes so long
    sources: tuple[str, ...] = ()  # public reports; empty where it is this library's estimate

    def __str__(self) -> str:
        verb = {"create": "Creating", "delete": "Deleting"}[self.what]
        said = f" ({', '.join(self.sources)})" if self.sources else ""
        return f"{verb} takes {self.minutes}; {UNSEEN}: {self.why}{said}."

    def to_dict(self) -> dict[str, Any]:
        """The time as JSON-safe data."""
        return {
            "minutes": self.minutes,
            "why": self.why,
            "seen_on_aws": False,
            "sources": list(self.sources),
        }


def stack_minutes(*, functions: bool) -> tuple[StackMinutes, StackMinutes]:
    """How long creating and deleting take."""
    create = StackMinutes(
        "create",
        "about 10 to 20 minutes",
        "an estimate of ours; SageMaker starts the instances, and large images, large models and "
        "scarce types take longer",
    )
    if functions:
        return create, StackMinutes(
            "delete",
            "about 20 to 45 minutes",
            "after the endpoint is gone, AWS keeps the network interfaces of SageMaker and of the "
            "Lambda functions in the subnets, and with them the security group and the subnets; users "
            "report these times for Lambda's",
            (_SAGEMAKER_INTERFACES, *_LAMBDA_INTERFACES),
        )
    return create, StackMinutes(
        "delete",
        "more than 15 minutes",
        "after the endpoint is gone, AWS keeps SageMaker's network interfaces, and with them the "
        "security group and the subnets; users report that CloudFormation gave up waiting after "
        "15 minutes",
        (_SAGEMAKER_INTERFACES,),
    )


_QUOTAS = "/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"
_SPLIT = (
    "Move endpoints to a second settings file, which becomes a second stack. The same "
    "network.vpc_id shares the network and interface endpoint."
)

RESOURCES = Range(
    rule(
        "LLE384",
        "the stack has more resources than CloudFormation allows",
        fix=_SPLIT,
        source=_QUOTAS,
    ),
    "the number of resources",
    0,
    500,
    "resources",
)
OUTPUTS = Range(
    rule(
        "LLE385",
        "the stack has more outputs than CloudFormation allows",
        fix=_SPLIT,
        source=_QUOTAS,
    ),
    "the number of outputs",
    0,
    200,
    "outputs",
)

_CDK_METADATA = 1  # AWS::CDK::Metadata, which the CLI adds unless version reporting is off


@dataclass(frozen=True, kw_only=True)
class SharedParts:
    """What the endpoints of a stack share."""

    zones: int  # client zones
    own_vpc: bool  # whether the VPC is new
    flow_log: bool  # whether a new VPC has a flow log
    # rules for callers, each a resource, at an interface endpoint that exists; None for a new one
    adopted_rules: int | None
    sagemaker_api: bool  # whether there is an interface endpoint for SageMaker's API
    hosted_zone: bool  # whether other VPCs get a private hosted zone
    confirms: bool  # whether the update of an endpoint is confirmed
    waits: bool = True  # whether deletion waits for SageMaker's network interfaces
    # whether the models' way out is a prefix list, which takes a rule of its own
    s3_prefix_list: bool = False
    # of each model of the Hugging Face Hub that is staged: in how many calls
    staged_calls: Sequence[int] = ()
    staging_bucket: bool = False  # whether their bucket is made here
    narrow_link: bool = False  # whether the interface endpoint's policy names what it serves
    role_policies: int = 0  # policies on roles that are no single endpoint's
    own_function_roles: bool = True  # whether each function has a role of its own
    # resources of the flow log's role: one more, its rights on a key, for a role that is made here
    # where a key is stated
    log_role: int = 1

    @property
    def resources(self) -> int:
        """Resources of all these parts."""
        function = 2 + self.own_function_roles  # and its log group
        if self.staged_calls:  # the function; each model's use, calls and check
            staging = function + 2 * self.staging_bucket + sum(2 + n for n in self.staged_calls)
        else:
            staging = 0
        count = staging + _CDK_METADATA + 1 + self.s3_prefix_list  # the model's security group
        count += self.role_policies
        if self.own_vpc or self.narrow_link:  # what S3's policy named, and what the link served
            count += function + self.own_vpc + self.narrow_link
        if self.own_vpc:
            count += 3 + 2 * self.zones  # VPC, routes, gateway endpoint; subnets, associations
            count += function + 1  # closes the default security group
            count += (2 + self.log_role) * self.flow_log  # flow log, log group, role
        if self.adopted_rules is None:
            # Interface endpoint and security group; hosted zone and record.
            count += 2 + self.sagemaker_api + 2 * self.hosted_zone
        else:
            count += self.adopted_rules
        return count + function * (self.waits + self.confirms)


@dataclass(frozen=True, kw_only=True)
class EndpointParts:
    """What belongs to one endpoint."""

    new_role: bool  # whether the model's role is made here
    confirms: bool
    waits: bool = True  # as for :class:`SharedParts`
    scales: int  # how many variants scale, and how many have step scaling beside target tracking
    steps: int
    dashboard: bool
    alarms: int  # metric alarms that are watched, and those that roll a deployment back
    rollback_alarms: int
    quiet: int  # variants for whose deployments pages are held back
    warm_up: bool
    during_deployments: bool
    keep_warm: bool
    link_ports: int  # ports of the interface endpoint: 2 with bidirectional streaming
    # client zones with a URL of their own: none with an interface endpoint that exists
    zonal_urls: int
    parameters: bool = False  # whether the outputs are SSM parameters too
    models: int = 1  # of all variants
    canary_zones: int = 0  # client zones with a canary
    canary_alarms: int = 0
    shadow_alarms: int = 0  # alarms that compare a shadow with production
    token_alarms: int = 0  # alarms on tokens, with what pages of them
    objectives: int = 0  # service level objectives
    # policies on the models' and the functions' roles, without those that an endpoint before it
    # needs too
    role_policies: int = 0
    own_function_roles: bool = True  # as for :class:`SharedParts`

    @property
    def resources(self) -> int:
        """Resources of the endpoint."""
        count = 2  # configuration, endpoint
        count += self.models * (1 + self.waits + self.new_role)
        count += self.role_policies
        count += self.confirms + 2 * self.scales + 2 * self.steps + self.dashboard
        count += (
            self.token_alarms
            + self.objectives
            + self.rollback_alarms
            + self.shadow_alarms
            + self.parameters * self.outputs
        )
        if self.alarms:
            count += self.alarms + 1  # what pages
            count += 2 * self.quiet + bool(self.quiet)  # two alarms each, what holds it back
        if self.warm_up:
            count += 2 * (2 + self.own_function_roles + 1)  # two functions with their retries
            count += 3 + 1  # queue, its policy, security group; the warm-up itself
            count += 2 * self.link_ports  # out of that group, into that of the interface endpoint
            count += 2 * self.during_deployments  # a rule and its permission
            count += 2 * self.keep_warm
        if self.canary_zones:
            # Function with log group, role and retries; rule and permission.
            count += self.canary_zones * (2 + self.own_function_roles + 1 + 2)
            count += 3 + 2 * self.link_ports  # as for the warm-up
            count += self.canary_alarms + 1  # what pages
        return count

    @property
    def outputs(self) -> int:
        """Outputs for callers: name, URL, client settings, and the zones' URLs."""
        return 3 + self.zonal_urls
