"""S3's multipart uploads that have ended: S3 says NoSuchUpload, moto breaks.

See https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html and
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.s3.exceptions import NoSuchUpload
from moto.s3.models import S3Backend

from .replacing import around


@around(S3Backend, "upload_part", "complete_multipart_upload")
def of_an_upload(
    original: Callable[..., Any], self: Any, bucket_name: str, multipart_id: str, *rest: Any
) -> Any:
    """Refuse what belongs to an upload that was completed, aborted, or never made."""
    if multipart_id not in self.get_bucket(bucket_name).multiparts:
        raise NoSuchUpload(upload_id=multipart_id)
    return original(self, bucket_name, multipart_id, *rest)
