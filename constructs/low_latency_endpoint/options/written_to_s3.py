"""What SageMaker writes to S3 of an endpoint: captured requests and answers, and core dumps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors.findings import Finding, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.token_values import is_token
from .argument_kinds import checked_arguments
from .option import Option, Options
from .rules import KMS_KEY_ARN, KMS_KEY_EXAMPLE, SAMPLES_NOTHING

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms


def _types(example: str) -> Option:
    count = limits.CAPTURE_CONTENT_TYPE_COUNT
    return Option(limits.CAPTURE_CONTENT_TYPE, [example], entries=count)


@dataclass(frozen=True, kw_only=True)
class WrittenToS3(Options):
    """Objects that one key encrypts."""

    kms_key_arn: Annotated[str | None, Option(KMS_KEY_ARN, KMS_KEY_EXAMPLE)] = None
    """KMS key that encrypts them. Default: the bucket's own encryption."""
    key: kms.IKey | None = None
    """In place of ``kms_key_arn`` a key of the app, which the model's role may use. Default: that
    of :class:`Safeguards`.

    The key's own policy must leave the decision to IAM policies of the account, as it does for keys
    that CDK makes, or name the role. State the key too when the bucket encrypts with it by default.
    """

    def _rules_of_keys(self) -> Iterator[Finding]:
        """One key."""
        yield from self._excludes("key", ("kms_key_arn",), "one key encrypts all")


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class CoreDump(WrittenToS3):
    """Where core dumps of crashed containers go.

    Raises:
        ConfigurationError: LLE418 for the destination, LLE926 for the key's ARN, LLE929 for both
            forms of a key, LLE807 for values of another kind.
    """

    s3: Annotated[str, Option(limits.S3_URI, "s3://my-bucket/core-dumps/")]
    """S3 destination."""


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class DataCapture(WrittenToS3):
    """Record requests and responses in S3.

    Raises:
        ConfigurationError: LLE416 for the percentage, LLE418 for the destination, LLE926 for the
            key's ARN, LLE427 and LLE428 for what is captured, LLE429 and LLE430 for content types, LLE929 for
            both forms of a key, LLE932 for a percentage of 0, LLE807 for values of another kind.
    """

    s3: Annotated[str, Option(limits.S3_URI, "s3://my-bucket/captured/")]
    """S3 destination.

    In Python, bucket and prefix may be tokens. A destination that is one token as a whole leads to a
    warning, as the model's role then gets no right to write there.
    """
    capture: Annotated[
        Sequence[Literal["input", "output"]],
        Option(limits.CAPTURE_MODE, ["input"], entries=limits.CAPTURE_COUNT),
    ] = ("input", "output")
    """What to record: input (requests), output (responses). Default: both."""
    csv_content_types: Annotated[Sequence[str], _types("text/csv")] = ()
    """Content types that are recorded as CSV. Default: all bodies in base64."""
    json_content_types: Annotated[Sequence[str], _types("application/json")] = ()
    """Content types that are recorded as JSON. Default: all bodies in base64."""
    sampling_percentage: Annotated[int, Option(limits.SAMPLING_PERCENTAGE, 10)] = 10
    """Share of the requests; less for high traffic. Default: 10."""

    def _rules(self) -> Iterator[Finding]:
        """Something is captured."""
        if not is_token(self.sampling_percentage) and self.sampling_percentage == 0:
            yield finding(SAMPLES_NOTHING, "sampling_percentage", got="0", allowed="1 to 100")
