"""What evidence says of each claim that the library makes of AWS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from low_latency_endpoint.facts.canary_metrics import LONGEST_CONNECT_MS, NAMESPACE

__all__ = ["CLAIMS", "Claim", "Verdict", "judge"]


class Verdict(StrEnum):
    """What one piece of evidence says of a claim."""

    SEEN = "seen"
    REFUTED = "refuted"
    OPEN = "not in this evidence"


Saw = Mapping[str, Any]
"""What a step has seen."""


@dataclass(frozen=True)
class Claim:
    """The step that settles it, and of what that has seen whether it is so; None if not to be told."""

    step: str
    holds: Callable[[Saw], bool | None]


def judge(claim: Claim, evidence: Mapping[str, Any]) -> Verdict:
    """What evidence says; nothing, where the step has not run or did not see what it takes.

    A step that ended the run, as a first deployment that failed, has seen something all the same.
    """
    step = evidence["steps"].get(claim.step)
    if step is None or step.get("status") not in ("done", "failed") or "saw" not in step:
        return Verdict.OPEN
    try:
        found = claim.holds(step["saw"])
    except (KeyError, IndexError, TypeError):
        return Verdict.OPEN
    return {True: Verdict.SEEN, False: Verdict.REFUTED, None: Verdict.OPEN}[found]


def _all(*answers: bool | None) -> bool | None:
    """False as soon as one is; None without answers, or when one is unknown."""
    if False in answers:
        return False
    return None if None in answers or not answers else True


def _names(saw: Saw, kind: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Each zone's answer about one name; none where names lead nowhere."""
    return [
        (zone, each["names"][kind])
        for zone, each in saw["probes"].items()
        if "unavailable" not in each["names"][kind] and "dns" in each["names"][kind]
    ]


def _within(saw: Saw, kind: str, *, own: bool) -> bool | None:
    """Whether all addresses are in the client zones' subnets, or in the asking zone's own."""

    def right(zone: str, dns: Any) -> bool:
        if "error" in dns:
            return False
        places = {each["in"] for each in dns}
        return places == {zone} if own else bool(places) and places <= set(saw["probes"])

    return _all(*(right(zone, name["dns"]) for zone, name in _names(saw, kind)))


_KINDS = ("regional", "zonal")


def _same_zone(saw: Saw) -> bool | None:
    def stays(zone: str, served: Mapping[str, int]) -> bool | None:
        return None if "unknown" in served or not served else set(served) == {zone}

    return _all(
        *(
            stays(zone, name["invoked"]["served_in"])
            for kind in _KINDS
            for zone, name in _names(saw, kind)
        )
    )


def _is_default(alarm: str) -> bool:
    """Whether an alarm is there without being asked for, and before a deployment; as its text says."""
    return "EndpointConfigName" not in alarm and NAMESPACE not in alarm


def _short_paths(saw: Saw) -> bool | None:
    """Whether every run of the canary was answered, over a path as short as its alarm takes it."""
    return _all(
        *(
            not each["unreachable"] and each["connect_ms"] <= LONGEST_CONNECT_MS
            for each in saw["canary"].values()
        )
    )


def _foreign_refused(saw: Saw) -> bool | None:
    return _all(
        *(
            None
            if "unavailable" in each["foreign"]
            else each["foreign"]["error"] == "AccessDeniedException"
            for each in saw["probes"].values()
        )
    )


def _first_dns_entry(saw: Saw) -> bool | None:
    entries = saw["dns_entries"]
    if not entries:
        return None
    return "<zone-name-" not in entries[0] and ".vpce." in str(entries[0])


def _rights_suffice(saw: Saw) -> bool | None:
    """A first deployment that failed for something else tells nothing of rights."""
    if saw["stack_status"] == "CREATE_COMPLETE":
        return True
    refused = ("AccessDenied", "not authorized", "assume", "403")
    return False if any(word in str(saw["events"]) for word in refused) else None


def _series_lasts(saw: Saw) -> bool | None:
    """Whether the new fleet's Invocations go on as long as the whole endpoint's.

    With zeros for silence left out, and a minute or two that CloudWatch may be late.
    """
    whole = [t for t, value in saw["invocations"]["whole"] if value]
    new = [t for t, value in saw["invocations"]["new"] if value]
    if saw["minutes"] < 5 or len(whole) < 5:
        return None
    return bool(new) and new[-1] >= whole[-3]


def _have_data(saw: Saw, which: Callable[[str], bool]) -> bool | None:
    return _all(
        *(
            alarm["state"] != "INSUFFICIENT_DATA"
            for alarm in saw["alarms"]
            if which(str(alarm["definition"]))
        )
    )


def _whole_counts_both(saw: Saw) -> bool | None:
    """Whether some minute has more requests in all than to the new fleet, and none fewer."""
    whole = dict(saw["invocations"]["whole"])
    pairs = [(whole.get(t, 0), value) for t, value in saw["invocations"]["new"] if value]
    if not pairs:
        return None
    return all(total >= new for total, new in pairs) and any(total > new for total, new in pairs)


