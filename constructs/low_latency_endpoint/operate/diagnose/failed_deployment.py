"""A deployment that failed or was rolled back: AWS's reason, read once for all who show it."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.failure_reasons import FailureReason, read_failure
from .findings import Finding, Remedy, container_log, finding
from .measurements import Measurements


def failed_deployment(m: Measurements) -> Iterator[Finding]:
    """At most one finding, with AWS's sentence and the changes that follow from it alone."""
    rolling_back = m.update is not None and m.update.update.rolling_back  # LLD707 says why
    if rolling_back or not (m.failure_reason or m.status in ("Failed", "UpdateRollbackFailed")):
        return
    if m.status == "InService" and _of_scaling(m):
        return  # LLD103 has it
    reason = read_failure(m.failure_reason)
    words = f"the endpoint is {m.status}"
    if reason.sentence:
        words += f'; AWS says: "{reason.sentence}"'
    if m.unstarted:
        words += f"; there is no log group {m.unstarted.log_group}"
    yield finding(
        "LLD701",
        words,
        first=remedies(reason, updating=m.status != "Failed"),
        more=_log(m, reason),
        advice=advice_on(reason),
    )


def _of_scaling(m: Measurements) -> bool:
    """Whether the reason is that of instances which scaling asked for: no deployment failed."""
    reason = m.failure_reason.casefold()
    return any(
        activity.failed and reason in activity.message.casefold()
        for variant in m.variants
        for activity in variant.activities
    )


def says_why(m: Measurements) -> bool:
    """Whether AWS's reason is one that is known."""
    return read_failure(m.failure_reason).kind is not None


def starts_no_container(m: Measurements) -> bool:
    """Whether AWS's reason says why no container ran: nothing else is to be guessed then."""
    kind = read_failure(m.failure_reason).kind
    return kind is not None and not kind.logged


def _log(m: Measurements, reason: FailureReason) -> list[Remedy]:
    """The command that shows the log, where a container can have written one."""
    if m.unstarted or not reason.logged:
        return []
    return [container_log(m.endpoint, "what the containers wrote, if they started")]


def remedies(reason: FailureReason, *, updating: bool) -> list[Remedy]:
    """What the settings can do about AWS's reason."""
    return [Remedy(each.key, each.why) for each in reason.settings(updating=updating)]


def advice_on(reason: FailureReason) -> str:
    """What the reason means and what to do; of a sentence that is not known only that."""
    if not reason.sentence:
        return "AWS gives no reason."
    if reason.kind is None:
        return "The reason is as AWS gives it: no advice is known for it."
    means = reason.kind.means
    return f"{means[0].upper()}{means[1:]}. {reason.fix}"
