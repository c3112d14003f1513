"""AWS::S3::*, AWS::ECR::* and images in registries, AWS::SSM::*, AWS::KMS::*."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import json
import os
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import pytest
from moto.s3.models import FakeKey, FakeMultipart
from roles_under_test import allow, document
from signed_requests import refusal
from stacks_under_test import resource_of

from local_sagemaker import DeploymentFailed, LocalAws
from local_sagemaker.archives import Unpackable, unpack_model_data


def test_bucket(aws, stack):
    s3 = aws.client("s3")
    rule = {
        "Status": "Enabled",
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
    }
    encryption = [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}]
    properties = {
        "BucketName": "first-bucket",
        "VersioningConfiguration": {"Status": "Enabled"},
        "BucketEncryption": {"ServerSideEncryptionConfiguration": encryption},
        "PublicAccessBlockConfiguration": {"BlockPublicAcls": True, "IgnorePublicAcls": True},
        "LifecycleConfiguration": {"Rules": [rule]},
        "Tags": [{"Key": "k", "Value": "v"}],
    }
    made = stack.deploy("AWS::S3::Bucket", properties, ("Arn", "RegionalDomainName"))
    assert made.ref == "first-bucket"
    assert made.attributes == {
        "Arn": "arn:aws:s3:::first-bucket",
        "RegionalDomainName": "first-bucket.s3.us-east-1.amazonaws.com",
    }
    assert s3.get_bucket_versioning(Bucket=made.ref)["Status"] == "Enabled"
    rules = s3.get_bucket_encryption(Bucket=made.ref)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rules[0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    block = s3.get_public_access_block(Bucket=made.ref)["PublicAccessBlockConfiguration"]
    assert block["BlockPublicAcls"] is True
    (found,) = s3.get_bucket_lifecycle_configuration(Bucket=made.ref)["Rules"]
    assert found["NoncurrentVersionExpiration"]["NoncurrentDays"] == 30
    assert s3.get_bucket_tagging(Bucket=made.ref)["TagSet"] == [{"Key": "k", "Value": "v"}]

    stack.deploy("AWS::S3::Bucket", {"BucketName": "first-bucket"})
    assert s3.get_bucket_versioning(Bucket=made.ref)["Status"] == "Suspended"
    for read, code in (
        (s3.get_public_access_block, "NoSuchPublicAccessBlockConfiguration"),
        (s3.get_bucket_lifecycle_configuration, "NoSuchLifecycleConfiguration"),
        (s3.get_bucket_tagging, "NoSuchTagSet"),
    ):
        assert refusal(read, Bucket=made.ref)[0] == code

    assert stack.deploy("AWS::S3::Bucket", {"BucketName": "second-bucket"}).ref == "second-bucket"
    assert "first-bucket" not in [b["Name"] for b in s3.list_buckets()["Buckets"]]
    s3.put_object(Bucket="second-bucket", Key="k", Body=b"x")
    with pytest.raises(DeploymentFailed, match="not empty"):
        stack.delete()
    s3.delete_object(Bucket="second-bucket", Key="k")
    stack.delete()


def test_bucket_policy_is_readable_and_a_conditional_deny_blocks_nothing(aws, stack):
    s3 = aws.client("s3")
    arn = {"Fn::GetAtt": ["Bucket", "Arn"]}
    everything = [arn, {"Fn::Join": ["", [arn, "/*"]]}]
    deny = {**allow("s3:*", everything, Principal="*"), "Effect": "Deny"}
    tls = {"Bool": {"aws:SecureTransport": "false"}}

    def put_policy(**more: object) -> str:
        policy = {"Bucket": {"Ref": "Bucket"}, "PolicyDocument": document({**deny, **more})}
        bucket = resource_of("AWS::S3::Bucket")
        made = stack.deploy("AWS::S3::BucketPolicy", policy, Bucket=bucket)
        return made.stack.resources["Bucket"]

    name = put_policy(Condition=tls)
    s3.put_object(Bucket=name, Key="k", Body=b"x")
    s3.delete_object(Bucket=name, Key="k")
    found = json.loads(s3.get_bucket_policy(Bucket=name)["Policy"])
    assert found["Statement"][0]["Condition"] == tls
    put_policy()  # without a condition the Deny holds
    assert refusal(s3.put_object, Bucket=name, Key="k", Body=b"x")[0] == "AccessDenied"


def test_repository(aws, stack):
    ecr, kind = aws.client("ecr"), "AWS::ECR::Repository"
    access = document({"Effect": "Allow", "Principal": "*", "Action": ["ecr:BatchGetImage"]})
    properties = {
        "RepositoryName": "models",
        "ImageTagMutability": "IMMUTABLE",
        "ImageScanningConfiguration": {"ScanOnPush": "true"},
        "RepositoryPolicyText": access,
    }
    made = stack.deploy(kind, properties, ("Arn", "RepositoryUri"))
    (found,) = ecr.describe_repositories(repositoryNames=["models"])["repositories"]
    assert made.attributes["Arn"] == found["repositoryArn"]
    assert made.attributes["RepositoryUri"] == found["repositoryUri"]
    assert found["imageTagMutability"] == "IMMUTABLE"
    assert found["imageScanningConfiguration"] == {"scanOnPush": True}
    text = ecr.get_repository_policy(repositoryName="models")["policyText"]
    assert json.loads(text) == access

    stack.deploy(kind, {"RepositoryName": "models", "Tags": [{"Key": "a", "Value": "b"}]})
    (found,) = ecr.describe_repositories(repositoryNames=["models"])["repositories"]
    assert found["imageTagMutability"] == "MUTABLE"
    assert found["imageScanningConfiguration"] == {"scanOnPush": False}
    gone = refusal(ecr.get_repository_policy, repositoryName="models")
    assert gone[0] == "RepositoryPolicyNotFoundException"
    stack.delete()
    gone = refusal(ecr.describe_repositories, repositoryNames=["models"])
    assert gone[0] == "RepositoryNotFoundException"


def test_parameter(aws, stack):
    ssm, named = aws.client("ssm"), {"ResourceType": "Parameter", "ResourceId": "/a/b"}

    def deploy(name: str, kind: str, value: str, **more: object) -> None:
        properties = {"Name": name, "Type": kind, "Value": value, **more}
        made = stack.deploy("AWS::SSM::Parameter", properties, ("Type", "Value"))
        assert (made.ref, made.attributes) == (name, {"Type": kind, "Value": value})
        found = ssm.get_parameter(Name=name)["Parameter"]
        assert (found["Type"], found["Value"]) == (kind, value)

    deploy("/a/b", "String", "1", Tags={"k": "v"})
    assert ssm.list_tags_for_resource(**named)["TagList"] == [{"Key": "k", "Value": "v"}]
    deploy("/a/b", "StringList", "1,2")
    assert ssm.list_tags_for_resource(**named)["TagList"] == []
    deploy("/c", "String", "1")
    assert refusal(ssm.get_parameter, Name="/a/b")[0] == "ParameterNotFound"


def test_key_and_alias(aws, stack):
    kms = aws.client("kms")
    alias = resource_of(
        "AWS::KMS::Alias", AliasName="alias/one", TargetKeyId={"Fn::GetAtt": ["It", "Arn"]}
    )
    properties = {"Description": "first", "EnableKeyRotation": True, "PendingWindowInDays": 7}
    made = stack.deploy("AWS::KMS::Key", properties, ("Arn", "KeyId"), Alias=alias)
    found = kms.describe_key(KeyId="alias/one")["KeyMetadata"]
    assert made.ref == made.attributes["KeyId"] == found["KeyId"]
    assert made.attributes["Arn"] == found["Arn"]
    assert found["Description"] == "first"
    assert kms.get_key_rotation_status(KeyId=made.ref)["KeyRotationEnabled"] is True

    owner = {"AWS": "arn:aws:iam::123456789012:root"}
    policy = {**document({**allow("kms:*"), "Principal": owner}), "Id": "mine"}
    properties = {"Description": "second", "KeyPolicy": policy, "Enabled": False}
    assert stack.deploy("AWS::KMS::Key", properties, Alias=alias).ref == made.ref
    found = kms.describe_key(KeyId=made.ref)["KeyMetadata"]
    assert (found["Description"], found["Enabled"]) == ("second", False)
    text = kms.get_key_policy(KeyId=made.ref, PolicyName="default")["Policy"]
    assert json.loads(text)["Id"] == "mine"

    alias["Properties"]["AliasName"] = "alias/two"
    stack.deploy("AWS::KMS::Key", {"Description": "second"}, Alias=alias)
    names = [a["AliasName"] for a in kms.list_aliases()["Aliases"]]
    assert "alias/two" in names
    assert "alias/one" not in names
    stack.delete()
    assert kms.describe_key(KeyId=made.ref)["KeyMetadata"]["KeyState"] == "PendingDeletion"


def test_an_upload_that_ends_slowly_refuses_its_parts(aws, stack, monkeypatch):
    s3 = aws.client("s3")
    name = stack.deploy("AWS::S3::Bucket", {"BucketName": "ending"}).ref
    target = {"Bucket": name, "Key": "k"}
    upload = s3.create_multipart_upload(**target)["UploadId"]
    part = partial(s3.upload_part, **target, UploadId=upload, PartNumber=1, Body=b"x")
    part()
    closing = threading.Event()
    dispose = FakeMultipart.dispose

    def dispose_slowly(self):
        dispose(self)
        closing.set()
        time.sleep(0.3)  # moto still knows the upload, and its parts are closed

    monkeypatch.setattr(FakeMultipart, "dispose", dispose_slowly)
    with ThreadPoolExecutor() as pool:
        aborted = pool.submit(s3.abort_multipart_upload, **target, UploadId=upload)
        assert closing.wait(10)
        assert refusal(part)[0] == "NoSuchUpload"
        aborted.result()


def test_a_part_being_stored_is_stored_before_its_upload_ends(aws, stack, monkeypatch):
    s3 = aws.client("s3")
    name = stack.deploy("AWS::S3::Bucket", {"BucketName": "storing"}).ref
    target = {"Bucket": name, "Key": "k"}
    upload = s3.create_multipart_upload(**target)["UploadId"]
    storing = threading.Event()
    set_part = FakeMultipart.set_part

    def set_part_slowly(self, number, value):
        part = set_part(self, number, value)
        storing.set()
        time.sleep(0.3)  # long enough for an abort to arrive
        return part

    monkeypatch.setattr(FakeMultipart, "set_part", set_part_slowly)
    with ThreadPoolExecutor() as pool:
        part = pool.submit(s3.upload_part, **target, UploadId=upload, PartNumber=1, Body=b"x")
        assert storing.wait(10)
        s3.abort_multipart_upload(**target, UploadId=upload)
        assert part.result()["ETag"]


def test_parts_of_an_upload_that_has_ended_are_refused(aws, stack):
    s3 = aws.client("s3")
    name = stack.deploy("AWS::S3::Bucket", {"BucketName": "parts"}).ref
    target = {"Bucket": name, "Key": "large"}
    first, second = (s3.create_multipart_upload(**target)["UploadId"] for _ in range(2))
    part = s3.upload_part(**target, UploadId=first, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(**target, UploadId=first, MultipartUpload=parts)
    complete = partial(s3.complete_multipart_upload, **target, MultipartUpload=parts)
    # Conditional writes.
    assert refusal(complete, UploadId=second, IfNoneMatch="*")[0] == "PreconditionFailed"
    uploads = s3.list_multipart_uploads(Bucket=name, Prefix="lar")["Uploads"]
    assert [each["UploadId"] for each in uploads] == [second]
    s3.abort_multipart_upload(**target, UploadId=second)
    ended = {"UploadId": second}
    upload = partial(s3.upload_part, **target, PartNumber=1, Body=b"x")
    assert refusal(upload, **ended)[0] == "NoSuchUpload"
    assert refusal(complete, **ended, IfMatch=part["ETag"])[0] == "NoSuchUpload"
    s3.delete_object(**target)


AWS_S_OWN = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference"


def names_in(aws: LocalAws, region: str) -> list[str]:
    """The account's repositories of a Region; other tests of the same local AWS have theirs."""
    found = aws.client("ecr", region).describe_repositories()["repositories"]
    return [each["repositoryName"] for each in found]


