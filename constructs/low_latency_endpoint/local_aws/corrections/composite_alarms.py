"""CloudWatch composite alarms: moto stores and lists them but has no PutCompositeAlarm."""

from __future__ import annotations

import re
from typing import Any

from moto.cloudwatch.exceptions import ValidationError
from moto.cloudwatch.responses import CloudWatchResponse

_SUPPRESSION = {
    "ActionsSuppressor": "actions_suppressor",
    "ActionsSuppressorExtensionPeriod": "actions_suppressor_extension_period",
    "ActionsSuppressorWaitPeriod": "actions_suppressor_wait_period",
}
_IN_RULE = re.compile(r"(?:ALARM|OK|INSUFFICIENT_DATA)\s*\(\s*[\"']?([^\"')]+?)[\"']?\s*\)")


def apply() -> None:
    """Give moto the operation; its PutMetricAlarm reads the rule already."""

    def put_composite_alarm(self: Any) -> Any:
        alarms = self.cloudwatch_backend.alarms
        named = [name.rpartition(":")[2] for name in _IN_RULE.findall(self._get_param("AlarmRule"))]
        missing = [name for name in named if name not in alarms]
        if missing:
            raise ValidationError(
                "Could not save the composite alarm as alarms "
                f"[{', '.join(missing)}] in the alarm rule do not exist"
            )
        answer = self.put_metric_alarm()
        alarm = alarms[self._get_param("AlarmName")]
        for parameter, attribute in _SUPPRESSION.items():
            setattr(alarm, attribute, self._get_param(parameter))
        return answer

    CloudWatchResponse.put_composite_alarm = put_composite_alarm
