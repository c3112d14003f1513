"""The endpoint configuration: variants, a shadow, data capture, encryption, metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from aws_cdk import Resource
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from ..facts.images import check_ami_runs_on, check_built_image_runs_on, check_image_runs_on
from ..facts.limits import ENDPOINT_CONFIG_NAME, VARIANT_COUNT
from ..facts.rules import (
    ALL_WEIGHTS_ZERO,
    KMS_WITH_LOCAL_STORAGE,
    ONE_COMPONENT_HOST,
    SHADOW_OF_ONE_VARIANT,
    VARIANT_NAMED_TWICE,
)
from ..options.argument_kinds import checked_arguments
from ..options.endpoint import MetricsPublishing
from ..options.written_to_s3 import DataCapture, WrittenToS3
from ..plan.hub_serving import also_on
from ..synthesis.annotations import warn, warn_of_unknown_type
from ..synthesis.arns import key_by_arn
from ..synthesis.construct_tree import path_below, path_of
from ..synthesis.homes import check_home
from ..synthesis.safeguards import safeguards_of
from ..synthesis.template_values import cfn_tags, check, in_seconds, is_token
from .instance_type import InstanceType
from .variant import ProductionVariant, VariantAttributes

_EXCLUSIONS = (
    "AWS excludes it from shadow tests (shadow-tests-exclusions), and does not say whether an "
    "endpoint configuration with a shadow variant is refused"
)
ROLLING_WITH_SHADOW = (
    "AWS excludes endpoints with several variants from rolling updates "
    "(deployment-guardrails-exclusions), and does not say whether a shadow variant counts. Take "
    "canary, linear or all_at_once, or try it in a test account."
)
_Written = TypeVar("_Written", bound=WrittenToS3)


class IEndpointConfiguration(Resource):
    """An :class:`EndpointConfiguration` of the app, or one imported.

    Attributes
    ----------
    endpoint_config_name : str
    variant_attributes : tuple of VariantAttributes
        What is known of its production variants.
    shadow_attributes : VariantAttributes or None
        What is known of its shadow variant.
    enhanced_metrics : bool
        Whether endpoints with it publish metrics by instance and container.
    """

    endpoint_config_name: str
    variant_attributes: tuple[VariantAttributes, ...]
    shadow_attributes: VariantAttributes | None = None
    enhanced_metrics: bool = False


class _ImportedConfiguration(IEndpointConfiguration):
    """What :meth:`EndpointConfiguration.from_endpoint_config_name` returns."""


@checked_arguments
class EndpointConfiguration(IEndpointConfiguration):
    """What an endpoint runs. Any change but of its tags replaces it, so it carries no fixed name.

    Attributes
    ----------
    endpoint_config_name : str
    variants : tuple of ProductionVariant
        Those that answer callers.
    shadow : ProductionVariant or None
    metrics : MetricsPublishing or None
    cfn_endpoint_config : aws_sagemaker.CfnEndpointConfig
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        variants: Sequence[ProductionVariant],
        shadow: ProductionVariant | None = None,
        encryption_key: kms.IKey | None = None,
        kms_key_with_local_storage: bool = False,
        data_capture: DataCapture | None = None,
        metrics: MetricsPublishing | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """What an endpoint runs. Any change but of its tags replaces it, so it carries no fixed name.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            variants: One to ten, with names that differ.
            shadow: Gets copies of the requests of the one production variant there is then, on instances of its own; its answers are dropped and callers see nothing of it. Its ``weight`` over the production variant's is taken for the share of requests that are copied: with equal weights (AWS's one example) all of them. By default there is no shadow. Not seen on AWS yet.
            encryption_key: Encrypts the instances' storage volumes; by default that of :class:`Safeguards` where no instance type has local storage, else SageMaker's own key. The models' roles may grant its use to the volumes; its own policy must leave that to IAM policies of the account, or name the roles.
            kms_key_with_local_storage: Allow a key on an instance type with local storage, which AWS's pages disagree about.
            data_capture: By default nothing is captured.
            metrics: By default SageMaker's own settings.
            tags: By default none. A change of them replaces nothing.

        Raises:
            ConfigurationError: LLE401, LLE406, LLE407, LLE415, LLE417, LLE421, LLE424,
                LLE426, LLE431, LLE448, LLE509 to LLE511 for tags, and LLE33x when an image
                or the inference AMI cannot run on a variant's instance type.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        VARIANT_COUNT.check(len(variants), path)
        _check_variants(variants, path)
        _check_hosts(self, variants, shadow, path)
        if shadow is not None:
            _check_shadow(self, variants, shadow, path)
            variants = [*variants, shadow]
            check_names([variant.name for variant in variants], path)
        if encryption_key is not None and not kms_key_with_local_storage:
            _check_key(variants, path)
        for variant in variants:
            check_images(self, variant)
        guarding = safeguards_of(self).encryption_key
        if kms_key_with_local_storage or not any(_with_local_storage(variants)):
            encryption_key = encryption_key or guarding
        if data_capture is not None:
            data_capture = _with_key(self, "CaptureKey", data_capture, guarding)
        variants = [
            replace(
                variant, core_dump=_with_key(self, f"CoreDumpKey{at}", variant.core_dump, guarding)
            )
            if variant.core_dump
            else variant
            for at, variant in enumerate(variants)
        ]
        reservations = [variant.capacity_reservation_arn for variant in variants]
        check_home(self, encryption_key.key_arn if encryption_key else None, *reservations)
        granted = _granted(variants, encryption_key, data_capture)
        optional: dict[str, Any] = {}
        if encryption_key is not None:
            optional["kms_key_id"] = encryption_key.key_arn
        if data_capture is not None:
            optional["data_capture_config"] = _capture_property(data_capture)
        if shadow is not None:
            *variants, shadow = variants
            optional["shadow_production_variants"] = [shadow.to_cfn()]
        self.cfn_endpoint_config = sagemaker.CfnEndpointConfig(
            self,
            "Resource",
            production_variants=[variant.to_cfn() for variant in variants],
            tags=cfn_tags(tags, path),
            **optional,
        )
        for kind, group in (
            ("ProductionVariants", variants),
            ("ShadowProductionVariants", [shadow] if shadow else []),
        ):
            for index, variant in enumerate(group):
                for name, value in variant.newer_properties.items():
                    self.cfn_endpoint_config.add_property_override(f"{kind}.{index}.{name}", value)
        for name, value in variants[0].model.configuration_properties.items():
            self.cfn_endpoint_config.add_property_override(name, value)
        self.cfn_endpoint_config.node.add_dependency(*variants[0].model.needed, *granted)
        if metrics is not None:
            self.cfn_endpoint_config.add_property_override(
                "MetricsConfig",
                {
                    "EnableEnhancedMetrics": metrics.enhanced,
                    "EnableDetailedObservability": metrics.detailed_observability,
                    "MetricPublishFrequencyInSeconds": in_seconds(metrics.publish_frequency),
                },
            )
        self.endpoint_config_name: str = self.cfn_endpoint_config.attr_endpoint_config_name
        self.variants = tuple(variants)
        self.variant_attributes = tuple(variant.attributes for variant in variants)
        self.shadow = shadow
        self.shadow_attributes = shadow.attributes if shadow else None
        self.metrics = metrics
        self.enhanced_metrics = metrics is not None and metrics.enhanced

    @classmethod
    def from_endpoint_config_name(
        cls,
        scope: Construct,
        id: str,
        endpoint_config_name: str,
        *,
        variants: Sequence[VariantAttributes],
        enhanced_metrics: bool = False,
    ) -> IEndpointConfiguration:
        """A configuration that is made elsewhere, such as by a pipeline, for an endpoint here.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint_config_name: The configuration's name.
            variants: At least one: deployments, room and alarms follow from them.
            enhanced_metrics: Whether it publishes metrics by instance and container; by default not.

        Raises:
            ConfigurationError: LLE375 for an impossible name, LLE401 without a variant,
                LLE421 for two of one name.

        Examples:
            >>> from aws_cdk import App, Stack
            >>> from low_latency_endpoint import *
            >>> stack = Stack(App(), "Serving")
            >>> endpoint = Endpoint(
            ...     stack, "Endpoint", endpoint_name="fraud",
            ...     configuration=EndpointConfiguration.from_endpoint_config_name(
            ...         stack, "Approved", "fraud-2026-11-20",
            ...         variants=[VariantAttributes(name="AllTraffic", instance_count=2)]))
        """
        imported = _ImportedConfiguration(scope, id)
        path = path_below(imported, scope, id)
        VARIANT_COUNT.check(len(variants), path)
        check_names([variant.name for variant in variants], path)
        imported.endpoint_config_name = check(ENDPOINT_CONFIG_NAME, endpoint_config_name, path)
        imported.variant_attributes = tuple(variants)
        imported.enhanced_metrics = enhanced_metrics
        return imported

    def variant(self, name: str) -> ProductionVariant | None:
        """The variant of that name, or None; the shadow too."""
        return next((variant for variant in self.all_variants if variant.name == name), None)

    @property
    def all_variants(self) -> tuple[ProductionVariant, ...]:
        """The production variants and the shadow: all that have instances."""
        return (*self.variants, *([self.shadow] if self.shadow else []))


def _granted(
    variants: Sequence[ProductionVariant],
    encryption_key: kms.IKey | None,
    data_capture: DataCapture | None,
) -> list[IDependable]:
    """Let each model's role do what the configuration asks of it; what has to be there before."""
    granted: list[IDependable] = []
    for model in {
        path_of(model): model for variant in variants for model in variant.models
    }.values():
        if encryption_key is not None:
            granted += model.grant_volume_key(encryption_key)
        if data_capture is not None:
            granted += model.grant_write(data_capture.s3, data_capture.key)
    for variant in variants:
        if variant.core_dump is not None:
            for model in variant.models:
                granted += model.grant_write(variant.core_dump.s3, variant.core_dump.key)
    return granted