def test_an_image_is_in_the_registry_that_its_uri_names_and_in_no_other(aws: LocalAws) -> None:
    aws.add_image(f"{AWS_S_OWN}:2.6.0-cpu")
    aws.add_image(f"{AWS_S_OWN}:2.6.0-arm", architecture="arm64")
    aws.add_image(f"{AWS_S_OWN}:2.6.0-cpu")  # pushing it again is no error
    ecr = aws.client("ecr")
    asked = {
        "repositoryName": "pytorch-inference",
        "imageIds": [{"imageTag": "2.6.0-cpu"}, {"imageTag": "2.6.0-arm"}, {"imageTag": "1.0"}],
    }
    try:
        answer = ecr.batch_get_image(registryId="763104351884", **asked)
        platforms = {}
        for each in answer["images"]:
            (entry,) = json.loads(each["imageManifest"])["manifests"]
            platforms[each["imageId"]["imageTag"]] = entry["platform"]["architecture"]
        assert platforms == {"2.6.0-cpu": "amd64", "2.6.0-arm": "arm64"}
        assert [each["imageId"]["imageTag"] for each in answer["failures"]] == ["1.0"]
        # moto would look into the caller's own registry for all of them.
        for registry in ({}, {"registryId": aws.account}, {"registryId": "111122223333"}):
            code, _ = refusal(ecr.batch_get_image, **registry, **asked)
            assert code == "RepositoryNotFoundException"
        assert "pytorch-inference" not in names_in(aws, "us-east-1")
    finally:
        gone = {"registryId": "763104351884", "repositoryName": "pytorch-inference"}
        ecr.delete_repository(**gone, force=True)


