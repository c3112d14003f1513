"""Captured requests and core dumps, as CloudFormation takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..options.written_to_s3 import CoreDump, DataCapture, WrittenToS3
from ..synthesis.arns import key_by_arn

_Written = TypeVar("_Written", bound=WrittenToS3)


def with_key(scope: Construct, id: str, written: _Written, default: kms.IKey | None) -> _Written:
    """The same, with the key that its ARN names, or a default."""
    key = written.key or key_by_arn(scope, id, written.kms_key_arn) or default
    return written if key is None else replace(written, key=key, kms_key_arn=None)


def capture_property(capture: DataCapture) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    config = sagemaker.CfnEndpointConfig
    types = {
        f"{kind}_content_types": list(stated)
        for kind, stated in (
            ("csv", capture.csv_content_types),
            ("json", capture.json_content_types),
        )
        if stated
    }
    return config.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percentage,
        destination_s3_uri=capture.s3,
        capture_options=[
            config.CaptureOptionProperty(capture_mode=mode.capitalize()) for mode in capture.capture
        ],
        kms_key_id=capture.key.key_arn if capture.key else None,
        capture_content_type_header=config.CaptureContentTypeHeaderProperty(**types)
        if types
        else None,
    )


def core_dump_property(dump: CoreDump) -> dict[str, Any]:
    """As CloudFormation has it: older releases of aws-cdk-lib do not know it."""
    key = {"KmsKeyId": dump.key.key_arn} if dump.key else {}
    return {"DestinationS3Uri": dump.s3, **key}
