"""One function for each claim: does what its step saw confirm the claim?

A function has its claim's id as its name, takes what the step returned (`steps.py`), and returns
True, False, or None where this cannot tell. The order is that of claims.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from low_latency_endpoint.facts.canary_metrics import LONGEST_CONNECT_MS, NAMESPACE

Saw = Mapping[str, Any]
"""What a step has seen."""


def measurements(saw: Saw) -> dict[str, str | float]:
    """Return what the report of a run holds of a step: states, counts and times, and no names."""
    chosen = {name: saw[name] for name in ("stack_status", "cli", "within_minutes") if name in saw}
    for answer, count in saw.get("answers", {}).items():
        chosen[f"answers: {answer}"] = count
    for zone, reading in saw.get("canary", {}).items():
        chosen[f"{zone}: connect_ms"] = reading["connect_ms"]
        chosen[f"{zone}: answer_ms"] = reading["answer_ms"]
    return chosen


# deploy


def create(saw: Saw) -> bool | None:
    return bool(saw["stack_status"] == "CREATE_COMPLETE")


def fresh_roles(saw: Saw) -> bool | None:
    return not any(event["status"].endswith("_FAILED") for event in saw["events"])


def narrow_rights(saw: Saw) -> bool | None:
    """A first deployment that failed for another reason tells nothing about rights."""
    if create(saw):
        return True
    refused = ("AccessDenied", "not authorized", "assume", "403")
    return False if any(word in str(saw["events"]) for word in refused) else None


def lower_case_arns(saw: Saw) -> bool | None:
    return bool(saw["hub"]["serving"]["arn_is_lower_case"])


def two_endpoints(saw: Saw) -> bool | None:
    """A first deployment that failed for a quota or capacity tells nothing about two endpoints."""
    if not create(saw):
        no_capacity = ("limit", "quota", "capacity")
        reasons = " ".join(event["reason"] for event in saw["events"]).lower()
        return None if any(word in reasons for word in no_capacity) else False
    return _all(
        saw["after"]["status"] == "InService",
        saw["hub"]["serving"]["status"] == "InService",
        _serving_checks(saw, "CREATE_COMPLETE") == 2,
        *(_answered(answers) for answers in saw["answers_of"].values()),
    )


def hub_staged(saw: Saw) -> bool | None:
    hub = saw["hub"]
    return _all(
        hub["isolated"],
        hub["served"] == ["old"],
        hub["files"]["old"] > 0,
        _answered(saw["answers_of"]["hub"]),
    )


def warm_up(saw: Saw) -> bool | None:
    return bool(saw["warm_ups"][-1]["outcome"] == "met")


def verify(saw: Saw) -> bool | None:
    return "fail" not in saw["verify"].values()


def private_dns(saw: Saw) -> bool | None:
    zones = set(saw["probes"])
    answers = _zones_of_addresses(saw, "regional").values()
    return _all(*(bool(found) and found <= zones for found in answers))


def private_dns_by_zone(saw: Saw) -> bool | None:
    return _own_zone(saw, "regional")


def zonal_names(saw: Saw) -> bool | None:
    return _own_zone(saw, "zonal")


def tls(saw: Saw) -> bool | None:
    names = [*_names(saw, "regional"), *_names(saw, "zonal")]
    return _all(*("names" in name["tls"] for _, name in names))


def same_zone(saw: Saw) -> bool | None:
    """Unknown where an instance did not tell its addresses."""

    def stays(zone: str, served: Mapping[str, int]) -> bool | None:
        if not served or "unknown" in served:
            return None
        return set(served) == {zone}

    names = [*_names(saw, "regional"), *_names(saw, "zonal")]
    return _all(*(stays(zone, name["invoked"]["served_in"]) for zone, name in names))


def endpoint_policy(saw: Saw) -> bool | None:
    def refused(foreign: Mapping[str, Any]) -> bool | None:
        return None if "unavailable" in foreign else foreign["error"] == "AccessDeniedException"

    return _all(*(refused(probe["foreign"]) for probe in saw["probes"].values()))


def subnets_by_zone_id(saw: Saw) -> bool | None:
    def right(zone: str, probe: Mapping[str, Any]) -> bool:
        return bool(probe["subnet_zone_id"] == zone and probe["subnet_zone_name_as_output"])

    return _all(*(right(zone, probe) for zone, probe in saw["probes"].items()))


def dns_entries(saw: Saw) -> bool | None:
    """Whether the first entry is a name of the interface endpoint's that has no zone in it."""
    entries = saw["dns_entries"]
    if not entries:
        return None
    first = str(entries[0])
    return ".vpce." in first and not any(zone in first for zone in saw["zone_names"])


# traffic


