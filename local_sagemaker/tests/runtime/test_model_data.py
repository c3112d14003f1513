"""A model's data as its bucket has it."""

from __future__ import annotations

from pathlib import Path

from local_sagemaker import LocalAws
from local_sagemaker.runtime.containers import ModelData


def test_an_object_that_was_deleted_in_a_versioned_bucket_is_left_out(tmp_path: Path) -> None:
    with LocalAws.in_process(region="us-east-1") as aws:
        s3 = aws.client("s3")
        s3.create_bucket(Bucket="versioned")
        s3.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
        for name in ("kept", "gone"):
            s3.put_object(Bucket="versioned", Key=f"model/{name}", Body=b"x")
        s3.delete_object(Bucket="versioned", Key="model/gone")
        data = ModelData("s3://versioned/model/", prefix=True, archive=False)
        data.unpack(tmp_path, "123456789012", "us-east-1", lambda: False)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["kept"]
