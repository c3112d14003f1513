"""What every endpoint offers, and endpoints that are made elsewhere: in another stack or app, by a
pipeline or a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from aws_cdk import ArnFormat, Resource
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from ..facts.limits import ENDPOINT_ARN, ENDPOINT_NAME, MAX_INSTANCES
from ..facts.rules import (
    COMPONENTS_ARE_BY_THEMSELVES,
    NAME_OR_ARN,
    UNKNOWN_VARIANT,
    VARIANT_SCALED_TWICE,
    VARIANTS_NOT_KNOWN,
)
from ..network.vpc_endpoints import CALL_WITH_BEARER_TOKEN, invoke_actions
from ..options.argument_kinds import checked_arguments
from ..synthesis.arns import endpoint_arn as arn_of
from ..synthesis.construct_tree import kept, path_below, path_of, stack_of
from ..synthesis.launched_names import name_anywhere, name_in
from ..synthesis.template_values import check, is_token
from .endpoint_configuration import check_names
from .endpoint_metrics import EndpointVariant, MetricSource
from .scaling import InvocationScaling
from .variant import VariantAttributes

if TYPE_CHECKING:
    from aws_cdk import Duration


@checked_arguments
class IEndpoint(MetricSource, Resource):
    """An endpoint: an :class:`Endpoint` of the app, or one imported with ``Endpoint.from_*``.

    Attributes
    ----------
    endpoint_name, endpoint_arn : str
        Of an endpoint of the app these are tokens: whoever uses them is made after it. For what must
        exist before it, :meth:`name_in`.
    endpoint_config_name : str or None
        What it serves; None where that is not known.
    variants : tuple of VariantAttributes
        What is known of its variants; empty where none was stated.
    shadow : VariantAttributes or None
        The variant that gets copies of requests.
    enhanced_metrics : bool
        Whether it publishes metrics by instance and container.
    confirmation : constructs.Construct or None
        What confirms updates: make things depend on it that need this configuration to serve.
    """

    endpoint_name: str
    endpoint_arn: str
    endpoint_config_name: str | None = None
    variants: tuple[VariantAttributes, ...] = ()
    shadow: VariantAttributes | None = None
    enhanced_metrics: bool = False
    confirmation: Construct | None = None
    _name: str
    _scaled: dict[str, InvocationScaling]

    def scale(
        self, variant_name: str, *, min_instances: int, max_instances: int
    ) -> InvocationScaling:
        """Let a variant's number of instances follow its load; add a policy to what returns.

        From now on an update of an endpoint of the app keeps the instance counts that scaling has
        reached (``RetainAllVariantProperties``), while weights follow the configuration. Who
        updates an imported one has to say so there.

        Args:
            variant_name: Also the shadow's: AWS recommends to scale it too.
            min_instances: The fewest instances, at least 1.
            max_instances: The most instances.

        Raises:
            ConfigurationError: LLE106, LLE447, LLE512, LLE601, LLE621 to LLE625, LLE157
                when the subnets have no room.
        """
        path = path_of(self)
        variant = self.variant(variant_name).attributes
        if variant_name in self._scaled:
            raise VARIANT_SCALED_TWICE.error(
                got=f"a second scale({variant_name!r})", allowed="one", where=path
            )
        _refuse_components([variant], path)
        self._before_scaling(variant_name)
        check(MAX_INSTANCES, max_instances, path)
        self._hold_room(variant, max_instances)
        scaling = InvocationScaling(
            self,
            f"Scaling-{variant_name}",
            endpoint_name=self.endpoint_name,
            name_in_stack=self.name_in(self),
            variant=variant,
            min_instances=min_instances,
            max_instances=max_instances,
            hold_room=lambda instances: self._hold_room(variant, instances),
        )
        self._scaled[variant_name] = scaling
        self._after_scaling()
        return scaling

    def scaling_of(self, variant_name: str) -> InvocationScaling | None:
        """What :meth:`scale` returned for the variant; None if it does not scale."""
        return self._scaled.get(variant_name)

    def grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Let a principal do these actions on the endpoint, such as ``sagemaker:UpdateEndpoint``.

        Args:
            grantee: Who gets the right.
            *actions: IAM actions, such as ``sagemaker:InvokeEndpoint``.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee, resource_arns=[self.endpoint_arn], actions=list(actions)
        )

    def grant_invoke(
        self,
        grantee: iam.IGrantable,
        *,
        bidirectional_streaming: bool = False,
        openai: bool = False,
    ) -> iam.Grant:
        """Let a principal invoke the endpoint, whole responses and streamed ones.

        Args:
            grantee: Who gets the right.
            bidirectional_streaming: Bidirectional streams too; by default not. AWS names no action for them, so this grants ``sagemaker:InvokeEndpoint*`` on the endpoint. Not seen on AWS yet.
            openai: The OpenAI-compatible path too; by default not. It needs ``sagemaker:CallWithBearerToken``, which takes no single resource.
        """
        grant = self.grant(
            grantee, *invoke_actions(bidirectional_streaming=bidirectional_streaming)
        )
        if not openai:
            return grant
        return grant.combine(
            iam.Grant.add_to_principal(
                grantee=grantee, actions=[CALL_WITH_BEARER_TOKEN], resource_arns=["*"]
            )
        )

    def name_in(self, scope: Construct) -> str:
        """The name as a stack writes it, for what must exist before the endpoint.

        In the endpoint's own stack it follows the name under which that is launched; in others it
        is plain text, and binds no stack to the other.

        Args:
            scope: The stack, or a construct in it.
        """
        return name_in(scope, self._name)

    def variant_in(self, scope: Construct, name: str | None = None) -> EndpointVariant:
        """As :meth:`variant`, for a construct's own alarms and graphs: they resolve faster."""
        return self.variant(name).named(self.name_in(scope))

    def variant(self, name: str | None = None) -> EndpointVariant:
        """A variant with its metrics, also the shadow; by default the first production variant.

        Args:
            name: Of an endpoint imported without its variants, any: what it runs on is not known then.

        Raises:
            ConfigurationError: LLE622 for an unknown name, LLE631 without one where no
                variant is known.
        """
        if name is None:
            attributes = self.known_variants()[0]
        elif not self.all_variants:
            attributes = VariantAttributes(name=name)
        else:
            variants = [variant for variant in self.all_variants if variant.name == name]
            if not variants:
                raise UNKNOWN_VARIANT.error(
                    got=repr(name),
                    allowed=", ".join(variant.name for variant in self.all_variants),
                    where=path_of(self),
                )
            attributes = variants[0]
        return EndpointVariant(
            attributes,
            endpoint_name=kept(self, "name_anywhere", lambda: name_anywhere(self._name)),
            endpoint_config_name=self.endpoint_config_name,
            enhanced=self.enhanced_metrics,
            where=path_of(self),
        )

    @property
    def all_variants(self) -> tuple[VariantAttributes, ...]:
        """The production variants and the shadow: all that have instances."""
        return (*self.variants, *([self.shadow] if self.shadow else []))

    def known_variants(self) -> tuple[VariantAttributes, ...]:
        """Its production variants, at least one.

        Raises
        ------
        ConfigurationError
            LLE631 for an endpoint that was imported without them, LLE447 where they hold inference
            components.
        """
        if not self.variants:
            raise VARIANTS_NOT_KNOWN.error(
                got="an endpoint imported by its name or ARN alone",
                allowed="an import with variants",
                where=path_of(self),
            )
        _refuse_components(self.variants, path_of(self))
        return self.variants

    def metric(
        self,
        name: str,
        *,
        statistic: str,
        period: Duration | timedelta | str | None = None,
        fleet: Literal["whole", "new"] = "whole",
        dimensions: Mapping[str, str] | None = None,
    ) -> cloudwatch.Metric:
        """A metric of the first variant; see :meth:`MetricSource.metric`."""
        return self.variant().metric(
            name, statistic=statistic, period=period, fleet=fleet, dimensions=dimensions
        )

    def _before_scaling(self, variant_name: str) -> None:
        """Refuse what does not go together with scaling."""

    def _after_scaling(self) -> None:
        """Say what scaling means for updates."""

    def _hold_room(self, variant: VariantAttributes, instances: int) -> None:
        if variant.network is not None:
            variant.network.fleet_room.hold(
                f"{path_of(self)}/{variant.name}",
                instances,
                network=variant.network,
                in_update=self._instances_in_update(instances),
                where=path_of(self),
            )

    def _instances_in_update(self, instances: int) -> int:
        return 2 * instances  # a blue/green deployment's


