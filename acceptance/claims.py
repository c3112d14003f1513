"""What the library claims of AWS, where it says so, and what evidence says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["CLAIMS", "Claim", "Verdict", "judge"]


class Verdict(StrEnum):
    """What one piece of evidence says of a claim."""

    SEEN = "seen"
    REFUTED = "refuted"
    OPEN = "not in this evidence"


Steps = Mapping[str, Mapping[str, Any]]
"""What each step of a run has seen, by the step's name."""


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    statement
        What should be so.
    page
        Where the library says so or rests on it.
    step
        The step that settles it.
    holds
        Of what the step has seen: whether it is so, or None where it cannot be told.
    otherwise
        What a run would see if it were not so, where that is not just the opposite.
    """

    id: str
    statement: str
    page: str
    step: str
    holds: Callable[[Mapping[str, Any]], bool | None]
    otherwise: str = ""


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


def _all(answers: Iterable[bool | None]) -> bool | None:
    """False as soon as one is; None without answers, or when one is unknown."""
    told = list(answers)
    if False in told:
        return False
    return None if None in told or not told else True


def _names(saw: Mapping[str, Any], kind: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Each zone's answer about one name; none where names lead nowhere."""
    return [
        (zone, each["names"][kind])
        for zone, each in saw["probes"].items()
        if "unavailable" not in each["names"][kind] and "dns" in each["names"][kind]
    ]


def _within(saw: Mapping[str, Any], kind: str, *, own: bool) -> bool | None:
    """Whether all addresses are in the client zones' subnets, or in the asking zone's own."""

    def right(zone: str, dns: Any) -> bool:
        if "error" in dns:
            return False
        places = {each["in"] for each in dns}
        return places == {zone} if own else bool(places) and places <= set(saw["probes"])

    return _all(right(zone, name["dns"]) for zone, name in _names(saw, kind))


def _handshakes(saw: Mapping[str, Any]) -> bool | None:
    return _all(
        "names" in name["tls"] for kind in ("regional", "zonal") for _, name in _names(saw, kind)
    )


def _same_zone(saw: Mapping[str, Any]) -> bool | None:
    def stays(zone: str, served: Mapping[str, int]) -> bool | None:
        return None if "unknown" in served or not served else set(served) == {zone}

    return _all(
        stays(zone, name["invoked"]["served_in"])
        for kind in ("regional", "zonal")
        for zone, name in _names(saw, kind)
    )


def _foreign_refused(saw: Mapping[str, Any]) -> bool | None:
    return _all(
        None
        if "unavailable" in each["foreign"]
        else each["foreign"]["error"] == "AccessDeniedException"
        for each in saw["probes"].values()
    )


def _first_dns_entry(saw: Mapping[str, Any]) -> bool | None:
    entries = saw["dns_entries"]
    if not entries:
        return None
    return "<zone-name-" not in entries[0] and ".vpce." in str(entries[0])


def _no_failed_event(saw: Mapping[str, Any]) -> bool:
    return not any(event["status"].endswith("_FAILED") for event in saw["events"])


def _rights_suffice(saw: Mapping[str, Any]) -> bool | None:
    """A first deployment that failed for something else tells nothing of rights."""
    if saw["stack_status"] == "CREATE_COMPLETE":
        return True
    refused = ("AccessDenied", "not authorized", "assume", "403")
    return False if any(word in str(saw["events"]) for word in refused) else None


def _no_fleet_series(saw: Mapping[str, Any]) -> bool | None:
    return not saw["invocations"]["new"] if saw["invocations"]["whole"] else None


def _series_lasts(saw: Mapping[str, Any]) -> bool | None:
    """Whether the new fleet's Invocations go on as long as the whole endpoint's.

    With zeros for silence left out, and a minute or two that CloudWatch may be late.
    """
    whole = [t for t, value in saw["invocations"]["whole"] if value]
    new = [t for t, value in saw["invocations"]["new"] if value]
    if saw["minutes"] < 5 or len(whole) < 5:
        return None
    return bool(new) and new[-1] >= whole[-3]


