"""CloudWatch: moto keeps alarms without evaluating them; here our own operations answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.cloudwatch.models import CloudWatchBackend, cloudwatch_backends
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult, EmptyResult

from ..cloudwatch import alarm_api, enrichment_api, evaluation, metric_api
from ..cloudwatch.state import CloudWatchState, state_of
from .replacing import around

_STARTS = (
    "delete_",
    "describe_",
    "disable_",
    "enable_",
    "get_",
    "list_",
    "put_",
    "start_",
    "stop_",
)
# Every operation of these modules, but for what others of moto's services call too.
_OPERATIONS = {
    name: operation
    for module in (alarm_api, enrichment_api, metric_api)
    for name, operation in vars(module).items()
    if name.startswith(_STARTS) and name != "put_metric_data"
} | {"set_alarm_state": evaluation.set_alarm_state}


# At the backend, since other services of moto write metrics there.
@around(CloudWatchBackend)
def put_metric_data(_: Any, self: Any, namespace: str, metric_data: list[dict[str, Any]]) -> None:
    """Keep metric data where alarms are judged."""
    for number, datum in enumerate(metric_data, start=1):
        self._validate_parameters_put_metric_data(datum, number)
    metric_api.put_metric_data(state_of(self), namespace, metric_data)


# moto tags alarms only; its PutDashboard drops the tags.
@around(CloudWatchBackend)
def tag_resource(original: Any, self: Any, arn: str, tags: dict[str, str]) -> None:
    """Tag an alarm, or a dashboard."""
    if arn in {dashboard.arn for dashboard in self.dashboards.values()}:
        self.tagger.tag_resource(arn, self.tagger.convert_dict_to_tags_input(tags))
    else:
        original(self, arn, tags)


def _answering(
    name: str, operation: Callable[[CloudWatchState, dict[str, Any]], dict[str, Any] | None]
) -> Callable[[Any], ActionResult]:
    def answer(self: Any) -> ActionResult:
        backend = cloudwatch_backends[self.current_account][self.region]
        request = self._get_params()
        result = operation(state_of(backend), request)
        if name.startswith("put_") and request.get("Tags"):
            # moto keeps the tags; a Put changes those of an alarm that exists already not at all.
            backend.tagger.tag_resource(
                f"arn:aws:cloudwatch:{self.region}:{self.current_account}:alarm:"
                f"{request['AlarmName']}",
                request["Tags"],
            )
        return EmptyResult() if result is None else ActionResult(result)

    answer.__name__ = name
    return answer


# moto's operations on alarms and metrics, and those that it does not have.
for name, operation in _OPERATIONS.items():
    setattr(CloudWatchResponse, name, _answering(name, operation))