def _refuse_components(variants: Sequence[VariantAttributes], where: str) -> None:
    for variant in variants:
        if variant.shape == "inference-component":
            raise COMPONENTS_ARE_BY_THEMSELVES.error(
                got=f"variant {variant.name}",
                allowed="a variant with a model, or a component",
                where=where,
            )


class ImportedEndpoint(IEndpoint):
    """What ``Endpoint.from_*`` return; it makes nothing by itself."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str | None = None,
        endpoint_arn: str | None = None,
        variants: Sequence[VariantAttributes] = (),
        endpoint_config_name: str | None = None,
        enhanced_metrics: bool = False,
    ) -> None:
        where = f"{path_of(scope)}/{id}".lstrip("/")
        if endpoint_name is None and endpoint_arn is None:
            raise NAME_OR_ARN.error(
                got="neither", allowed="endpoint_name, endpoint_arn or both", where=where
            )
        check(ENDPOINT_NAME, endpoint_name, where)
        check(ENDPOINT_ARN, endpoint_arn, where)
        super().__init__(scope, id, environment_from_arn=endpoint_arn)
        path = path_below(self, scope, id)
        check_names([variant.name for variant in variants], path)
        self.endpoint_name = endpoint_name or _name_in(self, str(endpoint_arn))
        self._name = self.endpoint_name
        self.endpoint_arn = endpoint_arn or arn_of(self, self.endpoint_name)
        self.variants = tuple(variants)
        self.endpoint_config_name = endpoint_config_name
        self.enhanced_metrics = enhanced_metrics
        self._scaled = {}


def _name_in(scope: Construct, endpoint_arn: str) -> str:
    if not is_token(endpoint_arn):
        return endpoint_arn.rpartition("/")[2]
    parts = stack_of(scope).split_arn(endpoint_arn, ArnFormat.SLASH_RESOURCE_NAME)
    return str(parts.resource_name)
