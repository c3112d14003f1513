"""SageMaker's hosting API: models, endpoint configurations, endpoints, components.

moto drops most of a variant's fields, knows an old list of instance types and has no
UpdateEndpoint. Here a request is held against botocore's model of the API (which has the list of
instance types) and kept whole. Everything else of SageMaker is left to moto.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from .application import Caller, Operation, OwnService, PassOn
from .hosting import Hosting, all_variants, hold, hosting, let_go, scaling
from .permissions.judge import Denied, check
from .permissions.requests import rights
from .permissions.service_roles import RoleLacks
from .protocols import Invalid, ServiceError
from .runtime.blueprints import role_of
from .runtime.statuses import creating
from .service_quotas import check_quota
from .variants import (
    check_component,
    check_component_variants,
    check_containers,
    check_deployment_config,
    check_scalable_variants,
    check_serverless,
    check_shadows,
    check_sizes,
    check_specification,
    deployed_image,
    describe_variants,
)

_KINDS = {
    "Model": ("models", "model"),
    "EndpointConfig": ("configs", "endpoint configuration"),
    "Endpoint": ("endpoints", "endpoint"),
    "InferenceComponent": ("components", "inference component"),
}
"""Where each kind is kept, and what its refusals call it."""


def _state(caller: Caller) -> Hosting:
    return hosting(*caller.place)


def _store(caller: Caller, kind: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = getattr(_state(caller), _KINDS[kind][0])
    return found


def _arn(caller: Caller, kind: str, name: str) -> str:
    if kind == "InferenceComponent":
        word = "inference-component"
    else:
        word, name = "endpoint-config" if kind == "EndpointConfig" else kind.lower(), name.lower()
    return f"arn:aws:sagemaker:{caller.region}:{caller.account}:{word}/{name}"


def _find(caller: Caller, kind: str, name: str) -> dict[str, Any]:
    found = _store(caller, kind).get(name)
    if found is None:
        raise Invalid(f'Could not find {_KINDS[kind][1]} "{_arn(caller, kind, name)}".')
    return found


def _add(caller: Caller, kind: str, record: dict[str, Any]) -> dict[str, Any]:
    """Keep a record under its name; gives the answer to its Create."""
    state, store, name = _state(caller), _store(caller, kind), record[f"{kind}Name"]
    arn = record[f"{kind}Arn"] = _arn(caller, kind, name)
    tags = record.pop("Tags", None) or []
    keys = [tag["Key"] for tag in tags]
    if len(set(keys)) < len(keys):
        raise Invalid(f"Tag keys must be unique per resource: {', '.join(keys)}")
    with state.lock:
        # "The name is case-insensitive in CreateEndpoint".
        taken = {kept.lower() for kept in store} if kind == "Endpoint" else store
        if (name.lower() if kind == "Endpoint" else name) in taken:
            raise Invalid(f'Cannot create already existing {_KINDS[kind][1]} "{arn}".')
        state.tags[arn] = {tag["Key"]: tag["Value"] for tag in tags}
        store[name] = record
    return {f"{kind}Arn": arn}


def _remove(caller: Caller, kind: str, name: str) -> None:
    _find(caller, kind, name)
    state = _state(caller)
    with state.lock:
        del _store(caller, kind)[name]
        state.tags.pop(_arn(caller, kind, name), None)


def _describe(kind: str) -> Operation:
    """Make DescribeModel and its like."""
    return lambda caller, request: _find(caller, kind, request[f"{kind}Name"])


def _delete(kind: str) -> Operation:
    """Make DeleteModel and DeleteEndpointConfig, also of one in use, which AWS forbids in words only."""
    # "You must not delete an EndpointConfig in use by an endpoint that is live" (API reference). It
    # goes on serving, and its next update or scaling fails: "Could not find endpoint configuration"
    # (hashicorp/terraform-provider-aws#40048, #46663).
    return lambda caller, request: _remove(caller, kind, request[f"{kind}Name"])


def _list(kind: str) -> Operation:
    """Make ListModels and its like; of each record the answer has what its shape has."""

    def operation(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
        equal = {n: value for n, value in request.items() if n.endswith("Equals") and value}
        fields = {"StatusEquals": f"{kind}Status"}
        return {
            f"{kind}s": [
                record
                for name, record in list(_store(caller, kind).items())
                if (request.get("NameContains") or "") in name
                and all(
                    record.get(fields.get(key, key.removesuffix("Equals"))) == value
                    for key, value in equal.items()
                )
            ]
        }

    return operation


# ------------------------------------------------------------------------------------------ models


def create_model(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    containers = request.get("Containers") or [request["PrimaryContainer"]]
    check_containers(containers)
    for container in containers:
        _check_agreement(container)
    record = {"EnableNetworkIsolation": False, **request, "CreationTime": caller.now()}
    return _add(caller, "Model", record)


def _check_agreement(container: Mapping[str, Any]) -> None:
    """Refuse data of a gated model of JumpStart without its agreement, as AWS does."""
    # The message is that of hashicorp/terraform-provider-aws#34795, as far as it is quoted there;
    # ModelDataUrl, which has no place for an agreement, was not seen to be refused in these words.
    source = (container.get("ModelDataSource") or {}).get("S3DataSource") or {}
    uri = source.get("S3Uri") or container.get("ModelDataUrl") or ""
    accepted = (source.get("ModelAccessConfig") or {}).get("AcceptEula") is True
    if uri.startswith("s3://jumpstart-private-cache-prod-") and not accepted:
        raise Invalid(
            "The AcceptEula value must be explicitly defined as True in order to accept the "
            f'end-user license agreement (EULA) that this "{uri}" model requires. You are '
            "responsible for reviewing and complying with any applicable license terms and making "
            "sure they are acceptable for your use case before downloading or using a model."
        )


# ----------------------------------------------------------------------------------- configurations


def create_endpoint_config(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    variants = all_variants(request)
    check_shadows(request)
    check_component_variants(request, caller.runtime.options)
    names = [variant["VariantName"] for variant in variants]
    for variant in variants:
        check_serverless(variant, request, _state(caller).models)
        if variant.get("ModelName"):
            _find(caller, "Model", variant["ModelName"])
        if names.count(variant["VariantName"]) > 1:
            raise Invalid(f"Production variant names must be unique: {variant['VariantName']}")
    record = {**copy.deepcopy(request), "CreationTime": caller.now()}
    for variant in all_variants(record):
        if "ServerlessConfig" not in variant:
            variant.setdefault("InitialVariantWeight", 1.0)
    return _add(caller, "EndpointConfig", record)


# ---------------------------------------------------------------------------------------- endpoints


def create_endpoint(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateEndpoint; in service at once unless a model server has to be started."""
    name = request["EndpointName"]
    config = _find(caller, "EndpointConfig", request["EndpointConfigName"])
    created = caller.now()
    record = {
        "EndpointName": name,
        "EndpointConfigName": config["EndpointConfigName"],
        "EndpointStatus": "InService",
        "CreationTime": created,
        "LastModifiedTime": created,
        "LastDeploymentConfig": request.get("DeploymentConfig"),
        "Tags": request.get("Tags"),
        **_from_config(caller, config, {}, retained=frozenset()),
    }
    check_deployment_config(request.get("DeploymentConfig"), record)
    check_quota(caller, name, config, record)
    live = caller.runtime.is_live(caller.place, config)
    if live:
        creating(record, created)
    elif lacking := _lacking(caller, config):
        record.update(EndpointStatus="Failed", FailureReason=lacking)
        return _add(caller, "Endpoint", record)
    answer = _add(caller, "Endpoint", record)
    hold(caller.place, name, config, record)
    if live:
        caller.runtime.create(caller.place, name, config)
    return answer