def _check_variants(variants: Sequence[ProductionVariant], where: str) -> None:
    check_names([variant.name for variant in variants], where)
    if all(variant.weight == 0 for variant in variants):
        raise ALL_WEIGHTS_ZERO.error(
            got=", ".join(f"{variant.name}: 0" for variant in variants),
            allowed="at least one weight above 0",
            where=where,
        )


def _check_hosts(
    scope: Construct,
    variants: Sequence[ProductionVariant],
    shadow: ProductionVariant | None,
    where: str,
) -> None:
    """Refuse a host of inference components beside other models: they share one configuration."""
    every = [*variants, *([shadow] if shadow else [])]
    models = [model for variant in every for model in variant.models]
    hosts = [model for model in models if model.shape == "inference-component"]
    if hosts and (
        shadow is not None
        or any(model is not hosts[0] for model in models)
        or any(variant.instance_pools for variant in variants)
    ):
        raise ONE_COMPONENT_HOST.error(
            got=f"variants {', '.join(variant.name for variant in every)}",
            allowed="one ComponentHost for all variants, each with an instance_type",
            where=where,
        )
    if hosts and len(variants) > 1:
        warn(
            scope,
            "severalVariantsOfHost",
            "Several variants use one ComponentHost. A user of AWS reports that SageMaker refuses "
            "a second variant with inference components (cloud-custodian/cloud-custodian#11078); "
            "AWS's pages do not say. Use one variant.",
        )


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse two variants of one name: LLE421."""
    for name in names:
        if names.count(name) > 1:
            raise VARIANT_NAMED_TWICE.error(got=name, allowed="different names", where=where)


def _check_key(variants: Sequence[ProductionVariant], where: str) -> None:
    for variant, instance_type, gigabytes in _with_local_storage(variants):
        raise KMS_WITH_LOCAL_STORAGE.error(
            got=f"{instance_type} with {gigabytes} GB of local storage",
            allowed="no key, or a type without local storage",
            where=f"{where}, variant {variant.name}",
        )


def _with_local_storage(
    variants: Sequence[ProductionVariant],
) -> Iterator[tuple[ProductionVariant, InstanceType, float]]:
    for variant in variants:
        for instance_type in variant.instance_types:
            facts = instance_type.facts
            if facts is not None and facts.local_storage_gb:
                yield variant, instance_type, facts.local_storage_gb


def check_images(scope: Construct, variant: ProductionVariant) -> None:
    """Refuse images that cannot run on the variant's instance types, and warn of doubts."""
    where = f"{path_of(scope)}, variant {variant.name}"
    ami = variant.inference_ami_version
    for instance_type, model in variant.placements:
        if is_token(instance_type.name):
            continue
        if instance_type.facts is None:
            warn_of_unknown_type(scope, instance_type.name)
            continue
        if ami and not is_token(ami):
            check_ami_runs_on(ami, instance_type.name, where)
        if variant.volume_size_gib is not None and instance_type.facts.local_storage_gb:
            warn(
                scope,
                f"volumeWithLocalStorage:{variant.name}",
                f"{instance_type} has {instance_type.facts.local_storage_gb} GB of local storage; "
                "AWS advises a volume size for types without it only, and does not say what it "
                "does here.",
            )
        for serving in model.hub_servings:
            also_on(serving, [instance_type.name], volume_gib=variant.volume_size_gib, where=where)
        for image in model.images:
            built_for = image.architecture
            doubt = (
                ""
                if built_for is None
                else check_built_image_runs_on(built_for, instance_type.name, where)
            )
            if doubt:
                warn(scope, f"imagePlatform:{variant.name}", doubt)
            reference = image.reference
            if reference and not is_token(reference):
                for message in check_image_runs_on(reference, instance_type.name, ami, where):
                    warn(scope, f"image:{variant.name}", message)


