"""One endpoint's settings and plan as the arguments of ``LowLatencyEndpoint``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from ..errors.findings import Place
from ..hosting.container import Container, HuggingFaceModel
from ..hosting.images import ContainerImage
from ..hosting.instance_type import InstanceType
from ..hosting.model_data import ModelData
from ..hosting.variant import InstancePool
from ..hugging_face.hub_options import HuggingFaceSettings
from ..options.container import ContainerSettings
from ..options.endpoint import ConfigurationOptions, EndpointOptions, ModelOptions
from ..options.load import LoadOptions
from ..options.option import taken
from ..options.variant import VariantOptions
from ..settings.endpoint import EndpointSettings, Further, FurtherSettings, container_id
from ..settings.variant_plans import PlannedVariant, has_own_model
from ..synthesis.arns import key_by_arn, role_by_arn
from .variants import FurtherVariant


def endpoint_arguments(
    scope: Construct,
    key: str,
    settings: EndpointSettings,
    variants: Sequence[PlannedVariant],
    alarm_actions: Sequence[cloudwatch.IAlarmAction],
) -> dict[str, Any]:
    """The settings of an endpoint, with a plan that is made already."""
    plan = variants[0].plan
    model = taken(ModelOptions, settings, role=role_by_arn(scope, f"{key}-Role", settings.role_arn))
    further = [
        (variant.shadow, _further(scope, key, settings, variant.further, model))
        for variant in variants
        if variant.further
    ]
    return {
        "plan": plan,
        "instance_type": _placed(settings),
        **{option.name: getattr(settings, option.name) for option in fields(LoadOptions)},
        "containers": _containers(scope, key, (), settings),
        "model": model,
        "variants": [made for shadow, made in further if not shadow],
        "shadow": next((made for shadow, made in further if shadow), None),
        "configuration": taken(
            ConfigurationOptions,
            settings,
            encryption_key=key_by_arn(scope, f"{key}-Key", settings.kms_key_arn),
        ),
        "variant": taken(
            VariantOptions, settings, name=settings.variant_name, weight=settings.variant_weight
        ),
        "endpoint": taken(
            EndpointOptions, settings, tags=None
        ),  # the stack's, with those of the whole stack
        "alarms": replace(settings.alarms, actions=alarm_actions),
        "dashboard": settings.dashboard,
        "warm_up": settings.warm_up,
        "canary": settings.canary,
    }


def _further(
    scope: Construct, key: str, endpoint: EndpointSettings, stated: Further, model: ModelOptions
) -> FurtherVariant:
    """A variant beside the first."""
    settings = stated.settings
    return taken(
        FurtherVariant,
        settings,
        name=stated.name,
        weight=stated.weight,
        containers=_containers(scope, key, stated.place, settings),
        model=replace(model, inference_mode=settings.inference_mode)  # type: ignore[arg-type]
        if has_own_model(settings)
        else None,
        core_dump=None,
    )


def _containers(
    scope: Construct, key: str, place: Place, settings: EndpointSettings | FurtherSettings
) -> list[Container]:
    if settings.hugging_face is not None:
        name = container_id(key, (*place, "hugging_face", 0))
        return [_from_hub(scope, name, settings.hugging_face)]
    containers = settings.containers
    ids = [container_id(key, (*place, "containers", index)) for index, _ in enumerate(containers)]
    return [
        taken(Container, each, image=_image(scope, name, each), data=_data(scope, name, each))
        for name, each in zip(ids, containers, strict=True)
    ]


def _from_hub(scope: Construct, id: str, settings: HuggingFaceSettings) -> Container:
    bucket, token = settings.bucket, settings.token_secret_arn
    model = taken(
        HuggingFaceModel,
        settings,
        lock=str(settings.lock),
        bucket=s3.Bucket.from_bucket_name(scope, f"{id}-Bucket", bucket) if bucket else None,
        token=secretsmanager.Secret.from_secret_complete_arn(scope, f"{id}-Token", token)
        if token
        else None,
    )
    return Container(hugging_face=model, environment=settings.environment)


def _placed(settings: EndpointSettings) -> InstanceType | list[InstancePool]:
    if not settings.instance_pools:
        return InstanceType(settings.instance_type)
    return [
        InstancePool(
            InstanceType(pool.instance_type), pool.priority, tps_per_instance=pool.tps_per_instance
        )
        for pool in settings.instance_pools
    ]


def _image(scope: Construct, id: str, settings: ContainerSettings) -> ContainerImage:
    image = settings.image
    if image.dlc:
        return ContainerImage.from_dlc(
            image.dlc.repository, image.dlc.tag, account=image.dlc.account
        )
    if image.ecr:
        repository = ecr.Repository.from_repository_name(
            scope, f"{id}-Repository", image.ecr.repository
        )
        return ContainerImage.from_ecr_repository(repository, image.ecr.tag)
    if image.asset:
        return ContainerImage.from_asset(
            str(image.asset),
            file=image.file,
            build_args=dict(image.build_args) or None,
            platform=ecr_assets.Platform.custom(image.platform) if image.platform else None,
        )
    if image.private_registry:
        login = image.credentials_function_arn
        return ContainerImage.from_private_registry(
            str(image.uri),
            credentials=lambda_.Function.from_function_arn(scope, f"{id}-Login", login)
            if login
            else None,
        )
    return ContainerImage.from_uri(str(image.uri))


def _data(scope: Construct, id: str, settings: ContainerSettings) -> ModelData | None:
    data = settings.data
    if data is None:
        return None
    key = key_by_arn(scope, f"{id}-DataKey", data.kms_key_arn)
    if data.asset:
        return ModelData.from_asset(str(data.asset), key=key)
    return ModelData.from_uri(str(data.s3 or data.s3_prefix), accept_eula=data.accept_eula, key=key)