def _whole_counts_both(saw: Mapping[str, Any]) -> bool | None:
    """Whether some minute has more requests in all than to the new fleet, and none fewer."""
    whole = dict(saw["invocations"]["whole"])
    pairs = [(whole.get(t, 0), value) for t, value in saw["invocations"]["new"] if value]
    if not pairs:
        return None
    return all(total >= new for total, new in pairs) and any(total > new for total, new in pairs)


def _alarms_have_data(saw: Mapping[str, Any]) -> bool | None:
    # Those of a deployment's new fleet have data in a deployment only.
    return _all(
        alarm["state"] != "INSUFFICIENT_DATA"
        for alarm in saw["alarms"]
        if "EndpointConfigName" not in str(alarm["definition"])
    )


def _percentile_ranks(saw: Mapping[str, Any]) -> bool | None:
    return _all(
        alarm["state"] != "INSUFFICIENT_DATA"
        for alarm in saw["alarms"]
        if "PR(" in str(alarm["definition"])
    )


def _former_serves(saw: Mapping[str, Any]) -> bool:
    after = saw["after"]
    return bool(
        after["status"] == "InService"
        and after["configuration_exists"]
        and after["configuration"] == saw["before"]["configuration"]
    )


def _failed_and_former_serves(saw: Mapping[str, Any]) -> bool:
    # Whether the rollback itself came to its end is another claim.
    return str(saw["stack_status"]).startswith("UPDATE_ROLLBACK_") and _former_serves(saw)


def _never_served(saw: Mapping[str, Any]) -> bool:
    """Whether the former configuration alone was in service: SageMaker took the update back."""
    return {note["saw"]["configuration"] for note in saw["endpoint_timeline"]} == {
        saw["before"]["configuration"]
    }


def _taken_back_fails(saw: Mapping[str, Any]) -> bool | None:
    """An update that SageMaker did not take back tells nothing of those that it does."""
    return _failed_and_former_serves(saw) if _never_served(saw) else None


def _math_alarm_takes_back(saw: Mapping[str, Any]) -> bool | None:
    """Only a deployment in which an alarm of metric math went off tells something of those."""
    went_off = any(
        "Metrics" in alarm["definition"]
        and "EndpointConfigName" in str(alarm["definition"])
        and any("to ALARM" in entry["what"] for entry in alarm["history"])
        for alarm in saw["alarms"]
    )
    return _never_served(saw) if went_off else None


def _untouched(saw: Mapping[str, Any]) -> bool:
    parts = [saw["off"], saw["on"]]
    statuses = {
        note["saw"]["status"] for part in parts for note in part["endpoint_timeline"] if note["saw"]
    }
    return statuses == {"InService"} and all(
        part["stack_status"] == "UPDATE_COMPLETE" for part in parts
    )


def _captures(saw: Mapping[str, Any]) -> bool:
    return all(variant["capture"] for variant in saw["after"]["variants"])


def _zone_dimension(saw: Mapping[str, Any]) -> bool:
    return any("AvailabilityZone" in each["dimensions"] for each in saw["metrics"])


def _in_one_go(saw: Mapping[str, Any]) -> bool:
    return (saw["cli"], saw["stack_status"]) == ("ok", "DELETE_COMPLETE")


def _interfaces_linger(saw: Mapping[str, Any]) -> bool | None:
    """Whether interfaces of the model's group were there once the endpoint was gone."""
    notes = [note["saw"] for note in saw["interface_timeline"]]
    if not any(note["interfaces"] for note in notes):
        return None
    return any(note["interfaces"] and not note["endpoint"] for note in notes)


def _only_log_groups_left(saw: Mapping[str, Any]) -> bool:
    return all(line.startswith("log group: ") for line in saw["left"])


def _answered(answers: Mapping[str, int]) -> bool | None:
    """Whether every request was answered; None without any."""
    return set(answers) == {"ok"} if answers else None


def _confirmed(saw: Mapping[str, Any], status: str) -> int:
    """How many serving checks ended so."""
    return len(
        {
            event["resource"]
            for event in saw["events"]
            if event["type"] == "Custom::EndpointServingCheck" and event["status"] == status
        }
    )