def zone_paths(saw: Saw) -> bool | None:
    """Whether every run of the canary was answered, and connected as fast as its alarm expects."""
    readings = saw["canary"].values()
    return _all(*(not r["unreachable"] and r["connect_ms"] <= LONGEST_CONNECT_MS for r in readings))


def zone_names(saw: Saw) -> bool | None:
    return _all(*(not reading["out_of_zone"] for reading in saw["canary"].values()))


def fleet_series_at_create(saw: Saw) -> bool | None:
    series = saw["invocations"]
    return not series["new"] if series["whole"] else None


def alarms_have_data(saw: Saw) -> bool | None:
    """Of the default alarms only; those of a deployment's new fleet have data during one."""

    def is_default(definition: str) -> bool:
        return "EndpointConfigName" not in definition and NAMESPACE not in definition

    return _have_data(saw, is_default)


def percentile_ranks(saw: Saw) -> bool | None:
    return _have_data(saw, lambda definition: "PR(" in definition)


# update, after-update, page


def update(saw: Saw) -> bool | None:
    return saw["stack_status"] == "UPDATE_COMPLETE" and set(saw["answers"]) == {"ok"}


def fleets_add_up(saw: Saw) -> bool | None:
    """Whether some minute has more requests in all than to the new fleet, and none fewer."""
    whole = dict(saw["invocations"]["whole"])
    pairs = [(whole.get(time, 0), value) for time, value in saw["invocations"]["new"] if value]
    if not pairs:
        return None
    never_fewer = all(total >= new for total, new in pairs)
    return never_fewer and any(total > new for total, new in pairs)


def fleet_series_last(saw: Saw) -> bool | None:
    """Whether the new fleet's Invocations go on as long as the whole endpoint's.

    Zeros count as silence, and CloudWatch may be a minute or two late.
    """
    whole = [time for time, value in saw["invocations"]["whole"] if value]
    new = [time for time, value in saw["invocations"]["new"] if value]
    if saw["minutes"] < 5 or len(whole) < 5:
        return None
    return bool(new) and new[-1] >= whole[-3]


def pages(saw: Saw) -> bool | None:
    return bool(saw["arrived"])


# crash, slow, rolling


def crash_fails(saw: Saw) -> bool | None:
    """Whether the rollback itself completes is another claim."""
    rolled_back = str(saw["stack_status"]).startswith("UPDATE_ROLLBACK_")
    return rolled_back and _former_serves(saw)


def rollback_ends(saw: Saw) -> bool | None:
    return bool(saw["stack_status"] == "UPDATE_ROLLBACK_COMPLETE")


def alarm_fails(saw: Saw) -> bool | None:
    """An update that SageMaker did not roll back tells nothing about those that it does."""
    return crash_fails(saw) if _never_served(saw) else None


def former_configuration(saw: Saw) -> bool | None:
    return bool(saw["after"]["configuration_exists"])


def rolling_back(saw: Saw) -> bool | None:
    return alarm_fails(saw)


def math_alarms(saw: Saw) -> bool | None:
    """Only a deployment in which an alarm of metric math went off tells something about those."""

    def went_off(alarm: Mapping[str, Any]) -> bool:
        of_metric_math = "Metrics" in alarm["definition"]
        of_new_fleet = "EndpointConfigName" in str(alarm["definition"])
        alarmed = any("to ALARM" in entry["what"] for entry in alarm["history"])
        return of_metric_math and of_new_fleet and alarmed

    return _never_served(saw) if any(went_off(alarm) for alarm in saw["alarms"]) else None


# scaling, capture


def scaling_toggles(saw: Saw) -> bool | None:
    """Whether the endpoint was in service whenever it was looked at."""
    updates = (saw["off"], saw["on"])
    notes = [note["saw"] for update in updates for note in update["endpoint_timeline"]]
    statuses = {note["status"] for note in notes if note}
    completed = all(update["stack_status"] == "UPDATE_COMPLETE" for update in updates)
    return completed and statuses == {"InService"}


def capture(saw: Saw) -> bool | None:
    return bool(saw["after"]["capture"])


def zone_dimension(saw: Saw) -> bool | None:
    return any("AvailabilityZone" in metric["dimensions"] for metric in saw["metrics"])


# repin


def repin(saw: Saw) -> bool | None:
    if saw["stack_status"] != "UPDATE_COMPLETE":
        return False
    return _all(
        saw["hub"]["served"] == ["new"],
        saw["hub"]["files"]["new"] > 0,
        _serving_checks(saw, "UPDATE_COMPLETE") > 0,
        _answered(saw["answers"]),
    )


def former_files(saw: Saw) -> bool | None:
    """Only an update that completed removes them."""
    files = saw["hub"]["files"]
    return not files["old"] and files["new"] > 0 if repin(saw) else None


# rename


