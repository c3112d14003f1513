"""What alarms on tokens need of the account: PromQL in the Region, and OTel enrichment."""

from __future__ import annotations

from collections.abc import Iterator

from ...account.queries import START_ENRICHMENT, enrichment_status
from ...plan.container_metrics import promql_regions
from ...settings.token_alarms import token_alarm_count
from ..checking.checks import Outcome, check, passed, warned
from .context import PreflightContext

_ENRICHMENT = "/AmazonCloudWatch/latest/monitoring/CloudWatch-OTelEnrichment.html"


@check(
    "LLP605",
    "CloudWatch answers PromQL queries, for the alarms on tokens",
    how="The Region, and the account's OTel enrichment in it. Settings without such alarms: no row.",
    source=_ENRICHMENT,
)
def queries_are_answered(context: PreflightContext) -> Iterator[Outcome]:
    settings = context.settings.endpoints
    count = sum(token_alarm_count(settings[each.key], each.plan) for each in context.variants)
    if not count:
        return
    region = context.account.region
    if region not in promql_regions():
        yield warned(
            f"AWS does not list {region} among the Regions with PromQL queries, on which "
            f"{count} alarms rest",
            "Use a Region of the list, or turn the alarms on tokens off.",
            about="region",
        )
    if enrichment_status(context.account) == "Running":
        yield passed("OTel enrichment runs")
    else:
        yield warned(
            f"OTel enrichment is stopped: SageMaker's guide calls it required for queries, so "
            f"{count} alarms may never alarm; CloudWatch's guide contradicts it",
            START_ENRICHMENT,
        )
