"""S3: who judges policies, full disks, checksums, and multipart uploads.

Moto takes any checksum for right, forgets one without an algorithm beside it, and on HEAD does not say
that one is of parts. See
https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html

Moto breaks on uploads that have ended, and lets two be the first. See
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html and
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from tempfile import gettempdir
from typing import Any

from flask import has_request_context, request
from moto.iam.access_control import PermissionResult
from moto.s3.exceptions import NoSuchUpload, PreconditionFailed, S3ClientError
from moto.s3.models import FakeBucket, S3Backend
from moto.s3.responses import S3Response
from moto.s3.utils import compute_checksum

from ..admission import error_xml
from ..permissions.gate import DENIED_OBJECTS
from .replacing import around

logger = logging.getLogger(__name__)
_one_at_a_time = threading.Lock()
_CHECKSUMS = ("SHA256", "SHA1", "CRC32", "CRC32C", "CRC64NVME")
_CALCULATED = _CHECKSUMS[:3]
"""The others take libraries that the local AWS does not need."""


@around(S3Backend)
def upload_part(
    original: Callable[..., Any], self: Any, bucket_name: str, multipart_id: str, *rest: Any
) -> Any:
    """Refuse a part of an upload that was completed, aborted, or never made."""
    with _one_at_a_time:
        _check(self, bucket_name, multipart_id)
        part = original(self, bucket_name, multipart_id, *rest)
        _ = part.etag  # moto reads the part late, and an upload that ends closes it
        return part


@around(S3Backend)
def abort_multipart_upload(original: Callable[..., Any], self: Any, *given: Any) -> Any:
    """Wait for parts being stored: moto closes them before it takes the upload away."""
    with _one_at_a_time:
        return original(self, *given)


@around(S3Backend)
def complete_multipart_upload(
    original: Callable[..., Any], self: Any, bucket_name: str, multipart_id: str, *rest: Any
) -> Any:
    """Likewise; and of conditional writes at once let one alone be the first."""
    with _one_at_a_time:
        _check(self, bucket_name, multipart_id)
        if has_request_context() and request.headers.get("If-None-Match") == "*":
            key_name = self.get_bucket(bucket_name).multiparts[multipart_id].key_name
            if self.get_object(bucket_name, key_name) is not None:
                raise PreconditionFailed("If-None-Match")
        return original(self, bucket_name, multipart_id, *rest)


def _check(backend: Any, bucket_name: str, multipart_id: str) -> None:
    if multipart_id not in backend.get_bucket(bucket_name).multiparts:
        raise NoSuchUpload(upload_id=multipart_id)


@around(FakeBucket)
def get_permission(_: Callable[..., Any], self: Any, action: str, resource: str) -> Any:
    """Leave the bucket's policy to `permissions`, which has judged the request already."""
    denied = resource in request.environ.get(DENIED_OBJECTS, ())
    return PermissionResult.DENIED if denied else PermissionResult.NEUTRAL


@around(S3Response)
def key_response(original: Callable[..., Any], self: Any, *given: Any) -> Any:
    """Say which error of this machine keeps an object from being stored: a full disk, mostly."""
    try:
        return original(self, *given)
    except OSError as error:
        logger.exception("s3: %s", self.path)
        words = f"local AWS: {error.strerror or error} (objects lie in {gettempdir()})"
        return 500, {"Content-Type": "application/xml"}, error_xml("s3", "InternalError", words)


@around(S3Response)
def _get_checksum(
    original: Callable[..., Any], self: Any, response_headers: dict[str, Any]
) -> tuple[str, str | None]:
    """Hold what was sent against the checksum that was sent with it."""
    sent = {name: self.headers.get(f"x-amz-checksum-{name.lower()}") for name in _CHECKSUMS}
    stated = next((name for name, value in sent.items() if value), None)
    if stated is None:
        algorithm, value = original(self, response_headers)
        return algorithm, value
    if stated in _CALCULATED and sent[stated] != compute_checksum(self.body, stated).decode():
        words = f"The {stated} you specified did not match the calculated checksum."
        raise S3ClientError("BadDigest", words)
    response_headers[f"x-amz-checksum-{stated.lower()}"] = sent[stated]
    return stated, sent[stated]


@around(S3Response)
def head_object(
    original: Callable[..., Any],
    self: Any,
    bucket_name: str,
    query: dict[str, Any],
    key_name: str,
    headers: Any,
) -> Any:
    """Say of how many parts a checksum is, and that another is of the whole object."""
    status, answered, body = original(self, bucket_name, query, key_name, headers)
    answered.pop("x-amz-checksum-algorithm", None)  # of the upload's request
    if status == 200 and headers.get("x-amz-checksum-mode") == "ENABLED":
        version = query.get("versionId", [None])[0]
        key = self.backend.head_object(bucket_name, key_name, version_id=version)
        name = f"x-amz-checksum-{(key.checksum_algorithm or '').lower()}"
        if key.checksum_type == "COMPOSITE":
            answered[name] = f"{key.checksum_value}-{key.checksum_parts}"
        if name in answered:
            answered["x-amz-checksum-type"] = key.checksum_type or "FULL_OBJECT"
    return status, answered, body