def renamed_served(saw: Saw) -> bool | None:
    """An update that failed has renamed nothing."""
    if saw["stack_status"] != "UPDATE_COMPLETE":
        return None
    return _all(*(call["answers"]["old"] == "ok" for call in _calls_while_updating(saw)))


def new_name(saw: Saw) -> bool | None:
    calls = [call for call in saw["calls"] if call.get("new_in_service")]
    return _all(*(call["answers"]["new"] == "ok" for call in calls))


def former_names(saw: Saw) -> bool | None:
    if saw["stack_status"] != "UPDATE_COMPLETE":
        return None
    calls = _calls_while_updating(saw)
    answers = [call["answers"]["old"] for call in calls]
    answers += [call["answers"]["new"] for call in calls if call["new_in_service"]]
    return _all(
        set(saw["policy_names"]) == {"old", "new"},
        *("AccessDenied" not in answer for answer in answers),
    )


# remove, share


def removed(saw: Saw) -> bool | None:
    removal, update = saw["removed"], saw["updated"]
    return _all(
        not saw["first_is_there"],
        *(part["stack_status"] == "UPDATE_COMPLETE" for part in (removal, update)),
        _serving_checks(update, "UPDATE_COMPLETE") == 1,
        update["after"]["status"] == "InService",
        *(_answered(part["answers"]) for part in (removal, update)),
    )


def shared_role(saw: Saw) -> bool | None:
    policies = saw["policies"]
    return _all(
        saw["made"] == "CREATE_COMPLETE",
        saw["deleted"] == "DELETE_COMPLETE",
        policies["with_both"] > policies["before"] > 0,
        policies["after"] == policies["before"],
        not saw["lost"],
        _answered(saw["answers"]),
    )


# destroy


def interfaces(saw: Saw) -> bool | None:
    """Whether interfaces of the model's security group were there once the endpoint was gone."""
    notes = [note["saw"] for note in saw["interface_timeline"]]
    if not any(note["interfaces"] for note in notes):
        return None
    return any(note["interfaces"] and not note["endpoint"] for note in notes)


def delete(saw: Saw) -> bool | None:
    return bool(saw["cli"] == "ok" and saw["stack_status"] == "DELETE_COMPLETE")


def nothing_left(saw: Saw) -> bool | None:
    """The stack under test retains the bucket of captured data, which does not count."""
    others = [resource for resource in saw["left"] if not resource.startswith("log group: ")]
    return all("-captured" in resource for resource in others)


# What several claims share


def _all(*answers: bool | None) -> bool | None:
    """False as soon as one is; None without answers, or when one is unknown."""
    if False in answers:
        return False
    return None if None in answers or not answers else True


def _names(saw: Saw, kind: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield each zone's answer about one name; nothing where names lead nowhere."""
    for zone, probe in saw["probes"].items():
        name = probe["names"][kind]
        if "unavailable" not in name and "dns" in name:
            yield zone, name


def _zones_of_addresses(saw: Saw, kind: str) -> dict[str, set[str]]:
    """Return, by the asking zone, the zones of a name's addresses; none where DNS had an error."""
    return {
        zone: set() if "error" in name["dns"] else {entry["in"] for entry in name["dns"]}
        for zone, name in _names(saw, kind)
    }


def _own_zone(saw: Saw, kind: str) -> bool | None:
    answers = _zones_of_addresses(saw, kind)
    return _all(*(found == {zone} for zone, found in answers.items()))


def _have_data(saw: Saw, is_meant: Callable[[str], bool]) -> bool | None:
    meant = [alarm for alarm in saw["alarms"] if is_meant(str(alarm["definition"]))]
    return _all(*(alarm["state"] != "INSUFFICIENT_DATA" for alarm in meant))


def _former_serves(saw: Saw) -> bool:
    after = saw["after"]
    return bool(
        after["status"] == "InService"
        and after["configuration_exists"]
        and after["configuration"] == saw["before"]["configuration"]
    )


def _never_served(saw: Saw) -> bool:
    """Whether only the former configuration was in service: SageMaker rolled the update back."""
    served = {note["saw"]["configuration"] for note in saw["endpoint_timeline"]}
    return served == {saw["before"]["configuration"]}


def _calls_while_updating(saw: Saw) -> list[Mapping[str, Any]]:
    """Return the rounds of calls after which CloudFormation's clean-up had not begun yet."""
    return [call for call in saw["calls"] if call.get("stack") == "UPDATE_IN_PROGRESS"]


def _answered(answers: Mapping[str, int]) -> bool | None:
    """Whether every request was answered; None without any."""
    return set(answers) == {"ok"} if answers else None


def _serving_checks(saw: Saw, status: str) -> int:
    """Count the endpoints whose serving check ended with a status."""
    checks = [event for event in saw["events"] if event["type"] == "Custom::EndpointServingCheck"]
    return len({event["resource"] for event in checks if event["status"] == status})