def _both_serve(saw: Mapping[str, Any]) -> bool | None:
    """A first deployment for which the account has no room tells nothing of two endpoints."""
    if saw["stack_status"] != "CREATE_COMPLETE":
        no_room = ("limit", "quota", "capacity")
        reasons = " ".join(event["reason"] for event in saw["events"]).lower()
        return None if any(word in reasons for word in no_room) else False
    return _all(
        [
            saw["after"]["status"] == "InService",
            saw["hub"]["serving"]["status"] == "InService",
            _confirmed(saw, "CREATE_COMPLETE") == 2,
            *(_answered(each) for each in saw["answers_of"].values()),
        ]
    )


def _staged_and_isolated(saw: Mapping[str, Any]) -> bool | None:
    hub = saw["hub"]
    return _all(
        [
            hub["isolated"],
            hub["served"] == ["old"],
            hub["files"]["old"] > 0,
            _answered(saw["answers_of"]["hub"]),
        ]
    )


def _repinned(saw: Mapping[str, Any]) -> bool | None:
    if saw["stack_status"] != "UPDATE_COMPLETE":
        return False
    return _all(
        [
            saw["hub"]["served"] == ["new"],
            saw["hub"]["files"]["new"] > 0,
            _confirmed(saw, "UPDATE_COMPLETE") > 0,
            _answered(saw["answers"]),
        ]
    )


def _old_files_gone(saw: Mapping[str, Any]) -> bool | None:
    """Only an update that went through removes them."""
    files = saw["hub"]["files"]
    return not files["old"] and files["new"] > 0 if _repinned(saw) else None


