"""Copies of requests and responses in S3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import aws_sagemaker as sagemaker

from ..plan.argument_kinds import checked_arguments
from ..plan.limits import (
    CAPTURE_CONTENT_TYPE,
    CAPTURE_CONTENT_TYPE_COUNT,
    CAPTURE_COUNT,
    S3_URI,
    SAMPLING_PERCENTAGE,
)
from ..synthesis.validation import check

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class DataCapture:
    """Copies of requests and responses to S3, off the hot path.

    Args:
        destination: ``s3://bucket/prefix``. The model's role is allowed to write there. Bucket and prefix may be tokens; a destination that is one token as a whole leads to a warning instead.
        sampling_percentage: Share of the requests, 0 to 100; by default 10. AWS: "A lower value is recommended for endpoints with high traffic".
        capture: By default both input and output.
        key: Encrypts what is written; the model's role may use it. Its own policy must leave the decision to IAM policies of the account, as it does for keys that CDK makes, or name the role. Give it too when the bucket encrypts with it by default.
        csv_content_types: Content types, such as ``text/csv`` and ``application/json``, whose bodies are captured as they are; by default bodies are captured in base64.
        json_content_types: Content types, such as ``text/csv`` and ``application/json``, whose bodies are captured as they are; by default bodies are captured in base64.

    Raises:
        ConfigurationError: LLE416 for the percentage, LLE418 for the destination,
            LLE427 and LLE428 for what is captured, LLE429 and LLE430 for content types,
            LLE807 for a text in place of a list.
    """

    destination: str
    sampling_percentage: int = 10
    capture: Sequence[Literal["Input", "Output", "InputAndOutput"]] = ("Input", "Output")
    key: kms.IKey | None = None
    csv_content_types: Sequence[str] = ()
    json_content_types: Sequence[str] = ()

    def __post_init__(self) -> None:
        check(S3_URI, self.destination)
        check(SAMPLING_PERCENTAGE, self.sampling_percentage)
        CAPTURE_COUNT.check(len(self.capture), "capture")
        for where in ("csv_content_types", "json_content_types"):
            types = getattr(self, where)
            if types:
                CAPTURE_CONTENT_TYPE_COUNT.check(len(types), where)
            for content_type in types:
                check(CAPTURE_CONTENT_TYPE, content_type, where)


def capture_property(capture: DataCapture) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    config = sagemaker.CfnEndpointConfig
    return config.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percentage,
        destination_s3_uri=capture.destination,
        capture_options=[
            config.CaptureOptionProperty(capture_mode=mode) for mode in capture.capture
        ],
        kms_key_id=capture.key.key_arn if capture.key else None,
        capture_content_type_header=config.CaptureContentTypeHeaderProperty(
            csv_content_types=list(capture.csv_content_types) or None,
            json_content_types=list(capture.json_content_types) or None,
        )
        if capture.csv_content_types or capture.json_content_types
        else None,
    )
