"""Data alone: the rules of options and of the settings file beyond AWS's limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Network
from typing import Any

from ..errors import rule
from ..facts.limit_kinds import Pattern, number_range, text_form

API = "/sagemaker/latest/APIReference/API_"

# --- the file itself ---------------------------------------------------------------------------
UNREADABLE = rule(
    "LLE901",
    "the settings file cannot be read",
    fix="Name a UTF-8 text file that can be read: --settings FILE.",
)
NOT_YAML = rule(
    "LLE902",
    "the settings file is not YAML",
    fix="Correct this line. Indent with spaces; quote text that holds ': ' or ' #', or starts "
    "with one of @ ` % & * ! | > [ {.",
    source="https://yaml.org/spec/1.2.2/",
)
KEY_TWICE = rule("LLE903", "a setting is given twice", fix="Keep one of the two.")
UNUSUAL_YAML = rule(
    "LLE907",
    "the settings file uses unsupported YAML",
    fix="Write plain keys and values: no tags, no lists or mappings as keys, no aliases "
    "of themselves, no very deep nesting.",
)
TOO_LARGE = rule(
    "LLE388",
    "the settings file is too large",
    fix="Put a large warm-up payload into its own file, and name it in warm_up.payload.file.",
)
TEXT_WITH_TOKEN = rule(
    "LLE382",
    "a text contains a CDK token",
    fix="Write the value itself: ${Token[...]} has no value in a file.",
    source="/cdk/v2/guide/tokens.html",
)
TEXT_NOT_CARRIED = rule(
    "LLE383",
    "a text has a character that CloudFormation cannot carry",
    fix="Remove the character; put binary data into a file.",
    source="https://www.w3.org/TR/xml/#charsets",
)
# --- forms of values ---------------------------------------------------------------------------
CIDR_FORM = rule(
    "LLE910",
    "a range of IPv4 addresses is not valid",
    fix="Write first address and prefix length, such as 10.0.0.0/16.",
    source="/vpc/latest/userguide/vpc-cidr-blocks.html",
)


class _Cidr(Pattern):
    def holds(self, value: Any) -> bool:
        """Whether the value is the first address of a range, and its length."""
        return value in self._meant(value)

    def _meant(self, value: Any) -> Iterator[str]:
        """The range that holds the address."""
        if isinstance(value, str) and "/" in value:
            with suppress(ValueError):
                yield str(IPv4Network(value, strict=False))


CIDR = _Cidr(
    CIDR_FORM,
    "a range of IPv4 addresses",
    r"\d+\.\d+\.\d+\.\d+/\d+",
    "the first address of a range and its prefix length, such as 10.0.0.0/16",
)
VPC_NOT_LOOKED_UP = rule(
    "LLE160",
    "the VPC was not looked up yet",
    fix="Run `npx cdk synth` with credentials of the account, and commit cdk.context.json: after "
    "that nobody needs credentials to synthesise.",
    source="/cdk/v2/guide/context.html",
)
CALLER_WITHOUT_SECURITY_GROUP = rule(
    "LLE226",
    "a caller has no security group",
    fix="Give the function a VPC: aws_lambda.Function(..., vpc=vpc). For an imported function, name "
    "its security group in Function.from_function_attributes(..., security_group=...).",
    source="/lambda/latest/dg/configuration-vpc.html",
)


STACK_NAME = text_form(
    "LLE912",
    "the stack name",
    r"[a-zA-Z][-a-zA-Z0-9]*",
    "letters, digits and hyphens, starting with a letter",
    max_length=128,
    source="/AWSCloudFormation/latest/APIReference/API_CreateStack.html",
)
ENDPOINT_KEY = text_form(
    "LLE915",
    "an endpoint's key",
    r"[a-zA-Z][-a-zA-Z0-9]*",
    "letters, digits and hyphens, starting with a letter",
    max_length=63,
)
ECR_REPOSITORY = text_form(
    "LLE916",
    "the ECR repository's name",
    r"[a-z0-9]+(?:[._-][a-z0-9]+)*(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*",
    "lower-case letters, digits, inner . _ - and / between parts",
    max_length=256,
    source="/AmazonECR/latest/APIReference/API_CreateRepository.html",
)
IMAGE_TAG = text_form(
    "LLE917",
    "the image tag",
    r"[a-zA-Z0-9_][a-zA-Z0-9._-]*",
    "letters, digits and . _ -, not starting with . or -",
    max_length=128,
    source="https://github.com/opencontainers/distribution-spec/blob/main/spec.md",
)


def _resource_id(code: str, name: str, prefix: str) -> Pattern:
    return text_form(
        code,
        name,
        rf"{prefix}-(?:[0-9a-f]{{8}}|[0-9a-f]{{17}})",
        f"{prefix}- and 8 or 17 hexadecimal digits",
        source="/AWSEC2/latest/UserGuide/resource-ids.html",
    )


VPC_ID = _resource_id("LLE920", "the VPC's ID", "vpc")
SUBNET_ID = _resource_id("LLE921", "the subnet's ID", "subnet")
INTERFACE_ENDPOINT_ID = _resource_id("LLE922", "the interface endpoint's ID", "vpce")
SECURITY_GROUP_ID = _resource_id("LLE923", "the security group's ID", "sg")


def _arn(code: str, name: str, service: str, resource: str, example: str) -> Pattern:
    return text_form(
        code,
        name,
        rf"arn:aws[a-z\-]*:{service}:{resource}",
        f"an ARN such as {example}",
        has_home=True,
        source="/IAM/latest/UserGuide/reference-arns.html",
    )


TOPIC_ARN = _arn(
    "LLE924",
    "the alarm topic's ARN",
    "sns",
    r"[a-z0-9\-]+:\d{12}:[\w\-]{1,256}(?:\.fifo)?",
    "arn:aws:sns:us-east-1:123456789012:on-call",
)
ROLE_ARN = _arn(
    "LLE925",
    "the role's ARN",
    "iam",
    r":\d{12}:role/(?:[\w+=,.@\-]+/)*[\w+=,.@\-]{1,64}",
    "arn:aws:iam::123456789012:role/model-role",
)
CODE_SIGNING_ARN = _arn(
    "LLE955",
    "the code signing configuration's ARN",
    "lambda",
    r"[a-z0-9\-]+:\d{12}:code-signing-config:csc-[a-z0-9]{17}",
    "arn:aws:lambda:us-east-1:123456789012:code-signing-config:csc-0123456789abcdef0",
)
FUNCTION_ARN = _arn(
    "LLE948",
    "the function's ARN",
    "lambda",
    r"[a-z0-9\-]+:\d{12}:function:[\w\-]{1,64}(?::[\w\-$]{1,128})?",
    "arn:aws:lambda:us-east-1:123456789012:function:registry-login",
)
SECRET_ARN = _arn(
    "LLE949",
    "the secret's ARN",
    "secretsmanager",
    r"[a-z0-9\-]+:\d{12}:secret:[\w/+=.@\-]{1,512}",
    "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-token-AbCdEf",
)
KMS_KEY_EXAMPLE = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
KMS_KEY_ARN = _arn(
    "LLE926",
    "the KMS key's ARN",
    "kms",
    r"[a-z0-9\-]+:\d{12}:(?:key|alias)/[\w/\-]+",
    KMS_KEY_EXAMPLE,
)
ENCRYPTION_KEY_ARN = _arn(  # by its ID: neither CloudWatch Logs nor IAM takes an alias for a key
    "LLE341",
    "the ARN of the KMS key by its ID",
    "kms",
    r"[a-z0-9\-]+:\d{12}:key/[\w\-]+",
    f"{KMS_KEY_EXAMPLE}, not an alias's",
)
PREFIX_LIST_ID = _resource_id("LLE342", "the prefix list's ID", "pl")

# --- settings that depend on one another -------------------------------------------------------
AT_LEAST_ONE = rule("LLE930", "at least one entry is needed", fix="Add an entry.")
NAME_TWICE = rule(
    "LLE931",
    "two endpoints, components, dashboards or parameters have the same name",
    fix="Rename one of the two: names are unique in an account and Region.",
    source=API + "CreateEndpoint.html",
)
STACK_HAS_THE_NAME = rule(
    "LLE381",
    "a part of the stack has this name already",
    fix="Rename it. An endpoint's key names its construct.",
    source="/cdk/v2/guide/identifiers.html",
)
VPC_TWICE = rule(
    "LLE386",
    "a VPC is named twice",
    fix="Name each VPC once.",
    source="/Route53/latest/APIReference/API_AssociateVPCWithHostedZone.html",
)
SAMPLES_NOTHING = rule(
    "LLE932",
    "data capture samples nothing",
    fix="Give a percentage above zero, or remove data_capture.",
    source=API + "DataCaptureConfig.html",
)
NO_SUCH_ENDPOINT = rule(
    "LLE933",
    "the settings have no endpoint of this name",
    fix="Name an endpoint of the file. Name another file with --settings.",
)
UNWRITABLE = rule(
    "LLE936",
    "the settings file cannot be written",
    fix="Free disk space, or make the file writable (chmod u+w). The file is unchanged.",
)
CHANGED_VALUE_TOO_ODD = rule(
    "LLE937",
    "this value cannot be written without changing others",
    fix="Write the value by hand at the named place.",
)
CHANGED_MEANWHILE = rule(
    "LLE938", "the settings file changed while the command ran", fix="Run the command again."
)
LAYOUT_NOT_KEPT = rule(
    "LLE939",
    "writing the value would change other lines of the settings file",
    fix="Write the line as allowed, or the value by hand.",
)
SHADOW_SHARE = number_range(
    "LLE437",
    "the share of requests that the shadow gets",
    1e-6,
    1,
    whole=False,
    fix="Give the share of requests to copy: 1 for all.",
)
CUSTOM_AMI = text_form(
    "LLE935",
    "the custom inference AMI version",
    r"[a-z0-9][a-z0-9-]*",
    "lower-case letters, digits and hyphens",
    max_length=128,
    source=API + "ProductionVariant.html",
)
