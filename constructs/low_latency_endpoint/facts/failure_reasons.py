"""What AWS's sentences say when instances do not start: the one reader of them.

SageMaker writes them as the ``FailureReason`` of an endpoint or inference component, Application
Auto Scaling as the ``StatusMessage`` of an activity, after words of its own. Start at
:func:`read_failure`. A sentence that no pattern knows has no kind: nothing is advised then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_CENTER = "https://repost.aws/knowledge-center/sagemaker-endpoint-creation-fail"
_ISSUES = "https://github.com/"


class Wording(NamedTuple):
    """Words of AWS, as a regular expression for any case, and who saw them."""

    words: str
    source: str


class Setting(NamedTuple):
    """A key of ``endpoint.yaml`` that follows from a reason; some only while an update starts more."""

    key: str
    why: str
    of_updates: bool = False


@dataclass(frozen=True, slots=True)
class FailureKind:
    """One kind of reason: what it means, what to do, and whether a container's log can say more."""

    name: str
    means: str
    fix: str
    patterns: tuple[Wording, ...]
    settings: tuple[Setting, ...] = ()
    logged: bool = False


_BATCHES = Setting("deployment.rolling", "batches need less room than a second fleet", True)

FAILURE_KINDS = (
    FailureKind(
        "quota",
        "the account's quota is used up",
        "Ask Service Quotas for {needed}. With a settings file, `low-latency preflight` prints the "
        "command (LLP302).",
        (
            Wording(
                "account-level service limit",
                _ISSUES + "aws-samples/sagemaker-custom-project-templates/issues/51",
            ),
            Wording("ResourceLimitExceeded", _ISSUES + "aws/amazon-sagemaker-examples/issues/307"),
        ),
        (Setting("instance_type", "a type with unused quota, until the quota is raised"), _BATCHES),
    ),
    FailureKind(
        "capacity",
        "AWS has no more instances of this type in the zones",
        "Capacity changes within minutes: try again, with fewer instances if they are enough.",
        (
            Wording("InsufficientInstanceCapacity", _CENTER),
            Wording(
                "unable to provision requested ML compute capacity",
                _ISSUES + "DIAGNijmegen/rse-grand-challenge/issues/2631",
            ),
            Wording(
                "temporarily unavailable in supported availability zones",
                _ISSUES + "aws/amazon-sagemaker-feedback/issues/99",
            ),
        ),
        (
            Setting("capacity_reservation_arn", "reserved capacity"),
            Setting("instance_type", "a type with more capacity in these zones"),
            Setting("client_zones.ids", "stack-level: another zone, if callers run there too"),
            _BATCHES,
        ),
    ),
    FailureKind(
        "role",
        "SageMaker cannot assume the model's role",
        "The role must exist, and its trust policy must let sagemaker.amazonaws.com assume it. "
        "With a settings file, `low-latency preflight` checks both (LLP501).",
        (
            Wording(
                "(could not assume|unable to assume the) role",
                _ISSUES + "aws/sagemaker-python-sdk/issues/35",
            ),
        ),
        (Setting("role_arn", "a role that trusts SageMaker; without it the stack makes one"),),
    ),
    FailureKind(
        "image",
        "the image does not exist, or the model's role cannot pull it",
        "The role needs ecr:BatchGetImage, ecr:GetDownloadUrlForLayer and "
        "ecr:GetAuthorizationToken; another account's repository needs a policy that lets it in. "
        "With a settings file, `low-latency preflight` looks for the image (LLP401).",
        (
            Wording(
                r"does not have \w+ permission for the image",
                _ISSUES + "aws/deep-learning-containers/issues/759",
            ),
            Wording(
                "make sure all images included in the model",
                _ISSUES + "yuyasugano/terraform-sagemaker-sample-1/issues/1",
            ),
        ),
        (Setting("containers[].image", "an image that exists and that the role can pull"),),
    ),
    FailureKind(
        "data access",
        "the model data does not exist, or the model's role cannot read it",
        "The role needs s3:GetObject (of a prefix s3:ListBucket too) and kms:Decrypt of the object's "
        "key. With a settings file, `low-latency preflight` checks both (LLP403).",
        (
            Wording(
                "could not access model data", _ISSUES + "philschmid/llm-sagemaker-sample/issues/2"
            ),
            Wording("could not find model data", _ISSUES + "aws-ia/ecs-blueprints/issues/223"),
            Wording(
                "failed to download model data .*object located at the URL",
                _ISSUES
                + "aws-solutions-library-samples/fraud-detection-using-machine-learning/issues/9",
            ),
        ),
        (Setting("containers[].data", "data that exists and that the role can read"),),
    ),
    FailureKind(
        "download",
        "the model data did not download",
        "Does the data exist, does it fit onto the instance's disk, and does it download in time? "
        "With a settings file, `low-latency preflight` checks the data and the time (LLP403, LLP405).",
        (
            Wording(
                "failed to download model data (?!.*object located at the URL)",
                _ISSUES + "aws-neuron/aws-neuron-sdk/issues/596",
            ),
        ),
        (
            Setting("volume_size_gib", "larger, for types without local storage"),
            Setting("model_data_download_timeout", "longer, if the download takes too long"),
        ),
    ),
    FailureKind(
        "archive",
        "the model data is not an archive that SageMaker can unpack",
        "It must be a valid tar.gz, without symbolic links (`tar -tvf` lists them).",
        (Wording("failed to extract model data (?!.*archive is too large)", _CENTER),),
        (Setting("containers[].data", "a valid tar.gz archive"),),
    ),
    FailureKind(
        "archive size",
        "the model data is too large for the instance",
        "Make the archive smaller, or take a larger instance.",
        (
            Wording(
                "model data archive is too large", _ISSUES + "aws/sagemaker-python-sdk/issues/879"
            ),
        ),
        (
            Setting("instance_type", "a type with more memory"),
            Setting("volume_size_gib", "larger, for types without local storage"),
        ),
    ),
    FailureKind(
        "start",
        "the container does not start",
        "The image must run with `docker run IMAGE serve`, on the instance's kind of processor "
        "(LLP402), and need no newer driver than the instance has. Without a log group it never ran.",
        (
            Wording(
                "CannotStartContainerError",
                _ISSUES + "aws-samples/comfyui-on-amazon-sagemaker/issues/2",
            ),
        ),
        (
            Setting("containers[].image", "one that starts with the argument serve"),
            Setting("inference_ami", "an AMI whose driver supports the image's CUDA version"),
        ),
        logged=True,
    ),
    FailureKind(
        "ping",
        "the container did not answer /ping with 200 in time",
        "It answers when its model is loaded, within 4 minutes unless you set another time.",
        (Wording("did not pass the ping health check", _CENTER),),
        (
            Setting("startup_health_check_timeout", "longer, if the model was still loading"),
            Setting("containers[].environment", "what the log points to"),
        ),
        logged=True,
    ),
    FailureKind(
        "alarm",
        "an alarm of the deployment went off",
        "The new version was slower, or failed: run `low-latency diagnose` over the time of the "
        "deployment, and mend the version before you deploy it again.",
        (
            # AWS documents the rollback and not its words; these are the local AWS's and our tests'.
            Wording(
                "alarms?(\\(s\\))? .*in ALARM",
                "https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-configuration.html",
            ),
        ),
    ),
    FailureKind(
        "time",
        "the deployment took longer than it may",
        "Starting the instances, shifting the traffic and the waits must fit into the time.",
        (
            # The words are the local AWS's.
            Wording(
                "took longer than it may",
                "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DeploymentConfig.html",
            ),
        ),
        (Setting("deployment.maximum_execution", "longer, if the waits need it"),),
    ),
    FailureKind(
        "room",
        "the instances have no room for another copy of the inference component",
        "Give the component less, or the endpoint more or larger instances.",
        (
            # As users report it, says the local AWS, which has the words.
            Wording(
                "not enough hardware resources on the instances",
                "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateInferenceComponent.html",
            ),
        ),
    ),
    FailureKind(
        "network",
        "the model's role cannot set up its network interfaces",
        "The role needs the ec2 actions of network interfaces that AWS lists for models in a VPC.",
        (
            # The words are the local AWS's.
            Wording(
                "access denied while setting up the network",
                "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html",
            ),
        ),
        (Setting("role_arn", "a role with these rights; without it the stack makes one"),),
    ),
    FailureKind(
        "key",
        "the model's role cannot use the KMS key of the volumes",
        "The key's policy must let the role kms:DescribeKey and kms:CreateGrant. With a settings "
        "file, `low-latency preflight` checks that keys are enabled (LLP504).",
        (
            # The words are the local AWS's.
            Wording(
                "access denied to the KMS key",
                "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html",
            ),
        ),
        (Setting("kms_key_arn", "a key that the role can use"),),
    ),
    FailureKind(
        "configuration",
        "an endpoint configuration was deleted that was still needed",
        "Deploy: a new configuration takes over. Do not delete what serves.",
        (
            Wording(
                "could not find endpoint configuration",
                _ISSUES + "hashicorp/terraform-provider-aws/pull/49020",
            ),
        ),
    ),
    FailureKind(
        "updating",
        "the endpoint was being updated",
        "SageMaker refuses scaling while the endpoint is being updated.",
        (
            Wording(
                "in-progress endpoint|(endpoint|variant).* is (currently )?(being )?updat",
                "https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-scaling-update.html",
            ),
        ),
    ),
    FailureKind(
        "service",
        "SageMaker gives no reason of its own",
        "Try again. Users report it for images of another processor (`exec format error` in the log) "
        "and for missing capacity; if it stays, ask AWS Support.",
        (
            Wording(
                "request to service failed",
                _ISSUES + "aws-samples/amazon-sagemaker-custom-container/issues/3",
            ),
        ),
        logged=True,
    ),
)

