"""S3's multipart uploads: moto breaks on those that have ended, and lets two be the first.

See https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html and
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flask import has_request_context, request
from moto.s3.exceptions import NoSuchUpload, PreconditionFailed
from moto.s3.models import S3Backend

from .replacing import around

_one_at_a_time = threading.Lock()


@around(S3Backend)
def upload_part(
    original: Callable[..., Any], self: Any, bucket_name: str, multipart_id: str, *rest: Any
) -> Any:
    """Refuse a part of an upload that was completed, aborted, or never made."""
    _check(self, bucket_name, multipart_id)
    part = original(self, bucket_name, multipart_id, *rest)
    try:
        _ = part.etag  # read and kept now: moto was seen to close the part of an upload that ended
    except ValueError:
        _check(self, bucket_name, multipart_id)
        raise
    return part


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