def _check_shadow(
    configuration: Construct,
    variants: Sequence[ProductionVariant],
    shadow: ProductionVariant,
    where: str,
) -> None:
    """Refuse a shadow beside several production variants; warn of what may not work."""
    if len(variants) != 1:
        raise SHADOW_OF_ONE_VARIANT.error(
            got=f"{shadow.name} beside {', '.join(variant.name for variant in variants)}",
            allowed="one production variant and one shadow variant",
            where=where,
        )
    production = variants[0]
    if not (is_token(shadow.weight) or is_token(production.weight)) and not (
        0 < shadow.weight <= production.weight
    ):
        warn(
            configuration,
            f"shadowWeight:{shadow.name}",
            f"The shadow variant's weight is {shadow.weight:g}, the production variant's "
            f"{production.weight:g}. Over the production variant's weight it is taken for the "
            "share of requests that are copied, so it should be above 0 and at most "
            f"{production.weight:g}; AWS documents an example with equal weights only.",
        )
    for feature in sorted(set(_excluded(production, shadow))):
        warn(configuration, f"shadowExclusion:{feature}", f"{feature}: {_EXCLUSIONS}.")


def _excluded(*variants: ProductionVariant) -> Iterator[str]:
    for variant in variants:
        for model in variant.models:
            if model.shape == "multi-model":
                yield "multi-model endpoint"
            elif model.shape == "pipeline":
                yield "several containers"
        if any(
            instance_type.name.startswith("ml.inf1.") for instance_type in variant.instance_types
        ):
            yield "Inf1"


def _with_key(scope: Construct, id: str, written: _Written, default: kms.IKey | None) -> _Written:
    """The same, with the key that its ARN names, or a default."""
    key = written.key or key_by_arn(scope, id, written.kms_key_arn) or default
    return written if key is None else replace(written, key=key, kms_key_arn=None)


def _capture_property(
    capture: DataCapture,
) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    config = sagemaker.CfnEndpointConfig
    types = {
        f"{kind}_content_types": list(stated)
        for kind, stated in (
            ("csv", capture.csv_content_types),
            ("json", capture.json_content_types),
        )
        if stated
    }
    return config.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percentage,
        destination_s3_uri=capture.s3,
        capture_options=[
            config.CaptureOptionProperty(capture_mode=mode.capitalize()) for mode in capture.capture
        ],
        kms_key_id=capture.key.key_arn if capture.key else None,
        capture_content_type_header=config.CaptureContentTypeHeaderProperty(**types)
        if types
        else None,
    )