_NUMBERS = re.compile(
    r"'(?P<type>\S+) for endpoint usage' is (?P<limit>[\d,]+) Instances,\s+with current utilization "
    r"of (?P<used>[\d,]+) Instances\s+and a request delta of (?P<more>[\d,]+) Instances"
)


@dataclass(frozen=True, slots=True)
class FailureReason:
    """One sentence of AWS, and its kind where its words are known.

    >>> reason = read_failure("The account-level service limit 'ml.g5.xlarge for endpoint usage' is "
    ...     "4 Instances, with current utilization of 3 Instances and a request delta of 3 Instances.")
    >>> reason.kind.name, reason.fix
    ('quota', 'Ask Service Quotas for 6 of "ml.g5.xlarge for endpoint usage" at least. With a settings file, `low-latency preflight` prints the command (LLP302).')
    """

    sentence: str
    kind: FailureKind | None

    @property
    def fix(self) -> str:
        """What to do; empty for a sentence that is not known."""
        return self.kind.fix.replace("{needed}", self._needed) if self.kind else ""

    @property
    def logged(self) -> bool:
        """Whether a container may have run, so that its log can say more."""
        return self.kind is None or self.kind.logged

    def settings(self, *, updating: bool) -> Iterator[Setting]:
        """The settings that can help; of an update more than of instances that scaling starts."""
        # A quota of zero holds no batch either.
        numbers = _NUMBERS.search(self.sentence)
        none_allowed = numbers is not None and numbers["limit"] == "0"
        for setting in self.kind.settings if self.kind else ():
            if not setting.of_updates or (updating and not none_allowed):
                yield setting

    @property
    def _needed(self) -> str:
        numbers = _NUMBERS.search(self.sentence)
        if numbers is None:
            return "more instances of the type for endpoint usage"
        used, more = (int(numbers[name].replace(",", "")) for name in ("used", "more"))
        return f'{used + more:,} of "{numbers["type"]} for endpoint usage" at least'


def kinds_of(sentence: str) -> list[FailureKind]:
    """The kinds whose words a sentence has, by where they stand: what a container wrote comes last."""
    words = " ".join(sentence.split())
    places = {kind: _place(kind, words) for kind in FAILURE_KINDS}
    known = [kind for kind in FAILURE_KINDS if places[kind] >= 0]
    return sorted(known, key=places.__getitem__)


def _place(kind: FailureKind, words: str) -> int:
    """Where the first of a kind's patterns begins; -1 where none does."""
    matches = [re.search(each.words, words, re.IGNORECASE) for each in kind.patterns]
    return min((match.start() for match in matches if match), default=-1)


def read_failure(sentence: str) -> FailureReason:
    """What a sentence of AWS says.

    >>> read_failure("Something new.").kind is None
    True
    """
    return FailureReason(sentence, next(iter(kinds_of(sentence)), None))
