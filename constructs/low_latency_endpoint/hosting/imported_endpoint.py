"""An endpoint that is made elsewhere: in another stack or app, by a pipeline or a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat
from constructs import Construct

from ..facts.limits import ENDPOINT_ARN, ENDPOINT_NAME
from ..facts.rules import NAME_OR_ARN
from ..synthesis.arns import endpoint_arn as arn_of
from ..synthesis.construct_tree import path_below, path_of, stack_of
from ..synthesis.template_values import check, is_token
from .endpoint_configuration import check_names
from .endpoint_interface import IEndpoint
from .variant_attributes import VariantAttributes


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
            raise NAME_OR_ARN.error(got="neither", allowed="one or both", where=where)
        check(ENDPOINT_NAME, endpoint_name, where)
        check(ENDPOINT_ARN, endpoint_arn, where)
        super().__init__(scope, id, environment_from_arn=endpoint_arn)
        path = path_below(self, scope, id)
        check_names([variant.name for variant in variants], path)
        self.endpoint_name = endpoint_name or _name_in(self, str(endpoint_arn))
        self.name_at_synth = self.endpoint_name
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
