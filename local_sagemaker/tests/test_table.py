"""The table of resource types says what the services take, and loses no property."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import boto3
import pytest

from local_sagemaker.resources.calls import Call
from local_sagemaker.resources.resource_type import Members, ResourceType, Setting
from local_sagemaker.resources.table import TYPES

SESSION = boto3.Session("x", "x", region_name="us-east-1")
ROWS = [kind for kind in TYPES.values() if kind.creates or kind.parts]


def operations(kind: ResourceType) -> Iterator[Call]:
    yield from (each for each in (kind.creates, kind.updates, kind.deletes, *kind.reads) if each)
    for part in kind.parts:
        names = ("put", "reset") if isinstance(part, Setting) else ("add", "remove", "listed")
        yield from (operation for name in names if (operation := getattr(part, name)))
    if kind.tags:
        yield from (kind.tags.tag, kind.tags.untag)


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.type_name)
def test_each_operation_is_one_of_its_service_s_with_such_parameters(kind):
    client = SESSION.client(kind.service)
    for operation in operations(kind):
        name = client.meta.method_to_api_mapping[operation.operation]
        parameters = client.meta.service_model.operation_model(name).input_shape
        assert set(operation.arguments) <= set(parameters.members if parameters else ())


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.type_name)
def test_each_property_is_set_and_can_be_changed_or_replaces(kind):
    client = SESSION.client(kind.service)
    elsewhere = {name for part in kind.parts for name in part.of.split()} | {kind.name}
    for part in kind.parts:
        elsewhere |= part.add.fields if isinstance(part, Members) else set()
    elsewhere |= {kind.tags.of} if kind.tags else set()
    elsewhere |= kind.deletes.fields if kind.deletes else set()
    code = inspect.getsource(type(kind)) if type(kind) is not ResourceType else ""
    for name in kind.properties:
        known = name in elsewhere or f'"{name}"' in code
        creates, updates = (
            each is not None and each.takes(client, name) for each in (kind.creates, kind.updates)
        )
        assert known or creates or updates, name
        assert known or kind.anew or updates or name in kind.replaces, name
