"""CloudWatch composite alarms: moto stores and lists them but has no PutCompositeAlarm."""

from __future__ import annotations

from typing import Any

from moto.cloudwatch.responses import CloudWatchResponse


def apply() -> None:
    """Give moto the operation; its PutMetricAlarm reads the rule already."""

    def put_composite_alarm(self: Any) -> Any:
        return self.put_metric_alarm()

    CloudWatchResponse.put_composite_alarm = put_composite_alarm
