"""Stacks, resources, events and change sets as the API describes them."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

from ..protocols import ServiceError
from .stacks import ChangeSet, DeployedResource, Stack
from .template import Submission


def bucket_and_key(url: str) -> tuple[str, str]:
    """Read bucket and key from an S3 URL: path-style on this machine, else also virtual-hosted."""
    parts = urllib.parse.urlsplit(url)
    path = urllib.parse.unquote(parts.path.lstrip("/"))
    hosted = re.fullmatch(r"(.+)\.s3[.-][a-z0-9.-]*amazonaws\.com", parts.hostname or "")
    if hosted:
        return hosted[1], path
    bucket, _, key = path.partition("/")
    if not key:
        raise ServiceError(f"TemplateURL must be a supported URL, not {url}")
    return bucket, key


def stack(found: Stack) -> dict[str, Any]:
    return {
        "StackId": found.id,
        "StackName": found.name,
        "ChangeSetId": found.last_change_set,
        "Description": found.submitted.template.get("Description"),
        **_submitted(found.submitted),
        "CreationTime": found.created,
        "LastUpdatedTime": found.updated,
        "DeletionTime": found.deleted,
        "StackStatus": found.status,
        "StackStatusReason": found.reason,
        "DisableRollback": found.disable_rollback,
        "NotificationARNs": found.notification_arns,
        "RoleARN": found.role_arn,
        "EnableTerminationProtection": found.termination_protection,
        "ParentId": found.parent_id,
        "RootId": found.root_id,
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        "Outputs": [
            {
                "OutputKey": output.key,
                "OutputValue": output.value,
                "Description": output.description,
                "ExportName": output.export,
            }
            for output in found.outputs
        ],
    }


def _submitted(found: Submission) -> dict[str, Any]:
    return {
        "Parameters": [
            {
                "ParameterKey": key,
                "ParameterValue": parameter.given,
                "ResolvedValue": str(parameter.value) if parameter.from_ssm else None,
            }
            for key, parameter in found.parameters.items()
        ],
        "Capabilities": found.capabilities,
        "Tags": [{"Key": key, "Value": value} for key, value in found.tags.items()],
    }


def resource(owner: Stack, found: DeployedResource) -> dict[str, Any]:
    """Describe a stack's resource; the three operations differ in one time stamp's name only."""
    return {
        "StackName": owner.name,
        "StackId": owner.id,
        "LogicalResourceId": found.logical_id,
        "PhysicalResourceId": found.physical_id,
        "ResourceType": found.type,
        "ResourceStatus": found.status,
        "ResourceStatusReason": found.reason,
        "Timestamp": found.changed,
        "LastUpdatedTimestamp": found.changed,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }


def resource_summaries(found: Stack) -> dict[str, Any]:
    return {"StackResourceSummaries": [resource(found, item) for item in found.resources.values()]}


def events(found: Stack) -> dict[str, Any]:
    """Describe a stack's history, newest first."""
    return {"StackEvents": list(reversed(found.events))}


def template_of(found: Stack) -> dict[str, Any]:
    body = found.submitted.body or "{}"
    return {"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]}


def template_summary(template: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Description": template.get("Description"),
        "Metadata": None,
        "ResourceTypes": sorted({r["Type"] for r in template.get("Resources", {}).values()}),
        "Parameters": [
            {
                "ParameterKey": key,
                "DefaultValue": str(declared["Default"]) if "Default" in declared else None,
                "ParameterType": declared.get("Type"),
                "Description": declared.get("Description"),
            }
            for key, declared in (template.get("Parameters") or {}).items()
        ],
    }


def change_set(owner: Stack, found: ChangeSet) -> dict[str, Any]:
    return {
        "ChangeSetName": found.name,
        "ChangeSetId": found.id,
        "StackId": owner.id,
        "StackName": owner.name,
        "Description": found.description,
        **_submitted(found.submitted),
        "CreationTime": found.created,
        "ExecutionStatus": found.execution_status,
        "Status": found.status,
        "StatusReason": found.reason,
        "Changes": found.changes,
        "IncludeNestedStacks": found.include_nested,
        "DeploymentMode": found.drift_status and "REVERT_DRIFT",
        "StackDriftStatus": found.drift_status,
        "OnStackFailure": found.on_failure,
    }


def change_sets(found: Stack) -> dict[str, Any]:
    return {"Summaries": [change_set(found, item) for item in found.change_sets.values()]}