def _lacking(caller: Caller, config: dict[str, Any]) -> str | None:
    """Say what the roles of a configuration lack, where no instance would find out by itself."""
    if caller.runtime.options.permissions == "ignored":
        return None
    for variant in all_variants(config):
        role = role_of(caller.place, variant, _state(caller), config)
        try:
            if role is not None:
                role.check()
        except RoleLacks as lacks:
            return str(lacks)
    return None


def _settled(caller: Caller, name: str) -> dict[str, Any]:
    """Give an endpoint that nothing is being done to; AWS refuses to change any other."""
    endpoint = _find(caller, "Endpoint", name)
    if endpoint["EndpointStatus"] in ("Creating", "Updating", "RollingBack"):
        raise Invalid(f'Cannot update in-progress endpoint "{endpoint["EndpointArn"]}".')
    return endpoint


def _changeable(caller: Caller, name: str) -> dict[str, Any]:
    """Give a settled endpoint that may be changed, not only deleted."""
    endpoint = _settled(caller, name)
    if endpoint["EndpointStatus"] == "Failed":
        # API reference, DescribeEndpoint: "DeleteEndpoint is the only operation that can be
        # performed on a failed endpoint." The words of the refusal are ours.
        raise Invalid(f'Cannot update failed endpoint "{endpoint["EndpointArn"]}": delete it.')
    return endpoint