def test_an_image_lies_in_the_region_of_its_uri(aws: LocalAws) -> None:
    aws.add_image(f"{aws.account}.dkr.ecr.eu-west-1.amazonaws.com/team/model:1")
    assert "team/model" in names_in(aws, "eu-west-1")
    assert "team/model" not in names_in(aws, "us-east-1")
    aws.client("ecr", "eu-west-1").delete_repository(repositoryName="team/model", force=True)


@pytest.mark.parametrize(
    "uri",
    ["team/model:1", "123456789012.dkr.ecr.us-east-1.amazonaws.com/m", "docker.io/team/model:1"],
)
def test_what_is_no_tag_in_a_registry_of_ecr_is_refused(aws: LocalAws, uri: str) -> None:
    with pytest.raises(ValueError, match="is no image of ECR"):
        aws.add_image(uri)


@pytest.mark.parametrize(("files", "size", "most"), [(300, 0, 5), (1, 10_000_000, 0)])
def test_unpacking_stops_between_two_entries_and_within_a_large_one(tmp_path, files, size, most):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as written:
        for number in range(files):
            entry = tarfile.TarInfo(str(number))
            entry.size = size
            written.addfile(entry, io.BytesIO(bytes(size)))
    packed.seek(0)
    asked = count()
    with pytest.raises(Unpackable, match="stopped"):
        unpack_model_data(packed, 10**6, tmp_path, lambda: next(asked) > 5)
    found = list(tmp_path.iterdir())
    assert len(found) <= most + 1
    assert sum(each.stat().st_size for each in found) < 10_000_000