def _former_serves(saw: Saw) -> bool:
    after = saw["after"]
    return bool(
        after["status"] == "InService"
        and after["configuration_exists"]
        and after["configuration"] == saw["before"]["configuration"]
    )


def _failed_and_former_serves(saw: Saw) -> bool:
    # Whether the rollback itself came to its end is another claim.
    return str(saw["stack_status"]).startswith("UPDATE_ROLLBACK_") and _former_serves(saw)


def _never_served(saw: Saw) -> bool:
    """Whether the former configuration alone was in service: SageMaker took the update back."""
    return {note["saw"]["configuration"] for note in saw["endpoint_timeline"]} == {
        saw["before"]["configuration"]
    }


def _taken_back_fails(saw: Saw) -> bool | None:
    """An update that SageMaker did not take back tells nothing of those that it does."""
    return _failed_and_former_serves(saw) if _never_served(saw) else None


def _math_alarm_takes_back(saw: Saw) -> bool | None:
    """Only a deployment in which an alarm of metric math went off tells something of those."""
    went_off = any(
        "Metrics" in alarm["definition"]
        and "EndpointConfigName" in str(alarm["definition"])
        and any("to ALARM" in entry["what"] for entry in alarm["history"])
        for alarm in saw["alarms"]
    )
    return _never_served(saw) if went_off else None


def _untouched(saw: Saw) -> bool:
    parts = [saw["off"], saw["on"]]
    statuses = {
        note["saw"]["status"] for part in parts for note in part["endpoint_timeline"] if note["saw"]
    }
    return statuses == {"InService"} and all(
        part["stack_status"] == "UPDATE_COMPLETE" for part in parts
    )


def _interfaces_linger(saw: Saw) -> bool | None:
    """Whether interfaces of the model's group were there once the endpoint was gone."""
    notes = [note["saw"] for note in saw["interface_timeline"]]
    if not any(note["interfaces"] for note in notes):
        return None
    return any(note["interfaces"] and not note["endpoint"] for note in notes)


def _answered(answers: Mapping[str, int]) -> bool | None:
    """Whether every request was answered; None without any."""
    return set(answers) == {"ok"} if answers else None


def _confirmed(saw: Saw, status: str) -> int:
    """How many serving checks ended so."""
    return len(
        {
            event["resource"]
            for event in saw["events"]
            if event["type"] == "Custom::EndpointServingCheck" and event["status"] == status
        }
    )


def _both_serve(saw: Saw) -> bool | None:
    """A first deployment for which the account has no room tells nothing of two endpoints."""
    if saw["stack_status"] != "CREATE_COMPLETE":
        no_room = ("limit", "quota", "capacity")
        reasons = " ".join(event["reason"] for event in saw["events"]).lower()
        return None if any(word in reasons for word in no_room) else False
    return _all(
        saw["after"]["status"] == "InService",
        saw["hub"]["serving"]["status"] == "InService",
        _confirmed(saw, "CREATE_COMPLETE") == 2,
        *(_answered(each) for each in saw["answers_of"].values()),
    )


def _staged_and_isolated(saw: Saw) -> bool | None:
    hub = saw["hub"]
    return _all(
        hub["isolated"],
        hub["served"] == ["old"],
        hub["files"]["old"] > 0,
        _answered(saw["answers_of"]["hub"]),
    )


def _repinned(saw: Saw) -> bool | None:
    if saw["stack_status"] != "UPDATE_COMPLETE":
        return False
    return _all(
        saw["hub"]["served"] == ["new"],
        saw["hub"]["files"]["new"] > 0,
        _confirmed(saw, "UPDATE_COMPLETE") > 0,
        _answered(saw["answers"]),
    )


def _old_files_gone(saw: Saw) -> bool | None:
    """Only an update that went through removes them."""
    files = saw["hub"]["files"]
    return not files["old"] and files["new"] > 0 if _repinned(saw) else None


def _while_updating(saw: Saw) -> list[Mapping[str, Any]]:
    """The rounds of calls after which the clean-up had not begun yet."""
    return [each for each in saw["calls"] if each.get("stack") == "UPDATE_IN_PROGRESS"]


def _policy_keeps_former(saw: Saw) -> bool | None:
    if saw["stack_status"] != "UPDATE_COMPLETE":
        return None
    return _all(
        set(saw["policy_names"]) == {"old", "new"},
        *(
            "AccessDenied" not in each["answers"][kind]
            for each in _while_updating(saw)
            for kind in ("old", *(["new"] if each["new_in_service"] else []))
        ),
    )


def _other_keeps_its_rights(saw: Saw) -> bool | None:
    removed, updated = saw["removed"], saw["updated"]
    return _all(
        not saw["first_is_there"],
        *(part["stack_status"] == "UPDATE_COMPLETE" for part in (removed, updated)),
        _confirmed(updated, "UPDATE_COMPLETE") == 1,
        updated["after"]["status"] == "InService",
        *(_answered(part["answers"]) for part in (removed, updated)),
    )