def _unchanged(caller: Caller, endpoint: dict[str, Any], config: dict[str, Any]) -> bool:
    """Say whether an update brings nothing; see `RuntimeOptions.unchanged_configuration`."""
    if endpoint["EndpointConfigName"] != config["EndpointConfigName"]:
        return False
    wanted = caller.runtime.options.unchanged_configuration
    if wanted == "refused":
        raise Invalid(
            f'Cannot update endpoint "{endpoint["EndpointArn"]}" with its current endpoint '
            f'configuration "{config["EndpointConfigArn"]}".'
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


def update_endpoint(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateEndpoint: new configuration, with or without the present counts and weights."""
    endpoint = _changeable(caller, request["EndpointName"])
    config = _find(caller, "EndpointConfig", request["EndpointConfigName"])
    deployment = request.get("DeploymentConfig")
    former = _find(caller, "EndpointConfig", endpoint["EndpointConfigName"])
    if _unchanged(caller, endpoint, config):
        return {"EndpointArn": endpoint["EndpointArn"]}
    check_scalable_variants(caller, endpoint["EndpointName"], former, config)
    current = {v["VariantName"]: v for v in all_variants(endpoint)}
    retained: frozenset[str] = frozenset()
    if request.get("RetainAllVariantProperties"):
        excluded = {
            entry["VariantPropertyType"]
            for entry in request.get("ExcludeRetainedVariantProperties") or []
        }
        retained = frozenset({"DesiredInstanceCount", "DesiredWeight"} - excluded)
    described = _from_config(caller, config, current, retained)
    check_deployment_config(deployment, described)
    check_quota(caller, endpoint["EndpointName"], config, described)
    if request.get("RetainDeploymentConfig"):
        deployment = endpoint["LastDeploymentConfig"]

    def take_over() -> None:
        with _state(caller).lock:
            endpoint.update(described)
            endpoint["EndpointConfigName"] = config["EndpointConfigName"]
            endpoint["LastModifiedTime"] = caller.now()
            endpoint["LastDeploymentConfig"] = deployment

    live = caller.runtime.owns(caller.place, endpoint["EndpointName"])
    if not live and (lacking := _lacking(caller, config)):  # as a fleet that does not start
        endpoint["LastModifiedTime"] = caller.now()
        kept = caller.runtime.options.keeps_failure_reason
        endpoint["FailureReason"] = lacking if kept else None
        return {"EndpointArn": endpoint["EndpointArn"]}
    hold(caller.place, endpoint["EndpointName"], config, described)
    if live:
        endpoint["EndpointStatus"], endpoint["FailureReason"] = "Updating", None
        caller.runtime.update(
            caller.place, endpoint["EndpointName"], config, described, deployment, take_over
        )
    else:
        take_over()
        let_go(
            caller.place,
            endpoint["EndpointName"],
            caller.runtime.clock,
            caller.runtime.options,
            but_for=config["EndpointConfigName"],
        )
    return {"EndpointArn": endpoint["EndpointArn"]}


def update_weights_and_capacities(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    endpoint = _changeable(caller, request["EndpointName"])
    _find(caller, "EndpointConfig", endpoint["EndpointConfigName"])
    live = caller.runtime.owns(caller.place, endpoint["EndpointName"])
    variants = {v["VariantName"]: v for v in all_variants(endpoint)}
    for wanted in request["DesiredWeightsAndCapacities"]:
        if wanted["VariantName"] not in variants:
            raise Invalid(
                f'The variant name(s) "{wanted["VariantName"]}" is/are not present within '
                f'endpoint configuration "{endpoint["EndpointConfigName"]}".'
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
        caller.runtime.scale(caller.place, endpoint["EndpointName"])
    return {"EndpointArn": endpoint["EndpointArn"]}


def delete_endpoint(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteEndpoint; its scalable targets stay, deregistering them is the caller's part."""
    endpoint = _settled(caller, request["EndpointName"])
    if not caller.who.administrator:
        _check_deregistration(caller, f"endpoint/{request['EndpointName']}/")
    if any(
        component["EndpointName"] == endpoint["EndpointName"]
        for component in _state(caller).components.values()
    ):  # the words are ours
        raise Invalid(
            f'Cannot delete endpoint "{endpoint["EndpointArn"]}" while inference components exist.'
        )
    _remove(caller, "Endpoint", request["EndpointName"])
    caller.runtime.delete(caller.place, request["EndpointName"])
    let_go(caller.place, request["EndpointName"], caller.runtime.clock, caller.runtime.options)


def _check_deregistration(caller: Caller, begin: str) -> None:
    """Refuse in AWS's words, which were seen (tests/recorded, R21); its code was not."""
    service, operation = "application-autoscaling", "DeregisterScalableTarget"
    names = ("ServiceNamespace", "ResourceId", "ScalableDimension")
    targets = [dict(zip(names, key, strict=True)) for key in scaling(*caller.place).targets]
    for target in targets:
        if not target["ResourceId"].startswith(begin):
            continue
        wanted = rights(service, operation, target, caller.region, caller.account)
        try:
            check(caller.who, wanted, service, caller.region)
        except Denied:
            raise ServiceError(
                "An Application AutoScaling scalable target exists for a variant being deleted, "
                "and the IAM identity used to invoke DeleteEndpoint does not have "
                f"{service}:{operation} permission to deregister the scalable target.",
                "AccessDeniedException",
            ) from None


# ----------------------------------------------------------------------------- inference components


def create_inference_component(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateInferenceComponent: Creating, then InService, or Failed without room or health."""
    endpoint = _find(caller, "Endpoint", request["EndpointName"])
    config = _find(caller, "EndpointConfig", endpoint["EndpointConfigName"])
    variant = check_component(request, endpoint, config)
    _check_model(caller, request["Specification"])
    created = caller.now()
    record = {
        **request,
        "EndpointArn": endpoint["EndpointArn"],
        "VariantName": variant,
        "InferenceComponentStatus": "Creating",
        "RuntimeConfig": {
            "DesiredCopyCount": request["RuntimeConfig"]["CopyCount"],
            "CurrentCopyCount": 0,
        },
        "CreationTime": created,
        "LastModifiedTime": created,
    }
    answer = _add(caller, "InferenceComponent", record)
    caller.runtime.place_copies(caller.place, record, record["Specification"])
    return answer


def _check_model(caller: Caller, specification: dict[str, Any]) -> None:
    check_specification(specification)
    if specification.get("ModelName"):
        _find(caller, "Model", specification["ModelName"])


def describe_inference_component(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeInferenceComponent: of a container's image it tells what was deployed."""
    found = _find(caller, "InferenceComponent", request["InferenceComponentName"])
    specification = dict(found["Specification"])
    if container := specification.get("Container"):
        image = deployed_image(container["Image"], found["CreationTime"])
        specification["Container"] = {**container, "DeployedImage": image}
    return {**found, "Specification": specification}


def _settled_component(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """Give a component that nothing is being done to; the words of the refusal are ours."""
    # One that is Creating cannot be deleted either (aws/amazon-sagemaker-examples#3432).
    found = _find(caller, "InferenceComponent", request["InferenceComponentName"])
    if found["InferenceComponentStatus"] in ("Creating", "Updating", "Deleting"):
        raise Invalid(
            f'Cannot change in-progress inference component "{found["InferenceComponentArn"]}".'
        )
    return found


def update_inference_component(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateInferenceComponent, and UpdateInferenceComponentRuntimeConfig.

    A new specification gets all its copies before the former ones end, whatever the batches of a
    DeploymentConfig: those, their alarms and the room that they need are not emulated.
    """
    settled_component = _settled_component(caller, request)
    specification = request.get("Specification") or settled_component["Specification"]
    _check_model(caller, specification)
    wanted = request.get("RuntimeConfig") or request.get("DesiredRuntimeConfig")
    copies = (wanted or {}).get("CopyCount", settled_component["RuntimeConfig"]["DesiredCopyCount"])
    check_sizes((request.get("DeploymentConfig") or {}).get("RollingUpdatePolicy") or {}, copies)
    with _state(caller).lock:
        if wanted:
            settled_component["RuntimeConfig"]["DesiredCopyCount"] = wanted["CopyCount"]
        if "DeploymentConfig" in request:
            settled_component["LastDeploymentConfig"] = request["DeploymentConfig"]
        settled_component["InferenceComponentStatus"] = "Updating"
    caller.runtime.place_copies(caller.place, settled_component, specification)
    return {"InferenceComponentArn": settled_component["InferenceComponentArn"]}


def delete_inference_component(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteInferenceComponent: Deleting until its copies have answered what they have."""
    settled_component = _settled_component(caller, request)
    settled_component["InferenceComponentStatus"] = "Deleting"
    caller.runtime.remove_copies(
        caller.place,
        settled_component,
        lambda: _remove(caller, "InferenceComponent", settled_component["InferenceComponentName"]),
    )


# --------------------------------------------------------------------------------------------- tags


def _tags(work: Callable[[dict[str, str], dict[str, Any]], None]) -> Operation:
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
        "DescribeModel": _describe("Model"),
        "ListModels": _list("Model"),
        "DeleteModel": _delete("Model"),
        "CreateEndpointConfig": create_endpoint_config,
        "DescribeEndpointConfig": _describe("EndpointConfig"),
        "ListEndpointConfigs": _list("EndpointConfig"),
        "DeleteEndpointConfig": _delete("EndpointConfig"),
        "CreateEndpoint": create_endpoint,
        "DescribeEndpoint": _describe("Endpoint"),
        "ListEndpoints": _list("Endpoint"),
        "UpdateEndpoint": update_endpoint,
        "UpdateEndpointWeightsAndCapacities": update_weights_and_capacities,
        "DeleteEndpoint": delete_endpoint,
        "CreateInferenceComponent": create_inference_component,
        "DescribeInferenceComponent": describe_inference_component,
        "ListInferenceComponents": _list("InferenceComponent"),
        "UpdateInferenceComponent": update_inference_component,
        "UpdateInferenceComponentRuntimeConfig": update_inference_component,
        "DeleteInferenceComponent": delete_inference_component,
        "AddTags": _tags(_add_tags),
        "ListTags": _tags(lambda tags, request: None),
        "DeleteTags": _tags(_delete_tags),
    },
)
