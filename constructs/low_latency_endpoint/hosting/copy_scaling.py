"""Auto scaling of an inference component's copies."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..facts.limits import COOLDOWN_SECONDS, COPIES, SCALED_COPIES, SCALING_TARGET
from ..facts.rules import INITIAL_OUTSIDE_RANGE
from ..options.argument_kinds import checked_arguments
from ..synthesis.construct_tree import path_below, path_of
from ..synthesis.template_values import check, check_seconds, is_token
from .scaling_policies import ScalingStep, check_order, step_policy, tracking_policy

_DIMENSION = "sagemaker:inference-component:DesiredCopyCount"
_INVOCATIONS = "SageMakerInferenceComponentInvocationsPerCopy"
_CONCURRENCY = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"


@checked_arguments
class CopyScaling(Construct):
    """An inference component as a scalable target; what :meth:`InferenceComponent.scale` returns.

    Attributes
    ----------
    cfn_scalable_target : aws_applicationautoscaling.CfnScalableTarget
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        component: Construct,
        component_name: str,
        initial_copies: int,
        min_copies: int,
        max_copies: int,
        no_capacity: cloudwatch.IMetric,
    ) -> None:
        """An inference component as a scalable target; what :meth:`InferenceComponent.scale` returns."""
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        check(COPIES, initial_copies, path)
        check(SCALED_COPIES, min_copies, path)
        check(SCALED_COPIES, max_copies, path)
        check_order(min_copies, max_copies, path)
        counts = (min_copies, initial_copies, max_copies)
        if not any(map(is_token, counts)) and sorted(counts) != list(counts):
            raise INITIAL_OUTSIDE_RANGE.error(
                got=f"{initial_copies} copies", allowed=f"{min_copies} to {max_copies}", where=path
            )
        self._no_capacity = no_capacity
        self._of = component_name
        self.cfn_scalable_target = appscaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace="sagemaker",
            scalable_dimension=_DIMENSION,
            resource_id=f"inference-component/{component_name}",
            min_capacity=min_copies,
            max_capacity=max_copies,
        )
        # CloudFormation has no attribute with the component's name that would order the two.
        self.cfn_scalable_target.node.add_dependency(component)
        self.node.default_child = self.cfn_scalable_target

    def track_invocations(
        self,
        *,
        target_invocations_per_copy: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
        disable_scale_in: bool = False,
    ) -> CopyScaling:
        """Hold invocations per copy and minute at a target.

        Args:
            target_invocations_per_copy: May be a token.
            scale_in_cooldown: By default 300 seconds, as Application Auto Scaling does.
            scale_out_cooldown: By default 300 seconds, as Application Auto Scaling does.
            disable_scale_in: Only ever add copies; by default they are removed again.

        Raises:
            ConfigurationError: LLE602, LLE605.
        """
        return self._track(
            "Invocations",
            _INVOCATIONS,
            target_invocations_per_copy,
            (scale_in_cooldown, scale_out_cooldown),
            disable_scale_in,
        )

    def track_concurrency(
        self,
        *,
        max_concurrency_per_copy: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
        disable_scale_in: bool = False,
    ) -> CopyScaling:
        """Hold requests in flight per copy, measured every 10 seconds.

        Args:
            max_concurrency_per_copy: Requests in flight at a copy that scaling aims at.
            scale_in_cooldown: As for :meth:`track_invocations`.
            scale_out_cooldown: As for :meth:`track_invocations`.
            disable_scale_in: As for :meth:`track_invocations`.

        Raises:
            ConfigurationError: LLE602, LLE605.
        """
        return self._track(
            "Concurrency",
            _CONCURRENCY,
            max_concurrency_per_copy,
            (scale_in_cooldown, scale_out_cooldown),
            disable_scale_in,
        )

    def from_zero(self, *, copies: int = 1, cooldown: Duration | None = None) -> cloudwatch.Alarm:
        """Bring copies back when a request finds none.

        Target tracking does not: without a copy there are no invocations per copy. Requests fail
        until the first copy serves, for minutes where an instance has to start. Source:
        https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-zero-instances.html

        Args:
            copies: How many to begin with; by default 1.
            cooldown: By default 60 seconds.

        Raises:
            ConfigurationError: LLE605.
        """
        path = path_of(self)
        return step_policy(
            self,
            "FromZero",
            self.cfn_scalable_target,
            of=self._of,
            metric=self._no_capacity,
            threshold=1,
            steps=[ScalingStep(lower=0, change=copies)],
            evaluation_periods=1,
            cooldown_seconds=check_seconds(
                COOLDOWN_SECONDS, cooldown or Duration.seconds(60), path
            ),
            scale_in=False,
            description="A request found no copy of the inference component",
        )

    def _track(
        self,
        policy_name: str,
        metric: str,
        target: float,
        cooldowns: tuple[Duration | None, Duration | None],
        disable_scale_in: bool,
    ) -> CopyScaling:
        path = path_of(self)
        inward, outward = (check_seconds(COOLDOWN_SECONDS, each, path) for each in cooldowns)
        tracking_policy(
            self,
            policy_name,
            self.cfn_scalable_target,
            of=self._of,
            metric=metric,
            target=check(SCALING_TARGET, target, path),
            scale_in_seconds=inward,
            scale_out_seconds=outward,
            disable_scale_in=disable_scale_in,
        )
        return self
