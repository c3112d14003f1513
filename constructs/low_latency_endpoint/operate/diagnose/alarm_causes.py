"""Which causes an alarm can have, and the alarms that are on without one: nobody calls those healthy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...account.alarm_kinds import (
    ANOMALY,
    AT_MAXIMUM,
    BOTH_FLEETS,
    BURN_RATE,
    SHADOW,
    SILENCE,
    ZONE_IMBALANCE,
)
from ...account.alarms import AlarmReading
from ...account.queries import FIRST_TOKEN, INTER_TOKEN, KV_CACHE, WAITING
from ...errors.shell_words import shell_words
from ...facts.canary_metrics import ANSWER, CONNECT, OUT_OF_ZONE, UNREACHABLE
from .findings import Evidence, Finding, Remedy, finding
from .measurements import Measurements

#: A new fleet, or one that was taken back, can be slow, fail and fill its instances.
_VERSIONS = ("LLD702", "LLD706", "LLD707", "LLD708")
_LATE = ("LLD1", "LLD301", "LLD302", "LLD405", "LLD50", "LLD601", *_VERSIONS)
_ERRORS = ("LLD1", "LLD40", "LLD701", *_VERSIONS)
_FULL = (
    "LLD10",
    "LLD110",
    "LLD111",
    "LLD112",
    "LLD124",
    "LLD135",
    "LLD144",
    "LLD145",
    "LLD147",
    "LLD401",
    *_VERSIONS,
)
_TOKENS = ("LLD137", "LLD138", "LLD139", "LLD140", "LLD141", "LLD142", "LLD143", "LLD10")

#: By kind of alarm, its causes or what their ids begin with; each can be LLD710 besides.
_CAUSES: dict[str, tuple[str, ...]] = {
    "ModelLatency": _LATE,
    BURN_RATE: _LATE,
    "OverheadLatency": ("LLD20", "LLD10", "LLD30", "LLD121", "LLD401", *_VERSIONS),
    "Invocation5XXErrors": _ERRORS,
    "Invocation4XXErrors": ("LLD403", "LLD407", "LLD401", *_VERSIONS),
    "InvocationModelErrors": _ERRORS,
    "CPUUtilization": _FULL,
    "GPUUtilization": _FULL,
    "GPUMemoryUtilization": ("LLD137", "LLD141"),
    "MemoryUtilization": ("LLD117", "LLD134"),
    "DiskUtilization": ("LLD118",),
    "ModelCacheHit": ("LLD301", "LLD302"),
    "ModelLoadingWaitTime": ("LLD301", "LLD302"),
    AT_MAXIMUM: ("LLD102", "LLD103", "LLD109", "LLD135"),
    ZONE_IMBALANCE: ("LLD135", "LLD503"),
    SILENCE: ("LLD603", "LLD606", "LLD701", "LLD705"),
    ANOMALY: ("LLD1", "LLD20", "LLD40", "LLD50", "LLD60", *_VERSIONS),
    FIRST_TOKEN: _TOKENS,
    INTER_TOKEN: _TOKENS,
    WAITING: _TOKENS,
    KV_CACHE: _TOKENS,
    CONNECT: ("LLD802",),
    UNREACHABLE: ("LLD803", "LLD805", "LLD807"),
    ANSWER: ("LLD806", "LLD802", "LLD803"),
    OUT_OF_ZONE: ("LLD804",),
}
ALARM_KINDS = tuple(_CAUSES)
_NEVER_A_CAUSE = ("LLD148",)  # hardware that is hardly used makes nobody wait
NO_CAUSE_OF_CALLERS = (SHADOW, BOTH_FLEETS)
"""Alarms of which callers see nothing: a shadow's, and what holds pages back during a deployment."""


def explains(kind: str, name: str) -> bool:
    """Whether a finding can be the cause of an alarm of this kind."""
    if name in _NEVER_A_CAUSE:
        return False
    return name.startswith(_CAUSES.get(kind, ("LLD",)))


def unexplained_alarms(m: Measurements, findings: Sequence[Finding]) -> Iterator[Finding]:
    """At most one finding: the alarms that are on although nothing that was found can be their cause."""
    told = [each.id for each in findings]
    alone = [
        alarm
        for alarm in m.alarms or ()
        if _is_on(alarm, m) and not any(explains(alarm.kind, name) for name in told)
    ]
    if alone:
        names = shell_words(alarm.name for alarm in alone)
        command = f"aws cloudwatch describe-alarms --alarm-names {names}"
        why = "each description says what the alarm means, and what to look at first"
        yield finding(
            "LLD710",
            *(_shown(alarm, m) for alarm in alone),
            first=[Remedy(command, why, command=True)],
            risk=True,
        )


def _is_on(alarm: AlarmReading, m: Measurements) -> bool:
    """Whether it is one that tells of callers, in ALARM at the end of the window and on a metric."""
    if alarm.state != "ALARM" or alarm.of_scaling or alarm.doubt or alarm.new_fleet:
        return False
    if alarm.kind in NO_CAUSE_OF_CALLERS:
        return False
    return alarm.since is None or alarm.since <= m.end


def _shown(alarm: AlarmReading, m: Measurements) -> Evidence:
    since = f" since {m.clock(alarm.since)}" if alarm.since else ""
    return Evidence(f"{alarm.title or alarm.name} is in ALARM{since}", alarm.since, m.end)