def _while_updating(saw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rounds of calls after which the clean-up had not begun yet."""
    return [each for each in saw["calls"] if each.get("stack") == "UPDATE_IN_PROGRESS"]


def _old_name_served(saw: Mapping[str, Any]) -> bool | None:
    """An update that failed has renamed nothing."""
    if saw["stack_status"] != "UPDATE_COMPLETE":
        return None
    return _all(each["answers"]["old"] == "ok" for each in _while_updating(saw))


def _new_name_serves(saw: Mapping[str, Any]) -> bool | None:
    return _all(
        each["answers"]["new"] == "ok" for each in saw["calls"] if each.get("new_in_service")
    )


def _policy_keeps_former(saw: Mapping[str, Any]) -> bool | None:
    if saw["stack_status"] != "UPDATE_COMPLETE":
        return None
    return _all(
        [
            set(saw["policy_names"]) == {"old", "new"},
            *(
                "AccessDenied" not in each["answers"][kind]
                for each in _while_updating(saw)
                for kind in ("old", *(["new"] if each["new_in_service"] else []))
            ),
        ]
    )


def _other_keeps_its_rights(saw: Mapping[str, Any]) -> bool | None:
    removed, updated = saw["removed"], saw["updated"]
    return _all(
        [
            not saw["first_is_there"],
            *(part["stack_status"] == "UPDATE_COMPLETE" for part in (removed, updated)),
            _confirmed(updated, "UPDATE_COMPLETE") == 1,
            updated["after"]["status"] == "InService",
            *(_answered(part["answers"]) for part in (removed, updated)),
        ]
    )


def _takes_nothing(saw: Mapping[str, Any]) -> bool | None:
    policies = saw["policies"]
    return _all(
        [
            saw["made"] == "CREATE_COMPLETE",
            saw["deleted"] == "DELETE_COMPLETE",
            policies["with_both"] > policies["before"] > 0,
            policies["after"] == policies["before"],
            not saw["lost"],
            _answered(saw["answers"]),
        ]
    )


_NETWORKS, _UPDATES = "explanation/networks.md", "explanation/updates.md"
_MONITORING = "reference/monitoring.md"
_IN_YOUR_APP, _HUGGING_FACE = "how-to/in-your-app.md", "how-to/hugging-face.md"

CLAIMS = (
    Claim(
        "create",
        "A first deployment creates the stack in one go.",
        _UPDATES,
        "deploy",
        lambda saw: saw["stack_status"] == "CREATE_COMPLETE",
    ),
    Claim(
        "fresh-roles",
        "AWS knows the roles of the same stack in time: nothing in the first deployment fails.",
        _UPDATES,
        "deploy",
        _no_failed_event,
    ),
    Claim(
        "narrow-rights",
        "The narrow rights (network interfaces of this VPC, conditions on the source, the S3 "
        "endpoint's policy) are enough for SageMaker to start the model.",
        "reference/security-checks.md",
        "deploy",
        _rights_suffice,
    ),
    Claim(
        "two-endpoints",
        "Two endpoints of one stack deploy, and both serve.",
        _IN_YOUR_APP,
        "deploy",
        _both_serve,
        "a policy that CloudFormation refuses, as another resource has one of its name on the "
        "role; or one of the two is not in service, or answers with errors.",
    ),
    Claim(
        "hub-staged",
        "A model of the Hugging Face Hub is staged at the deployment, and serves without network.",
        _HUGGING_FACE,
        "deploy",
        _staged_and_isolated,
        "no files under the pinned commit, or a container that does not start without the Hub.",
    ),
    Claim(
        "warm-up",
        "The warm-up meets its target before the stack is complete.",
        "explanation/warm-up.md",
        "deploy",
        lambda saw: saw["warm_ups"][-1]["outcome"] == "met",
    ),
    Claim(
        "verify",
        "`low-latency verify` finds nothing that fails.",
        _UPDATES,
        "deploy",
        lambda saw: "fail" not in saw["verify"].values(),
    ),
    Claim(
        "private-dns",
        "In the VPC the runtime's name answers with addresses in the client zones' subnets.",
        _NETWORKS,
        "deploy",
        lambda saw: _within(saw, "regional", own=False),
    ),
    Claim(
        "private-dns-by-zone",
        "In the VPC the runtime's name answers with the address of the caller's own zone.",
        _NETWORKS,
        "deploy",
        lambda saw: _within(saw, "regional", own=True),
    ),
    Claim(
        "zonal-names",
        "A zonal name answers with the address in its zone.",
        _NETWORKS,
        "deploy",
        lambda saw: _within(saw, "zonal", own=True),
    ),
    Claim(
        "tls",
        "The certificate covers the regional and the zonal names.",
        _NETWORKS,
        "deploy",
        _handshakes,
    ),
    Claim(
        "same-zone",
        "An invocation is served in the zone of its caller.",
        _NETWORKS,
        "deploy",
        _same_zone,
    ),
    Claim(
        "endpoint-policy",
        "In a new VPC the interface endpoint refuses calls to other endpoints than the stack's.",
        _NETWORKS,
        "deploy",
        _foreign_refused,
    ),
    Claim(
        "subnets-by-zone-id",
        "A subnet that is made by zone ID is in that zone, and its AvailabilityZone is the zone's name.",
        _NETWORKS,
        "deploy",
        lambda saw: _all(
            each["subnet_zone_id"] == zone and each["subnet_zone_name_as_output"]
            for zone, each in saw["probes"].items()
        ),
    ),
    Claim(
        "dns-entries",
        "The first DNS entry of an interface endpoint is its regional name.",
        _NETWORKS,
        "deploy",
        _first_dns_entry,
    ),
    Claim(
        "fleet-series-at-create",
        "Before the first update no metric carries EndpointConfigName.",
        _MONITORING,
        "traffic",
        _no_fleet_series,
    ),
    Claim(
        "alarms-have-data",
        "With traffic all default alarms have data.",
        _MONITORING,
        "traffic",
        _alarms_have_data,
    ),
    Claim(
        "percentile-ranks",
        "Alarms on the share of slow requests (`PR(n:)`) are accepted and have data.",
        _MONITORING,
        "traffic",
        _percentile_ranks,
    ),
    Claim(
        "update",
        "A good update ends in UPDATE_COMPLETE, without a failed request.",
        _UPDATES,
        "update",
        lambda saw: saw["stack_status"] == "UPDATE_COMPLETE" and set(saw["answers"]) == {"ok"},
    ),
    Claim(
        "fleets-add-up",
        "During a deployment the endpoint's metrics count both fleets.",
        _MONITORING,
        "update",
        _whole_counts_both,
    ),
    Claim(
        "fleet-series-last",
        "The new fleet's metrics with EndpointConfigName go on after the deployment.",
        _MONITORING,
        "after-update",
        _series_lasts,
    ),
    Claim(
        "pages",
        "Requests that fail after an update page somebody.",
        _MONITORING,
        "page",
        lambda saw: saw["arrived"],
    ),
    Claim(
        "crash-fails",
        "If the new container exits, the stack's update fails and the former configuration serves.",
        _UPDATES,
        "crash",
        _failed_and_former_serves,
    ),
    Claim(
        "rollback-ends",
        "After SageMaker rolled an update back, CloudFormation's rollback completes by itself.",
        _UPDATES,
        "crash",
        lambda saw: saw["stack_status"] == "UPDATE_ROLLBACK_COMPLETE",
    ),
    Claim(
        "alarm-fails",
        "If an alarm rolls an update back, the stack's update fails and the former configuration "
        "serves.",
        _UPDATES,
        "slow",
        _taken_back_fails,
    ),
    Claim(
        "former-configuration",
        "After a rolled-back deployment the serving configuration still exists.",
        _UPDATES,
        "slow",
        lambda saw: saw["after"]["configuration_exists"],
    ),
    Claim(
        "rolling-back",
        "A rolling update that fails is rolled back, also if the model's data and the role's rights "
        "have changed.",
        _UPDATES,
        "rolling",
        _taken_back_fails,
    ),
    Claim(
        "math-alarms",
        "An alarm of metric math rolls a deployment back.",
        _MONITORING,
        "rolling",
        _math_alarm_takes_back,
    ),
    Claim(
        "scaling-toggles",
        "Turning scaling off and on leaves the endpoint as it is.",
        _UPDATES,
        "scaling",
        _untouched,
    ),
    Claim(
        "capture",
        "Data capture takes effect on an endpoint that scales.",
        _UPDATES,
        "capture",
        _captures,
    ),
    Claim(
        "zone-dimension",
        "Enhanced metrics carry AvailabilityZone.",
        _MONITORING,
        "capture",
        _zone_dimension,
    ),
    Claim(
        "repin",
        "A pinned Hub commit can be updated, without a failed request.",
        _HUGGING_FACE,
        "repin",
        _repinned,
        "UPDATE_ROLLBACK_COMPLETE, and the former commit serves.",
    ),
    Claim(
        "former-files",
        "After the update the former commit's files are gone from the bucket.",
        _HUGGING_FACE,
        "repin",
        _old_files_gone,
        "files of both commits.",
    ),
    Claim(
        "renamed-served",
        "Callers of a renamed endpoint are served until the clean-up.",
        _UPDATES,
        "rename",
        _old_name_served,
        "AccessDeniedException or ValidationError for the old name while the stack is still "
        "UPDATE_IN_PROGRESS.",
    ),
    Claim(
        "new-name",
        "A renamed endpoint answers to its new name as soon as it is in service.",
        _UPDATES,
        "rename",
        _new_name_serves,
        "AccessDeniedException for the new name after DescribeEndpoint said InService.",
    ),
    Claim(
        "former-names",
        "The policy of an interface endpoint names what it served before its last change, without "
        "an outage.",
        _NETWORKS,
        "rename",
        _policy_keeps_former,
        "a policy with one of the two names, or AccessDeniedException during the update.",
    ),
    Claim(
        "removed",
        "Removing one endpoint leaves the other its rights.",
        _IN_YOUR_APP,
        "remove",
        _other_keeps_its_rights,
        "the other's next update rolls back, its serving check fails, or its callers get errors.",
    ),
    Claim(
        "shared-role",
        "Two stacks share a stated role, and deleting one takes nothing from the other.",
        "how-to/regulated-account.md",
        "share",
        _takes_nothing,
        "the second stack's CREATE_FAILED, or fewer policies on the role after its delete than "
        "before it.",
    ),
    Claim(
        "interfaces",
        "SageMaker's network interfaces still exist after the endpoint is deleted.",
        _UPDATES,
        "destroy",
        _interfaces_linger,
    ),
    Claim("delete", "The stack is deleted in one go.", _UPDATES, "destroy", _in_one_go),
    Claim(
        "nothing-left",
        "After the delete only log groups are left.",
        _UPDATES,
        "destroy",
        _only_log_groups_left,
    ),
)
