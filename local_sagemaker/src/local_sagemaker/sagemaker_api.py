"""SageMaker's hosting API: models, endpoint configurations, endpoints.

moto drops most of a variant's fields, knows an old list of instance types and has no
UpdateEndpoint. Here a request is held against botocore's model of the API (which has the list of
instance types) and kept whole. Everything else of SageMaker is left to moto.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .application import Caller, OwnService, PassOn
from .hosting import Hosting, hosting
from .hosting_interfaces import hold, let_go
from .protocols import ServiceError
from .runtime.statuses import creating
from .variants import check_deployment_config, check_scalable_variants, describe_variants

_KINDS = {
    "model": ("models", "model"),
    "endpoint-config": ("configs", "endpoint configuration"),
    "endpoint": ("endpoints", "endpoint"),
}


def _state(caller: Caller) -> Hosting:
    return hosting(caller.account, caller.region)


def _arn(caller: Caller, kind: str, name: str) -> str:
    return f"arn:aws:sagemaker:{caller.region}:{caller.account}:{kind}/{name.lower()}"


def _find(caller: Caller, kind: str, name: str) -> dict[str, Any]:
    store, words = _KINDS[kind]
    found: dict[str, Any] | None = getattr(_state(caller), store).get(name)
    if found is None:
        raise ServiceError(
            f'Could not find {words} "{_arn(caller, kind, name)}".', "ValidationException"
        )
    return found


def _add(caller: Caller, kind: str, name: str, record: dict[str, Any]) -> str:
    state = _state(caller)
    store, words = _KINDS[kind]
    arn = _arn(caller, kind, name)
    with state.lock:
        if name in getattr(state, store):
            raise ServiceError(
                f'Cannot create already existing {words} "{arn}".', "ValidationException"
            )
        state.tags[arn] = {tag["Key"]: tag["Value"] for tag in record.pop("Tags", None) or []}
        getattr(state, store)[name] = record
    return arn


def _remove(caller: Caller, kind: str, name: str) -> None:
    _find(caller, kind, name)
    state = _state(caller)
    with state.lock:
        del getattr(state, _KINDS[kind][0])[name]
        state.tags.pop(_arn(caller, kind, name), None)


def _listed(
    caller: Caller, kind: str, request: dict[str, Any], fields: tuple[str, ...]
) -> list[dict[str, Any]]:
    records = list(getattr(_state(caller), _KINDS[kind][0]).items())
    wanted = request.get("NameContains", "")
    return [{f: record.get(f) for f in fields} for name, record in records if wanted in name]


# ------------------------------------------------------------------------------------------ models


def create_model(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateModel."""
    name = request["ModelName"]
    if bool(request.get("PrimaryContainer")) == bool(request.get("Containers")):
        raise ServiceError(
            "One and only one of PrimaryContainer and Containers must be specified",
            "ValidationException",
        )
    record = {"EnableNetworkIsolation": False, **request, "CreationTime": caller.now()}
    record["ModelArn"] = _arn(caller, "model", name)
    return {"ModelArn": _add(caller, "model", name, record)}


