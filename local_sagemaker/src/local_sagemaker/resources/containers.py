"""AWS::ECR::* and AWS::ECS::*."""

from __future__ import annotations

from .properties import Tagging, as_bool, as_text, call, only, refuse_others, tag_list, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class Repository(ResourceType):
    """An image repository."""

    type_name = "AWS::ECR::Repository"
    name_property = "RepositoryName"
    tags_by = Tagging(
        "ecr", "tag_resource", "untag_resource", "resourceArn", "Arn", "tags", "tagKeys"
    )

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
        at.begin(name)
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
            repositoryName=name, imageTagMutability=properties.get("ImageTagMutability", "MUTABLE")
        )
        scanning = properties.get("ImageScanningConfiguration") or {"scanOnPush": False}
        call(
            ecr,
            "put_image_scanning_configuration",
            {"repositoryName": name, "imageScanningConfiguration": scanning},
        )
        self._policies(at, name, existing.properties, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("ecr").delete_repository(
            repositoryName=existing.physical_id,
            force=as_bool(existing.properties.get("EmptyOnDelete", False)),
        )


def _lower(tags: list[dict[str, str]]) -> list[dict[str, str]]:
    """Give tags as ECS spells them."""
    return [{"key": tag["Key"], "value": tag["Value"]} for tag in tags]


def _tags(of: str) -> Tagging:
    return Tagging(
        "ecs", "tag_resource", "untag_resource", "resourceArn", of, "tags", "tagKeys", _lower
    )


@emulated
class Cluster(ResourceType):
    """A cluster."""

    type_name = "AWS::ECS::Cluster"
    deletes_by = ("ecs", "delete_cluster", "cluster")
    name_property = "ClusterName"
    tags_by = _tags("Arn")

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties)
        arguments = without(properties, "ClusterSettings", "Tags")
        arguments |= {
            "clusterName": name,
            "settings": properties.get("ClusterSettings") or [],
            "tags": _lower(tag_list(properties.get("Tags"))),
        }
        arguments.pop("ClusterName", None)
        cluster = call(at.client("ecs"), "create_cluster", arguments)["cluster"]
        return Created(name, {"Arn": cluster["clusterArn"]})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        ecs, name = at.client("ecs"), existing.physical_id
        settings = properties.get("ClusterSettings") or []
        arguments = {"cluster": name, "settings": settings, **only(properties, "Configuration")}
        call(ecs, "update_cluster", arguments)
        providers = ("CapacityProviders", "DefaultCapacityProviderStrategy")
        if any(properties.get(key) != existing.properties.get(key) for key in providers):
            wanted = {key: properties.get(key) or [] for key in providers}
            call(ecs, "put_cluster_capacity_providers", {"cluster": name, **wanted})


@emulated
class ClusterCapacityProviders(ResourceType):
    """A cluster's capacity providers, as CDK declares them apart from the cluster."""

    type_name = "AWS::ECS::ClusterCapacityProviderAssociations"

    def create(self, at: Place, properties: Properties) -> Created:
        call(at.client("ecs"), "put_cluster_capacity_providers", properties)
        return Created(properties["Cluster"], {})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self.create(at, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("ecs").put_cluster_capacity_providers(
            cluster=existing.physical_id, capacityProviders=[], defaultCapacityProviderStrategy=[]
        )


@emulated
class TaskDefinition(ResourceType):
    """A task definition: a change makes a new revision."""

    type_name = "AWS::ECS::TaskDefinition"
    deletes_by = ("ecs", "deregister_task_definition", "taskDefinition")
    tags_by = _tags("TaskDefinitionArn")

    def create(self, at: Place, properties: Properties) -> Created:
        arguments = without(properties, "Tags", "Family")
        arguments["family"] = properties.get("Family") or at.generated_name()
        if properties.get("Tags"):
            arguments["tags"] = _lower(tag_list(properties["Tags"]))
        answer = call(at.client("ecs"), "register_task_definition", arguments)
        arn = answer["taskDefinition"]["taskDefinitionArn"]
        return Created(arn, {"TaskDefinitionArn": arn})


@emulated
class Service(ResourceType):
    """A service. No task is ever started here."""

    type_name = "AWS::ECS::Service"
    # LaunchType is conditional in the schema; moto cannot change either.
    also_replaces = frozenset({"DeploymentController", "LaunchType"})
    name_property = "ServiceName"
    tags_by = _tags("ServiceArn")

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties)
        arguments = {"DesiredCount": 1, **without(properties, "Tags", "ServiceName")}
        arguments["serviceName"] = name
        if properties.get("Tags"):
            arguments["tags"] = _lower(tag_list(properties["Tags"]))
        service = call(at.client("ecs"), "create_service", arguments)["service"]
        arn = service["serviceArn"]
        return Created(arn, {"Name": name, "ServiceArn": arn})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        in_place = self.properties - self.replaces - {"Tags"}
        arguments = only(properties, *in_place, "Cluster")
        call(
            at.client("ecs"),
            "update_service",
            {**arguments, "service": existing.attributes["Name"]},
        )

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("ecs").delete_service(
            cluster=existing.properties.get("Cluster", "default"),
            service=existing.attributes["Name"],
            force=True,
        )
