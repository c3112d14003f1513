"""AWS::S3::*."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .properties import call, refuse_others, tag_list
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class Bucket(ResourceType):
    """A bucket; like AWS's it can only be deleted when empty."""

    type_name = "AWS::S3::Bucket"
    deletes_by = ("s3", "delete_bucket", "Bucket")
    name_property = "BucketName"

    def create(self, at: Place, properties: Properties) -> Created:
        name = properties.get("BucketName") or at.generated_name(63, lower=True)
        where = (
            {}
            if at.region == "us-east-1"
            else {"CreateBucketConfiguration": {"LocationConstraint": at.region}}
        )
        at.client("s3").create_bucket(Bucket=name, **where)
        at.begin(name)
        self._settle(at, name, {}, properties)
        return Created(
            name,
            {
                "Arn": f"arn:aws:s3:::{name}",
                "DomainName": f"{name}.s3.amazonaws.com",
                "RegionalDomainName": f"{name}.s3.{at.region}.amazonaws.com",
                "DualStackDomainName": f"{name}.s3.dualstack.{at.region}.amazonaws.com",
            },
        )

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self._settle(at, existing.physical_id, existing.properties, properties)

    def _settle(self, at: Place, name: str, old: Properties, new: Properties) -> None:
        """Bring each setting to what the template says, or back to AWS's default."""
        s3 = at.client("s3")
        for setting, (put, remove, translate) in _SETTINGS.items():
            value = new.get(setting)
            if value == old.get(setting):
                continue
            if value is not None:
                call(s3, put, {"Bucket": name, **translate(value)})
            elif remove:
                getattr(s3, remove)(Bucket=name)
            elif setting == "AccessControl":
                s3.put_bucket_acl(Bucket=name, ACL="private")
            elif setting == "VersioningConfiguration":
                s3.put_bucket_versioning(
                    Bucket=name, VersioningConfiguration={"Status": "Suspended"}
                )
            else:
                s3.put_bucket_logging(Bucket=name, BucketLoggingStatus={})


def _encryption(value: Mapping[str, Any]) -> dict[str, Any]:
    refuse_others(value, "BucketEncryption", "ServerSideEncryptionConfiguration")
    rules = []
    for rule in value["ServerSideEncryptionConfiguration"]:
        renamed = dict(rule)
        if "ServerSideEncryptionByDefault" in renamed:
            renamed["ApplyServerSideEncryptionByDefault"] = renamed.pop(
                "ServerSideEncryptionByDefault"
            )
        rules.append(renamed)
    return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


def _lifecycle(value: Mapping[str, Any]) -> dict[str, Any]:
    """Translate rules; CloudFormation's names differ from the API's here."""
    refuse_others(value, "LifecycleConfiguration", "Rules")
    rules = []
    for rule in value["Rules"]:
        left = dict(rule)
        result: dict[str, Any] = {"Status": left.pop("Status")}
        if "Id" in left:
            result["ID"] = left.pop("Id")
        result["Filter"] = {"Prefix": left.pop("Prefix", "")}
        if "ExpirationInDays" in left:
            result["Expiration"] = {"Days": left.pop("ExpirationInDays")}
        if "NoncurrentVersionExpirationInDays" in left:
            days = left.pop("NoncurrentVersionExpirationInDays")
            result["NoncurrentVersionExpiration"] = {"NoncurrentDays": days}
        for same in ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"):
            if same in left:
                result[same] = left.pop(same)
        refuse_others(left, "LifecycleConfiguration.Rules")
        rules.append(result)
    return {"LifecycleConfiguration": {"Rules": rules}}


def _logging(value: Mapping[str, Any]) -> dict[str, Any]:
    refuse_others(value, "LoggingConfiguration", "DestinationBucketName", "LogFilePrefix")
    enabled = {
        "TargetBucket": value["DestinationBucketName"],
        "TargetPrefix": value.get("LogFilePrefix", ""),
    }
    return {"BucketLoggingStatus": {"LoggingEnabled": enabled}}


def _canned_acl(value: str) -> dict[str, Any]:
    """Give `log-delivery-write` for `LogDeliveryWrite`."""
    return {"ACL": re.sub(r"(?<!^)(?=[A-Z])", "-", value).lower()}


_SETTINGS: dict[str, tuple[str, str | None, Any]] = {
    "AccessControl": ("put_bucket_acl", None, _canned_acl),
    "BucketEncryption": ("put_bucket_encryption", "delete_bucket_encryption", _encryption),
    "LifecycleConfiguration": (
        "put_bucket_lifecycle_configuration",
        "delete_bucket_lifecycle",
        _lifecycle,
    ),
    "LoggingConfiguration": ("put_bucket_logging", None, _logging),
    "OwnershipControls": (
        "put_bucket_ownership_controls",
        "delete_bucket_ownership_controls",
        lambda value: {"OwnershipControls": value},
    ),
    "PublicAccessBlockConfiguration": (
        "put_public_access_block",
        "delete_public_access_block",
        lambda value: {"PublicAccessBlockConfiguration": value},
    ),
    "Tags": (
        "put_bucket_tagging",
        "delete_bucket_tagging",
        lambda value: {"Tagging": {"TagSet": tag_list(value)}},
    ),
    "VersioningConfiguration": (
        "put_bucket_versioning",
        None,
        lambda value: {"VersioningConfiguration": value},
    ),
}


@emulated
class BucketPolicy(ResourceType):
    """A bucket's policy: kept and readable; see `corrections.policies` for what is enforced."""

    type_name = "AWS::S3::BucketPolicy"
    deletes_by = ("s3", "delete_bucket_policy", "Bucket")

    def create(self, at: Place, properties: Properties) -> Created:
        bucket = properties["Bucket"]
        policy = json.dumps(properties["PolicyDocument"])
        at.client("s3").put_bucket_policy(Bucket=bucket, Policy=policy)
        return Created(bucket, {})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self.create(at, properties)