@pytest.mark.parametrize("filters", [True, False], ids=["filters", "before-3.11.4"])
def test_no_entry_of_an_archive_leaves_its_folder(tmp_path, monkeypatch, filters):
    if not filters:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    entries = [tarfile.TarInfo("model"), tarfile.TarInfo("../out"), link]
    for number, entry in enumerate(entries):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as written:
            written.addfile(entry)
        packed.seek(0)
        target = tmp_path / str(number)
        if entry.name == "model":
            unpack_model_data(packed, 100, target, lambda: False)
            assert (target / "model").is_file()
            continue
        with pytest.raises(Unpackable):
            unpack_model_data(packed, 100, target, lambda: False)
    assert not (tmp_path / "out").exists()


def test_an_object_that_this_machine_cannot_store_says_why(aws, monkeypatch):
    def full(self, value):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    s3 = aws.client("s3")
    s3.create_bucket(Bucket="full-bucket")
    monkeypatch.setattr(FakeKey, "value", FakeKey.value.setter(full))
    code, message = refusal(s3.put_object, Bucket="full-bucket", Key="k", Body=b"x")
    assert (code, "No space left on device" in message) == ("InternalError", True)


def _stored(s3, key, body, *, parts, **more):
    """Put an object there, at once or in so many parts of five MiB."""
    if not parts:
        s3.put_object(Bucket="checked", Key=key, Body=body, **more)
        return
    made = s3.create_multipart_upload(Bucket="checked", Key=key, **more)
    target = {"Bucket": "checked", "Key": key, "UploadId": made["UploadId"]}
    done = []
    for number in range(1, parts + 1):
        part = s3.upload_part(**target, PartNumber=number, Body=body, **more)
        kept = {"ETag": part["ETag"], "ChecksumSHA256": part["ChecksumSHA256"]}
        done.append({"PartNumber": number, **kept})
    s3.complete_multipart_upload(**target, MultipartUpload={"Parts": done})


