"""One endpoint's settings as the arguments of ``LowLatencyEndpoint``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from low_latency_endpoint import (
    AlarmOptions,
    Container,
    ContainerImage,
    DataCapture,
    DeploymentPolicy,
    InferenceAmi,
    InstanceType,
    KeepWarmOptions,
    MetricsPublishing,
    ModelData,
    RoutingStrategy,
    SlowRequests,
    WarmUpMiss,
    WarmUpOptions,
    WarmUpPayload,
)
from low_latency_endpoint.planning.limits import INFERENCE_AMI
from low_latency_endpoint.planning.warm_up_rules import RESERVED_EXECUTIONS
from low_latency_endpoint.settings import (
    AlarmSettings,
    ContainerSettings,
    DeploymentSettings,
    EndpointSettings,
    PrefixAwareRouting,
    WarmUpPayloadSettings,
    WarmUpSettings,
)
from low_latency_endpoint.variant import CoreDump

_CAPTURED: dict[str, Literal["Input", "Output"]] = {"input": "Input", "output": "Output"}


def endpoint_arguments(
    scope: Construct,
    key: str,
    settings: EndpointSettings,
    alarm_actions: Sequence[cloudwatch.IAlarmAction],
) -> dict[str, Any]:
    """Only what the settings state; what they leave out, the pattern decides."""
    given: dict[str, Any] = {
        "containers": [
            _container(scope, f"{key}-{index}", container)
            for index, container in enumerate(settings.containers)
        ],
        "instance_type": InstanceType(settings.instance_type),
        "latency": settings.latency.target,
        "throughput": settings.throughput.measured if settings.throughput else None,
        "endpoint_name": settings.endpoint_name,
        "variant_name": settings.variant_name,
        "routing": _routing(settings),
        "min_instances": settings.instances.min,
        "initial_instances": settings.instances.initial,
        "max_instances": settings.instances.max,
        "scaling": settings.scaling.enabled,
        "keep_instance_counts": settings.scaling.keep_counts,
        "confirm_updates": settings.confirm_updates,
        "max_concurrency_per_instance": settings.scaling.concurrency_target,
        "scale_in_cooldown": _duration(settings.scaling.scale_in_cooldown),
        "scale_out_cooldown": _duration(settings.scaling.scale_out_cooldown),
        "inference_mode": settings.inference_mode,
        "network_isolation": settings.network_isolation,
        "startup_health_check_timeout": _duration(settings.startup_health_check_timeout),
        "model_data_download_timeout": _duration(settings.model_data_download_timeout),
        "volume_size_gib": settings.volume_size_gib,
        "inference_ami": _inference_ami(settings.inference_ami),
        "enable_ssm_access": settings.ssm_access,
        "capacity_reservation_arn": settings.capacity_reservation_arn,
        "dashboard": settings.dashboard,
        "kms_key_with_local_storage": settings.kms_key_with_local_storage,
    }
    if settings.deployment:
        given["deployment"] = _deployment(settings.deployment)
        given["roll_back_on_alarms"] = settings.deployment.rollback_on_alarms
    given["alarms"] = _alarms(settings.alarms, alarm_actions)
    if settings.warm_up:
        given["warm_up"] = _warm_up(settings.warm_up)
    if settings.role_arn:
        given["role"] = iam.Role.from_role_arn(scope, f"{key}-Role", settings.role_arn)
    if settings.kms_key_arn:
        given["encryption_key"] = _key(scope, f"{key}-Key", settings.kms_key_arn)
    if settings.core_dump:
        given["core_dump"] = CoreDump(
            settings.core_dump.s3,
            _key(scope, f"{key}-CoreDumpKey", settings.core_dump.kms_key_arn),
        )
    if settings.data_capture:
        given["data_capture"] = DataCapture(
            destination=settings.data_capture.s3,
            sampling_percentage=settings.data_capture.sampling_percentage,
            capture=[_CAPTURED[each] for each in settings.data_capture.capture],
            key=_key(scope, f"{key}-CaptureKey", settings.data_capture.kms_key_arn),
            csv_content_types=settings.data_capture.csv_content_types,
            json_content_types=settings.data_capture.json_content_types,
        )
    if settings.metrics:
        given["metrics"] = MetricsPublishing(
            enhanced=settings.metrics.enhanced,
            detailed_observability=settings.metrics.detailed_observability,
            frequency=_duration(settings.metrics.publish_frequency),
        )
    return {name: value for name, value in given.items() if value is not None}


def _container(scope: Construct, id: str, settings: ContainerSettings) -> Container:
    return Container(
        image=_image(scope, id, settings),
        data=_data(settings),
        environment=settings.environment,
        hostname=settings.hostname,
        multi_model=settings.multi_model,
    )


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
            str(image.asset), file=image.file, build_args=dict(image.build_args) or None,
            platform=ecr_assets.Platform.custom(image.platform) if image.platform else None,
        )
    return ContainerImage.from_uri(str(image.uri))


def _data(settings: ContainerSettings) -> ModelData | None:
    data = settings.data
    if data is None:
        return None
    if data.asset:
        return ModelData.from_asset(str(data.asset))
    return ModelData.from_uri(str(data.s3 or data.s3_prefix))


def _routing(settings: EndpointSettings) -> RoutingStrategy | None:
    routing = settings.routing
    if isinstance(routing, PrefixAwareRouting):
        return RoutingStrategy.prefix_aware(
            prefix_length=routing.prefix_aware.prefix_length,
            concurrency_threshold=routing.prefix_aware.concurrency_threshold,
        )
    return RoutingStrategy(routing.upper()) if routing else None


def _deployment(settings: DeploymentSettings) -> DeploymentPolicy:
    waits = {
        "termination_wait": _duration(settings.termination_wait),
        "maximum_execution": _duration(settings.maximum_execution),
    }
    if settings.canary:
        return DeploymentPolicy.canary(
            size_percent=settings.canary.size_percent, wait=_duration(settings.canary.wait), **waits
        )
    if settings.linear:
        return DeploymentPolicy.linear(
            step_percent=settings.linear.step_percent, wait=_duration(settings.linear.wait), **waits
        )
    if settings.rolling:
        return DeploymentPolicy.rolling(
            batch_percent=settings.rolling.batch_percent,
            wait=_duration(settings.rolling.wait),
            maximum_execution=waits["maximum_execution"],
        )
    wait = settings.all_at_once.wait if settings.all_at_once else None
    return DeploymentPolicy.all_at_once(wait=_duration(wait), **waits)


def _inference_ami(version: str | None) -> InferenceAmi | None:
    if version is None:
        return None
    return InferenceAmi(version, is_custom=not INFERENCE_AMI.holds(version))


def _alarms(
    settings: AlarmSettings | None, actions: Sequence[cloudwatch.IAlarmAction]
) -> AlarmOptions:
    if settings is None:
        return AlarmOptions(actions=actions)
    stated: dict[str, Any] = settings.model_dump(exclude_none=True)
    for name in ("model_latency", "overhead_latency"):
        if name in stated:
            stated[name] = _thresholds(stated[name])
    if settings.model_loading_wait:
        stated["model_loading_wait"] = _milliseconds(settings.model_loading_wait)
    if settings.slow_requests:
        stated["slow_requests"] = SlowRequests(
            threshold=_milliseconds(settings.slow_requests.threshold),
            objective=settings.slow_requests.objective,
        )
    return AlarmOptions(actions=actions, **stated)


def _warm_up(settings: WarmUpSettings) -> WarmUpOptions:
    return WarmUpOptions(
        payload=_payload(settings.payload),
        requests=settings.requests,
        concurrency_per_zone=settings.concurrency_per_zone,
        last=settings.last,
        timeout=_milliseconds(settings.timeout),
        on_miss=WarmUpMiss[settings.on_miss.upper()],
        during_deployments=settings.during_deployments,
        metrics=settings.metrics,
        reserved_concurrency=RESERVED_EXECUTIONS if settings.reserve_concurrency else None,
        keep_warm=KeepWarmOptions(
            every=_milliseconds(settings.keep_warm.every),
            requests_per_zone=settings.keep_warm.requests_per_zone,
            below_tps=settings.keep_warm.below_tps,
            window=_milliseconds(settings.keep_warm.window),
        ) if settings.keep_warm else None,
    )


def _payload(settings: WarmUpPayloadSettings) -> WarmUpPayload:
    further: dict[str, Any] = {"target_model": settings.target_model}
    if settings.content_type:
        further["content_type"] = settings.content_type
    if settings.file:
        return WarmUpPayload.from_file(str(settings.file), **further)
    if settings.text is not None:
        return WarmUpPayload.from_text(settings.text, **further)
    return WarmUpPayload.from_json(settings.data, **further)


def _thresholds(stated: dict[str, timedelta]) -> dict[str, Duration]:
    return {statistic: _milliseconds(threshold) for statistic, threshold in stated.items()}


def _milliseconds(value: timedelta) -> Duration:
    return Duration.millis(value / timedelta(milliseconds=1))


def _duration(value: timedelta | None) -> Duration | None:
    return None if value is None else _milliseconds(value)


def _key(scope: Construct, id: str, arn: str | None) -> kms.IKey | None:
    return kms.Key.from_key_arn(scope, id, arn) if arn else None
