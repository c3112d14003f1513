"""AWS::ECR::*."""

from __future__ import annotations

from .properties import as_bool, as_text, call, only, refuse_others, retag
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class Repository(ResourceType):
    """An image repository."""

    type_name = "AWS::ECR::Repository"
    name_property = "RepositoryName"

    def create(self, at: Place, properties: Properties) -> Created:
        name = properties.get("RepositoryName") or at.generated_name(256, lower=True)
        arguments = only(
            properties,
            "EncryptionConfiguration",
            "ImageScanningConfiguration",
            "ImageTagMutability",
            "Tags",
        )
        repository = call(
            at.client("ecr"), "create_repository", {**arguments, "repositoryName": name}
        )["repository"]
        self._policies(at, name, {}, properties)
        uri = repository["repositoryUri"]
        return Created(name, {"Arn": repository["repositoryArn"], "RepositoryUri": uri})

    @staticmethod
    def _policies(at: Place, name: str, old: Properties, new: Properties) -> None:
        ecr = at.client("ecr")
        text = new.get("RepositoryPolicyText")
        if text:
            ecr.set_repository_policy(repositoryName=name, policyText=as_text(text))
        elif old.get("RepositoryPolicyText"):
            ecr.delete_repository_policy(repositoryName=name)
        policy = new.get("LifecyclePolicy") or {}
        refuse_others(policy, "LifecyclePolicy", "LifecyclePolicyText")
        lifecycle = policy.get("LifecyclePolicyText")
        if lifecycle:
            ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=as_text(lifecycle))
        elif old.get("LifecyclePolicy"):
            ecr.delete_lifecycle_policy(repositoryName=name)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        ecr, name = at.client("ecr"), existing.physical_id
        ecr.put_image_tag_mutability(
            repositoryName=name,
            imageTagMutability=properties.get("ImageTagMutability", "MUTABLE"),
        )
        scanning = properties.get("ImageScanningConfiguration") or {"scanOnPush": False}
        call(
            ecr,
            "put_image_scanning_configuration",
            {"repositoryName": name, "imageScanningConfiguration": scanning},
        )
        self._policies(at, name, existing.properties, properties)
        retag(existing.properties, properties, ecr.tag_resource, ecr.untag_resource,
              "tags", "tagKeys", resourceArn=existing.attributes["Arn"])

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("ecr").delete_repository(
            repositoryName=existing.physical_id,
            force=as_bool(existing.properties.get("EmptyOnDelete", False)),
        )