def describe_model(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeModel."""
    return _find(caller, "model", request["ModelName"])


def list_models(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListModels."""
    fields = ("ModelName", "ModelArn", "CreationTime")
    return {"Models": _listed(caller, "model", request, fields)}


def delete_model(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteModel."""
    _remove(caller, "model", request["ModelName"])


# ----------------------------------------------------------------------------------- configurations


def create_endpoint_config(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateEndpointConfig."""
    name = request["EndpointConfigName"]
    variants = [
        *(request.get("ProductionVariants") or []),
        *(request.get("ShadowProductionVariants") or []),
    ]
    names = [variant["VariantName"] for variant in variants]
    for variant in variants:
        if variant.get("ModelName"):
            _find(caller, "model", variant["ModelName"])
        if names.count(variant["VariantName"]) > 1:
            raise ServiceError(
                f"Production variant names must be unique: {variant['VariantName']}",
                "ValidationException",
            )
    record = {**copy.deepcopy(request), "CreationTime": caller.now()}
    for variant in record["ProductionVariants"]:
        if "ServerlessConfig" not in variant:
            variant.setdefault("InitialVariantWeight", 1.0)
    record["EndpointConfigArn"] = _arn(caller, "endpoint-config", name)
    return {"EndpointConfigArn": _add(caller, "endpoint-config", name, record)}


def describe_endpoint_config(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeEndpointConfig."""
    return _find(caller, "endpoint-config", request["EndpointConfigName"])


def list_endpoint_configs(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListEndpointConfigs."""
    fields = ("EndpointConfigName", "EndpointConfigArn", "CreationTime")
    return {"EndpointConfigs": _listed(caller, "endpoint-config", request, fields)}


def delete_endpoint_config(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteEndpointConfig, also of one in use, which AWS forbids in words only.

    "You must not delete an EndpointConfig in use by an endpoint that is live" (API reference). The
    endpoint goes on serving, and its next update or scaling fails: "Could not find endpoint
    configuration" (hashicorp/terraform-provider-aws#40048, #46663).
    """
    _remove(caller, "endpoint-config", request["EndpointConfigName"])


# ---------------------------------------------------------------------------------------- endpoints


def create_endpoint(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateEndpoint; in service at once unless a model server has to be started."""
    name = request["EndpointName"]
    config = _find(caller, "endpoint-config", request["EndpointConfigName"])
    created = caller.now()
    record = {
        "EndpointName": name,
        "EndpointArn": _arn(caller, "endpoint", name),
        "EndpointConfigName": config["EndpointConfigName"],
        "EndpointStatus": "InService",
        "CreationTime": created,
        "LastModifiedTime": created,
        "LastDeploymentConfig": request.get("DeploymentConfig"),
        "Tags": request.get("Tags"),
        **_from_config(caller, config, {}, retained=frozenset()),
    }
    check_deployment_config(request.get("DeploymentConfig"), record)
    place = (caller.account, caller.region)
    live = caller.runtime.is_live(place, config)
    if live:
        creating(record, created)
    arn = _add(caller, "endpoint", name, record)
    hold(place, name, config, record)
    if live:
        caller.runtime.create(place, name, config)
    return {"EndpointArn": arn}


def _settled(caller: Caller, name: str) -> dict[str, Any]:
    """Give an endpoint that nothing is being done to; AWS refuses to change any other."""
    endpoint = _find(caller, "endpoint", name)
    if endpoint["EndpointStatus"] in ("Creating", "Updating", "RollingBack"):
        raise ServiceError(
            f'Cannot update in-progress endpoint "{endpoint["EndpointArn"]}".',
            "ValidationException",
        )
    return endpoint


def _unchanged(caller: Caller, endpoint: dict[str, Any], config: dict[str, Any]) -> bool:
    """Say whether an update brings nothing; see `RuntimeOptions.unchanged_configuration`."""
    if endpoint["EndpointConfigName"] != config["EndpointConfigName"]:
        return False
    wanted = caller.runtime.options.unchanged_configuration
    if wanted == "refused":
        raise ServiceError(
            f'Cannot update endpoint "{endpoint["EndpointArn"]}" with its current endpoint '
            f'configuration "{config["EndpointConfigArn"]}".',
            "ValidationException",
        )
    return wanted == "ignored"


def _from_config(
    caller: Caller,
    config: dict[str, Any],
    current: dict[str, dict[str, Any]],
    retained: frozenset[str],
) -> dict[str, Any]:
    """Give the parts of an endpoint's description that come from its configuration."""
    models = _state(caller).models
    result: dict[str, Any] = {
        key: config.get(key) for key in ("AsyncInferenceConfig", "ExplainerConfig")
    }
    for key in ("ProductionVariants", "ShadowProductionVariants"):
        result[key] = (
            describe_variants(config.get(key) or [], models, current, retained, caller.now())
            or None
        )
    capture = config.get("DataCaptureConfig")
    result["DataCaptureConfig"] = capture and {
        "EnableCapture": capture.get("EnableCapture", False),
        "CaptureStatus": "Started" if capture.get("EnableCapture") else "Stopped",
        "CurrentSamplingPercentage": capture["InitialSamplingPercentage"],
        "DestinationS3Uri": capture["DestinationS3Uri"],
        "KmsKeyId": capture.get("KmsKeyId", ""),
    }
    return result


def describe_endpoint(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeEndpoint."""
    return _find(caller, "endpoint", request["EndpointName"])


def list_endpoints(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListEndpoints."""
    fields = ("EndpointName", "EndpointArn", "CreationTime", "LastModifiedTime", "EndpointStatus")
    found = _listed(caller, "endpoint", request, fields)
    status = request.get("StatusEquals")
    return {"Endpoints": [e for e in found if status in (None, e["EndpointStatus"])]}


def update_endpoint(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateEndpoint: new configuration, with or without the present counts and weights."""
    endpoint = _settled(caller, request["EndpointName"])
    config = _find(caller, "endpoint-config", request["EndpointConfigName"])
    deployment = request.get("DeploymentConfig")
    former = _find(caller, "endpoint-config", endpoint["EndpointConfigName"])
    if _unchanged(caller, endpoint, config):
        return {"EndpointArn": endpoint["EndpointArn"]}
    check_scalable_variants(caller, endpoint["EndpointName"], former, config)
    current = {v["VariantName"]: v for v in endpoint.get("ProductionVariants") or []}
    retained: frozenset[str] = frozenset()
    if request.get("RetainAllVariantProperties"):
        excluded = {
            entry["VariantPropertyType"]
            for entry in request.get("ExcludeRetainedVariantProperties") or []
        }
        retained = frozenset({"DesiredInstanceCount", "DesiredWeight"} - excluded)
    described = _from_config(caller, config, current, retained)
    check_deployment_config(deployment, described)
    if request.get("RetainDeploymentConfig"):
        deployment = endpoint["LastDeploymentConfig"]

    def take_over() -> None:
        with _state(caller).lock:
            endpoint.update(described)
            endpoint["EndpointConfigName"] = config["EndpointConfigName"]
            endpoint["LastModifiedTime"] = caller.now()
            endpoint["LastDeploymentConfig"] = deployment

    place = (caller.account, caller.region)
    hold(place, endpoint["EndpointName"], config, described)
    if caller.runtime.owns(place, endpoint["EndpointName"]):
        endpoint["EndpointStatus"], endpoint["FailureReason"] = "Updating", None
        caller.runtime.update(
            place, endpoint["EndpointName"], config, described, deployment, take_over
        )
    else:
        take_over()
        let_go(
            place,
            endpoint["EndpointName"],
            caller.runtime.clock,
            caller.runtime.options,
            but_for=config["EndpointConfigName"],
        )
    return {"EndpointArn": endpoint["EndpointArn"]}


def update_weights_and_capacities(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateEndpointWeightsAndCapacities."""
    endpoint = _settled(caller, request["EndpointName"])
    _find(caller, "endpoint-config", endpoint["EndpointConfigName"])
    place = (caller.account, caller.region)
    live = caller.runtime.owns(place, endpoint["EndpointName"])
    variants = {v["VariantName"]: v for v in endpoint["ProductionVariants"]}
    for wanted in request["DesiredWeightsAndCapacities"]:
        if wanted["VariantName"] not in variants:
            raise ServiceError(
                f'The variant name(s) "{wanted["VariantName"]}" is/are not present within '
                f'endpoint configuration "{endpoint["EndpointConfigName"]}".',
                "ValidationException",
            )
    for wanted in request["DesiredWeightsAndCapacities"]:
        variant = variants[wanted["VariantName"]]
        if "DesiredWeight" in wanted:
            variant["DesiredWeight"] = variant["CurrentWeight"] = wanted["DesiredWeight"]
        if "DesiredInstanceCount" in wanted:
            count = wanted["DesiredInstanceCount"]
            variant["DesiredInstanceCount"] = count
            if not live:
                variant["CurrentInstanceCount"] = count
    endpoint["LastModifiedTime"] = caller.now()
    if live:
        endpoint["EndpointStatus"] = "Updating"
        caller.runtime.scale(place, endpoint["EndpointName"])
    return {"EndpointArn": endpoint["EndpointArn"]}


def delete_endpoint(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteEndpoint; its scalable targets stay, deregistering them is the caller's part."""
    _settled(caller, request["EndpointName"])
    _remove(caller, "endpoint", request["EndpointName"])
    place = (caller.account, caller.region)
    caller.runtime.delete(place, request["EndpointName"])
    let_go(place, request["EndpointName"], caller.runtime.clock, caller.runtime.options)


# --------------------------------------------------------------------------------------------- tags


def _tags(
    work: Callable[[dict[str, str], dict[str, Any]], None],
) -> Callable[[Caller, dict[str, Any]], dict[str, Any]]:
    """Make a tag operation; tags of anything that is not hosting are moto's."""

    def operation(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
        tags = _state(caller).tags.get(request["ResourceArn"])
        if tags is None:
            raise PassOn
        work(tags, request)
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    return operation


def _add_tags(tags: dict[str, str], request: dict[str, Any]) -> None:
    tags.update({tag["Key"]: tag["Value"] for tag in request["Tags"]})


def _delete_tags(tags: dict[str, str], request: dict[str, Any]) -> None:
    for key in request["TagKeys"]:
        tags.pop(key, None)


SAGEMAKER = OwnService(
    "sagemaker",
    {
        "CreateModel": create_model,
        "DescribeModel": describe_model,
        "ListModels": list_models,
        "DeleteModel": delete_model,
        "CreateEndpointConfig": create_endpoint_config,
        "DescribeEndpointConfig": describe_endpoint_config,
        "ListEndpointConfigs": list_endpoint_configs,
        "DeleteEndpointConfig": delete_endpoint_config,
        "CreateEndpoint": create_endpoint,
        "DescribeEndpoint": describe_endpoint,
        "ListEndpoints": list_endpoints,
        "UpdateEndpoint": update_endpoint,
        "UpdateEndpointWeightsAndCapacities": update_weights_and_capacities,
        "DeleteEndpoint": delete_endpoint,
        "AddTags": _tags(_add_tags),
        "ListTags": _tags(lambda tags, request: None),
        "DeleteTags": _tags(_delete_tags),
    },
)