@pytest.mark.parametrize("parts", [0, 1, 2])
@pytest.mark.parametrize("ask", ["head_object", "get_object"])
def test_a_checksum_says_of_what_it_is(aws, parts, ask):
    """S3 user guide, "Checking object integrity": of parts, the hash of their hashes and their number."""
    s3, body = aws.client("s3"), b"x" * (5 * 1024 * 1024)
    s3.create_bucket(Bucket="checked")
    _stored(s3, "k", body, parts=parts, ChecksumAlgorithm="SHA256")
    found = getattr(s3, ask)(Bucket="checked", Key="k", ChecksumMode="ENABLED")
    one = hashlib.sha256(body).digest()
    whole = hashlib.sha256(one * parts).digest() if parts else one
    number = f"-{parts}" if parts else ""
    assert found["ChecksumSHA256"] == base64.b64encode(whole).decode() + number
    assert found.get("ChecksumType", "FULL_OBJECT") == ("COMPOSITE" if parts else "FULL_OBJECT")
    # boto3 asks for it by itself where it reads the body.
    assert "ChecksumSHA256" not in s3.head_object(Bucket="checked", Key="k")


@pytest.mark.parametrize("name", ["SHA256", "SHA1", "CRC32"])
def test_another_checksum_than_of_the_body_is_refused(aws, name):
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="checked")
    length = {"SHA256": 32, "SHA1": 20, "CRC32": 4}[name]
    other = {f"Checksum{name}": base64.b64encode(bytes(length)).decode()}
    code, words = refusal(s3.put_object, Bucket="checked", Key=name, Body=b"x", **other)
    assert (code, words) == (
        "BadDigest",
        f"The {name} you specified did not match the calculated checksum.",
    )
    assert "Contents" not in s3.list_objects_v2(Bucket="checked", Prefix=name)