def _takes_nothing(saw: Saw) -> bool | None:
    policies = saw["policies"]
    return _all(
        saw["made"] == "CREATE_COMPLETE",
        saw["deleted"] == "DELETE_COMPLETE",
        policies["with_both"] > policies["before"] > 0,
        policies["after"] == policies["before"],
        not saw["lost"],
        _answered(saw["answers"]),
    )


CLAIMS = {
    "create": Claim("deploy", lambda saw: saw["stack_status"] == "CREATE_COMPLETE"),
    "fresh-roles": Claim(
        "deploy",
        lambda saw: not any(event["status"].endswith("_FAILED") for event in saw["events"]),
    ),
    "narrow-rights": Claim("deploy", _rights_suffice),
    "two-endpoints": Claim("deploy", _both_serve),
    "hub-staged": Claim("deploy", _staged_and_isolated),
    "warm-up": Claim("deploy", lambda saw: saw["warm_ups"][-1]["outcome"] == "met"),
    "verify": Claim("deploy", lambda saw: "fail" not in saw["verify"].values()),
    "private-dns": Claim("deploy", lambda saw: _within(saw, "regional", own=False)),
    "private-dns-by-zone": Claim("deploy", lambda saw: _within(saw, "regional", own=True)),
    "zonal-names": Claim("deploy", lambda saw: _within(saw, "zonal", own=True)),
    "tls": Claim(
        "deploy",
        lambda saw: _all(
            *("names" in name["tls"] for kind in _KINDS for _, name in _names(saw, kind))
        ),
    ),
    "same-zone": Claim("deploy", _same_zone),
    "zone-paths": Claim("traffic", _short_paths),
    "zone-names": Claim(
        "traffic", lambda saw: _all(*(not each["out_of_zone"] for each in saw["canary"].values()))
    ),
    "endpoint-policy": Claim("deploy", _foreign_refused),
    "subnets-by-zone-id": Claim(
        "deploy",
        lambda saw: _all(
            *(
                each["subnet_zone_id"] == zone and each["subnet_zone_name_as_output"]
                for zone, each in saw["probes"].items()
            )
        ),
    ),
    "dns-entries": Claim("deploy", _first_dns_entry),
    "fleet-series-at-create": Claim(
        "traffic",
        lambda saw: not saw["invocations"]["new"] if saw["invocations"]["whole"] else None,
    ),
    # Those of a deployment's new fleet have data in a deployment only.
    "alarms-have-data": Claim("traffic", lambda saw: _have_data(saw, _is_default)),
    "percentile-ranks": Claim("traffic", lambda saw: _have_data(saw, lambda text: "PR(" in text)),
    "update": Claim(
        "update",
        lambda saw: saw["stack_status"] == "UPDATE_COMPLETE" and set(saw["answers"]) == {"ok"},
    ),
    "fleets-add-up": Claim("update", _whole_counts_both),
    "fleet-series-last": Claim("after-update", _series_lasts),
    "pages": Claim("page", lambda saw: saw["arrived"]),
    "crash-fails": Claim("crash", _failed_and_former_serves),
    "rollback-ends": Claim("crash", lambda saw: saw["stack_status"] == "UPDATE_ROLLBACK_COMPLETE"),
    "alarm-fails": Claim("slow", _taken_back_fails),
    "former-configuration": Claim("slow", lambda saw: saw["after"]["configuration_exists"]),
    "rolling-back": Claim("rolling", _taken_back_fails),
    "math-alarms": Claim("rolling", _math_alarm_takes_back),
    "scaling-toggles": Claim("scaling", _untouched),
    "capture": Claim(
        "capture", lambda saw: all(each["capture"] for each in saw["after"]["variants"])
    ),
    "zone-dimension": Claim(
        "capture",
        lambda saw: any("AvailabilityZone" in each["dimensions"] for each in saw["metrics"]),
    ),
    "repin": Claim("repin", _repinned),
    "former-files": Claim("repin", _old_files_gone),
    # An update that failed has renamed nothing.
    "renamed-served": Claim(
        "rename",
        lambda saw: (
            _all(*(each["answers"]["old"] == "ok" for each in _while_updating(saw)))
            if saw["stack_status"] == "UPDATE_COMPLETE"
            else None
        ),
    ),
    "new-name": Claim(
        "rename",
        lambda saw: _all(
            *(each["answers"]["new"] == "ok" for each in saw["calls"] if each.get("new_in_service"))
        ),
    ),
    "former-names": Claim("rename", _policy_keeps_former),
    "removed": Claim("remove", _other_keeps_its_rights),
    "shared-role": Claim("share", _takes_nothing),
    "interfaces": Claim("destroy", _interfaces_linger),
    "delete": Claim(
        "destroy", lambda saw: (saw["cli"], saw["stack_status"]) == ("ok", "DELETE_COMPLETE")
    ),
    "nothing-left": Claim(
        "destroy", lambda saw: all(each.startswith("log group: ") for each in saw["left"])
    ),
}
"""By the names that docs/reference/seen-on-aws.md gives them, which says what each is."""
