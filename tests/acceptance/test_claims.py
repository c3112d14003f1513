"""What a run's observations say of each claim, and the page that lists the claims."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from docs.make_claims_page import claims_table
from docs.make_settings_tables import rewrite

from tools.acceptance import judgements
from tools.acceptance.claims import CLAIMS, Claim
from tools.acceptance.steps import STEPS
from tools.acceptance.world import ROOT

PAGE = ROOT / "docs" / "reference" / "seen-on-aws.md"
BY_ID = {claim.id: claim for claim in CLAIMS}
VERDICTS = {"seen": True, "refuted": False, "open": None}


def name(
    zone: str = "z1", *, dns: Any = None, served: Any = None, tls: Any = None
) -> dict[str, Any]:
    """What a zone's probe tells of a name."""
    return {
        "dns": [{"address": "<ipv4-1>", "in": zone}] if dns is None else dns,
        "tls": {"names": ["x"]} if tls is None else tls,
        "invoked": {"served_in": {zone: 20} if served is None else served, "errors": 0},
    }


def canary(**of_one: float) -> dict[str, Any]:
    """What the canaries of two zones saw: all is well, but for this in one of them."""
    well = {
        "runs": 15,
        "unreachable": 0.0,
        "out_of_zone": 0.0,
        "connect_ms": 0.8,
        "answer_ms": 50.0,
    }
    return {"canary": {"z1": well, "z2": {**well, **of_one}}}


def zones(**changed: Any) -> dict[str, Any]:
    """Two zones' probes in which all is well, but for the first zone's changes."""
    found: dict[str, Any] = {
        zone: {
            "names": {"regional": name(zone), "zonal": name(zone)},
            "foreign": {"error": "AccessDeniedException", "errors": 1},
            "subnet_zone_id": zone,
            "subnet_zone_name_as_output": True,
        }
        for zone in ("z1", "z2")
    }
    names = found["z1"]["names"]
    names |= {key: changed.pop(key) for key in ("regional", "zonal") if key in changed}
    found["z1"] |= changed
    return {"probes": found}


GONE = {"unavailable": "not available here"}
ELSEWHERE = [{"address": "<ipv4-9>", "in": "elsewhere"}]
OTHER = [{"address": "<ipv4-9>", "in": "z2"}]
SERVING = {
    "status": "InService",
    "configuration": "<c-1>",
    "configuration_exists": True,
    "capture": True,
    "arn_is_lower_case": True,
}
TAKEN_BACK = {
    "stack_status": "UPDATE_ROLLBACK_COMPLETE",
    "before": SERVING,
    "after": SERVING,
    "endpoint_timeline": [{"saw": SERVING}],
}
OTHER_SERVED = {"saw": {**SERVING, "configuration": "<c-2>"}}
SERVED = {**TAKEN_BACK, "endpoint_timeline": [{"saw": SERVING}, OTHER_SERVED, {"saw": SERVING}]}
MINUTES = [f"2026-12-01T10:{minute:02}:00Z" for minute in range(20)]


def checked(status: str, *endpoints: str) -> list[dict[str, str]]:
    """Events of these endpoints' serving checks."""
    kind = "Custom::EndpointServingCheck"
    return [
        {"resource": f"{each}ServingCheck", "type": kind, "status": status, "reason": ""}
        for each in endpoints
    ]


def created(**changed: Any) -> dict[str, Any]:
    """A first deployment after which both endpoints serve."""
    return {
        "stack_status": "CREATE_COMPLETE",
        "after": SERVING,
        "events": checked("CREATE_COMPLETE", "First", "Hub"),
        "answers_of": {"first": {"ok": 9}, "hub": {"ok": 9}},
        "hub": {
            "serving": SERVING,
            "isolated": True,
            "served": ["old"],
            "files": {"old": 3, "new": 0},
        },
        **changed,
    }


def failed(reason: str = "") -> dict[str, Any]:
    """A first deployment that failed."""
    event = {"status": "CREATE_FAILED", "reason": reason}
    return {"stack_status": "ROLLBACK_COMPLETE", "events": [event]}


def hub(saw: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The same, with other facts of the Hub endpoint."""
    return {**saw, "hub": {**saw["hub"], **changed}}


def updated(*endpoints: str, **changed: Any) -> dict[str, Any]:
    """An update that went well, with these endpoints' serving checks."""
    return {
        "stack_status": "UPDATE_COMPLETE",
        "after": SERVING,
        "answers": {"ok": 9},
        "events": checked("UPDATE_COMPLETE", *endpoints),
        **changed,
    }


REPINNED = {**updated("Hub"), "hub": {"served": ["new"], "files": {"old": 0, "new": 3}}}
BACK = {"stack_status": "UPDATE_ROLLBACK_COMPLETE"}


def round_(stack: str, old: str, new: str, new_in_service: bool = False) -> dict[str, Any]:
    """One round of calls to both names."""
    return {
        "after_seconds": 0,
        "stack": stack,
        "answers": {"old": old, "new": new},
        "new_in_service": new_in_service,
    }


def renamed(*rounds: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A rename with these rounds of calls beside those that any has."""
    return {
        "stack_status": "UPDATE_COMPLETE",
        "policy_names": ["old", "new"],
        "calls": [
            round_("CREATE_COMPLETE", "ok", "AccessDeniedException"),
            round_("UPDATE_IN_PROGRESS", "ok", "AccessDeniedException"),
            round_("UPDATE_IN_PROGRESS", "ok", "ok", True),
            *rounds,
            {"not_asked": "ReadTimeoutError"},
            round_("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "ValidationError", "ok", True),
        ],
        **changed,
    }


DENIED = round_("UPDATE_IN_PROGRESS", "AccessDeniedException", "AccessDeniedException")
NEW_DENIED = round_("UPDATE_IN_PROGRESS", "ok", "AccessDeniedException", True)
FORMER_GONE = round_("UPDATE_IN_PROGRESS", "ValidationError", "ok", True)


def removed(**changed: Any) -> dict[str, Any]:
    """A removal, and an update of the other endpoint after it."""
    return {"removed": updated(), "updated": updated("Hub"), "first_is_there": False, **changed}


def shared(**changed: Any) -> dict[str, Any]:
    """A second stack on the role that came and went."""
    return {
        "made": "CREATE_COMPLETE",
        "deleted": "DELETE_COMPLETE",
        "policies": {"before": 4, "with_both": 8, "after": 4},
        "lost": [],
        "answers": {"ok": 9},
        **changed,
    }


MATH = {
    "definition": {"Metrics": [{"EndpointConfigName": 1}]},
    "history": [{"what": "Alarm updated from OK to ALARM"}],
}


def series(whole: float, new: list[float]) -> dict[str, Any]:
    return {"whole": [(t, whole) for t in MINUTES], "new": list(zip(MINUTES, new, strict=False))}


def alarms(**definitions: str) -> dict[str, Any]:
    """Alarms by their states."""
    found = [{"state": each, "definition": of} for each, of in definitions.items()]
    return {"alarms": [{**each, "history": []} for each in found]}


def entries(*names: str) -> dict[str, Any]:
    """An interface endpoint's DNS entries, in two zones."""
    return {"dns_entries": list(names), "zone_names": ["us-east-1a", "us-east-1b"]}


def note(endpoint: bool, *interfaces: str) -> dict[str, Any]:
    return {"after_seconds": 0, "saw": {"endpoint": endpoint, "interfaces": list(interfaces)}}


def timeline(*statuses: str) -> dict[str, Any]:
    return {
        "stack_status": "UPDATE_COMPLETE",
        "endpoint_timeline": [{"saw": {"status": each}} for each in statuses],
    }


@pytest.mark.parametrize(
    ("claim", "verdict", "saw"),
    [
        ("create", "seen", {"stack_status": "CREATE_COMPLETE"}),
        ("create", "refuted", {"stack_status": "ROLLBACK_COMPLETE"}),
        ("lower-case-arns", "seen", created()),
        ("lower-case-arns", "refuted", created(hub={"serving": {"arn_is_lower_case": False}})),
        ("lower-case-arns", "open", failed()),
        ("fresh-roles", "seen", {"events": [{"status": "CREATE_COMPLETE"}]}),
        ("fresh-roles", "refuted", {"events": [{"status": "CREATE_FAILED"}]}),
        ("narrow-rights", "seen", {"stack_status": "CREATE_COMPLETE"}),
        ("narrow-rights", "refuted", failed("The role is not authorized to perform: ec2:...")),
        ("narrow-rights", "open", failed("The account-level service limit ...")),
        ("two-endpoints", "seen", created()),
        ("two-endpoints", "refuted", failed("Policy describe already exists on role x.")),
        ("two-endpoints", "open", failed("The account-level service limit ... is 0 Instances")),
        ("two-endpoints", "refuted", created(events=checked("CREATE_COMPLETE", "First"))),
        ("two-endpoints", "refuted", created(answers_of={"first": {"ok": 1}, "hub": {"X": 1}})),
        ("two-endpoints", "open", created(answers_of={"first": {"ok": 1}, "hub": {}})),
        ("two-endpoints", "refuted", hub(created(), serving={**SERVING, "status": "Failed"})),
        ("hub-staged", "seen", created()),
        ("hub-staged", "refuted", hub(created(), isolated=False)),
        ("hub-staged", "refuted", hub(created(), files={"old": 0, "new": 0})),
        ("repin", "seen", REPINNED),
        ("repin", "refuted", {**REPINNED, **BACK}),
        ("repin", "refuted", {**REPINNED, "answers": {"ok": 9, "ModelError": 1}}),
        ("repin", "refuted", hub(REPINNED, served=["old"])),
        ("repin", "refuted", {**REPINNED, "events": []}),
        ("former-files", "seen", REPINNED),
        ("former-files", "refuted", hub(REPINNED, files={"old": 1, "new": 3})),
        ("former-files", "open", {**REPINNED, **BACK}),
        ("renamed-served", "seen", renamed()),
        ("renamed-served", "refuted", renamed(DENIED)),
        ("renamed-served", "refuted", renamed(FORMER_GONE)),
        ("renamed-served", "open", renamed(DENIED, **BACK)),
        ("renamed-served", "open", renamed(calls=[round_("UPDATE_COMPLETE", "ok", "ok")])),
        ("new-name", "seen", renamed()),
        ("new-name", "refuted", renamed(NEW_DENIED)),
        ("new-name", "open", renamed(calls=[DENIED])),
        ("former-names", "seen", renamed()),
        ("former-names", "refuted", renamed(policy_names=["new"])),
        ("former-names", "refuted", renamed(DENIED)),
        ("former-names", "refuted", renamed(NEW_DENIED)),
        ("former-names", "open", renamed(**BACK)),
        ("removed", "seen", removed()),
        ("removed", "refuted", removed(first_is_there=True)),
        ("removed", "refuted", removed(removed=updated(**BACK))),
        ("removed", "refuted", removed(updated=updated("Hub", **BACK))),
        ("removed", "refuted", removed(updated=updated())),
        ("removed", "refuted", removed(updated=updated("Hub", answers={"ok": 1, "X": 1}))),
        ("removed", "refuted", removed(removed=updated(answers={"AccessDeniedException": 1}))),
        ("shared-role", "seen", shared()),
        ("shared-role", "refuted", shared(made="ROLLBACK_COMPLETE")),
        ("shared-role", "refuted", shared(deleted="DELETE_FAILED")),
        ("shared-role", "refuted", shared(policies={"before": 4, "with_both": 8, "after": 3})),
        ("shared-role", "refuted", shared(policies={"before": 4, "with_both": 4, "after": 4})),
        ("shared-role", "refuted", shared(lost=["<policy-1>"])),
        ("shared-role", "refuted", shared(answers={"ok": 9, "ModelError": 1})),
        ("warm-up", "seen", {"warm_ups": [{"outcome": "missed"}, {"outcome": "met"}]}),
        ("warm-up", "refuted", {"warm_ups": [{"outcome": "missed"}]}),
        ("warm-up", "open", {"warm_ups": []}),
        ("verify", "seen", {"verify": {"LLV101": "pass", "LLV301": "unknown"}}),
        ("verify", "refuted", {"verify": {"LLV101": "fail"}}),
        ("private-dns", "seen", zones(regional=name(dns=OTHER))),
        ("private-dns", "refuted", zones(regional=name(dns=ELSEWHERE))),
        ("private-dns", "refuted", zones(regional=name(dns={"error": "gaierror"}))),
        ("private-dns-by-zone", "seen", zones()),
        ("private-dns-by-zone", "refuted", zones(regional=name(dns=OTHER))),
        ("zonal-names", "seen", zones()),
        ("zonal-names", "refuted", zones(zonal=name(dns=OTHER))),
        ("tls", "seen", zones()),
        ("tls", "refuted", zones(zonal=name(tls={"error": "SSLCertVerificationError"}))),
        ("same-zone", "seen", zones()),
        ("same-zone", "refuted", zones(zonal=name(served={"z1": 15, "z2": 5}))),
        ("same-zone", "open", zones(zonal=name(served={"unknown": 20}))),
        ("zone-paths", "seen", canary()),
        ("zone-paths", "refuted", canary(connect_ms=21.0)),
        ("zone-paths", "refuted", canary(unreachable=1.0)),
        ("zone-paths", "open", {"canary": {}}),
        ("zone-names", "seen", canary()),
        ("zone-names", "refuted", canary(out_of_zone=7.0)),
        ("zone-names", "open", {"canary": {}}),
        ("endpoint-policy", "seen", zones()),
        ("endpoint-policy", "refuted", zones(foreign={"error": "ValidationError"})),
        ("endpoint-policy", "open", zones(foreign=GONE)),
        ("subnets-by-zone-id", "seen", zones()),
        ("subnets-by-zone-id", "refuted", zones(subnet_zone_id="z9")),
        ("subnets-by-zone-id", "refuted", zones(subnet_zone_name_as_output=False)),
        ("dns-entries", "seen", entries("vpce-1.runtime.vpce.amazonaws.com", "x")),
        ("dns-entries", "refuted", entries("vpce-1-us-east-1a.runtime.vpce.amazonaws.com")),
        ("dns-entries", "open", entries()),
        ("fleet-series-at-create", "seen", {"invocations": series(9, [])}),
        ("fleet-series-at-create", "refuted", {"invocations": series(9, [0])}),
        ("fleet-series-at-create", "open", {"invocations": {"whole": [], "new": []}}),
        (
            "alarms-have-data",
            "seen",
            alarms(OK="ModelLatency", INSUFFICIENT_DATA="EndpointConfigName"),
        ),
        (
            "alarms-have-data",
            "refuted",
            alarms(OK="ModelLatency", INSUFFICIENT_DATA="ModelLatency"),
        ),
        ("percentile-ranks", "seen", alarms(OK="PR(160000:)")),
        ("percentile-ranks", "refuted", alarms(INSUFFICIENT_DATA="PR(160000:)")),
        ("percentile-ranks", "open", alarms(OK="ModelLatency")),
        ("update", "seen", {"stack_status": "UPDATE_COMPLETE", "answers": {"ok": 9}}),
        ("update", "refuted", {"stack_status": "UPDATE_COMPLETE", "answers": {"ok": 9, "X": 1}}),
        ("fleets-add-up", "seen", {"invocations": series(10, [0, 5, 10])}),
        ("fleets-add-up", "refuted", {"invocations": series(5, [5, 5])}),
        ("fleets-add-up", "refuted", {"invocations": series(10, [5, 11])}),
        ("fleets-add-up", "open", {"invocations": series(10, [])}),
        ("fleet-series-last", "seen", {"minutes": 20, "invocations": series(9, [9] * 19)}),
        ("fleet-series-last", "refuted", {"minutes": 20, "invocations": series(9, [9] * 9)}),
        ("fleet-series-last", "refuted", {"minutes": 20, "invocations": series(9, [])}),
        ("fleet-series-last", "open", {"minutes": 2, "invocations": series(9, [9] * 20)}),
        ("pages", "seen", {"arrived": True}),
        ("pages", "refuted", {"arrived": False}),
        ("crash-fails", "seen", TAKEN_BACK),
        ("crash-fails", "seen", {**TAKEN_BACK, "stack_status": "UPDATE_ROLLBACK_FAILED"}),
        ("crash-fails", "refuted", {**TAKEN_BACK, "stack_status": "UPDATE_COMPLETE"}),
        ("crash-fails", "refuted", {**TAKEN_BACK, "after": {**SERVING, "configuration": "<c-2>"}}),
        ("alarm-fails", "seen", TAKEN_BACK),
        ("alarm-fails", "refuted", {**TAKEN_BACK, "after": {**SERVING, "status": "Failed"}}),
        ("alarm-fails", "refuted", {**TAKEN_BACK, "stack_status": "UPDATE_COMPLETE"}),
        ("alarm-fails", "open", SERVED),
        ("former-configuration", "seen", TAKEN_BACK),
        ("former-configuration", "refuted", {"after": {**SERVING, "configuration_exists": False}}),
        ("rolling-back", "seen", TAKEN_BACK),
        ("rolling-back", "refuted", {**TAKEN_BACK, "after": {**SERVING, "status": "Updating"}}),
        ("rolling-back", "open", SERVED),
        ("rollback-ends", "seen", TAKEN_BACK),
        ("rollback-ends", "refuted", {**TAKEN_BACK, "stack_status": "UPDATE_ROLLBACK_FAILED"}),
        ("math-alarms", "seen", {**TAKEN_BACK, "alarms": [MATH]}),
        ("math-alarms", "refuted", {**SERVED, "alarms": [MATH]}),
        ("math-alarms", "open", {**TAKEN_BACK, "alarms": [{**MATH, "history": []}]}),
        ("scaling-toggles", "seen", {"off": timeline("InService"), "on": timeline("InService")}),
        ("scaling-toggles", "refuted", {"off": timeline("Updating"), "on": timeline("InService")}),
        ("capture", "seen", {"after": SERVING}),
        ("capture", "refuted", {"after": {**SERVING, "capture": False}}),
        ("zone-dimension", "seen", {"metrics": [{"dimensions": {"AvailabilityZone": "x"}}]}),
        ("zone-dimension", "refuted", {"metrics": [{"dimensions": {}}]}),
        ("interfaces", "seen", {"interface_timeline": [note(True, "e"), note(False, "e")]}),
        ("interfaces", "refuted", {"interface_timeline": [note(True, "e"), note(False)]}),
        ("interfaces", "open", {"interface_timeline": [note(True), note(False)]}),
        ("delete", "seen", {"cli": "ok", "stack_status": "DELETE_COMPLETE"}),
        ("delete", "refuted", {"cli": "failed", "stack_status": "DELETE_FAILED"}),
        ("nothing-left", "seen", {"left": ["log group: /aws/sagemaker/Endpoints/x"]}),
        ("nothing-left", "seen", {"left": ["bucket: llee-accept-0a1b2c3d-captured1b2c"]}),
        ("nothing-left", "refuted", {"left": ["subnet: <subnet-1>"]}),
    ],
)
def test_what_was_seen_decides(claim: str, verdict: str, saw: dict[str, Any]) -> None:
    assert BY_ID[claim].holds(saw) is VERDICTS[verdict]


@pytest.mark.parametrize("claim", CLAIMS, ids=BY_ID)
def test_a_step_that_saw_nothing_decides_nothing(claim: Claim) -> None:
    assert claim.holds({}) is None
    for kind in ("regional", "zonal"):
        nowhere = zones(**{kind: GONE})
        assert claim.step != "deploy" or claim.holds(nowhere) is not False


def test_a_first_deployment_that_failed_refutes_all_the_same() -> None:
    for claim in ("create", "fresh-roles", "two-endpoints"):
        assert BY_ID[claim].holds(failed()) is False
    assert BY_ID["warm-up"].holds(failed()) is None


def test_every_claim_has_a_judgement_a_step_and_a_page() -> None:
    assert len(BY_ID) == len(CLAIMS)
    for claim in CLAIMS:
        assert callable(getattr(judgements, claim.id.replace("-", "_")))
        assert claim.step in {step.name for step in STEPS}
        assert (ROOT / claim.source).is_file()


def test_claims_stand_in_the_order_of_their_steps() -> None:
    order = [step.name for step in STEPS]
    assert [claim.step for claim in CLAIMS] == sorted(
        (claim.step for claim in CLAIMS), key=order.index
    )


def test_the_page_in_docs_is_in_step(tmp_path: Path) -> None:
    copy = tmp_path / PAGE.name
    copy.write_bytes(PAGE.read_bytes())
    rewrite(copy, claims_table())
    assert copy.read_text("utf-8") == PAGE.read_text("utf-8"), "run: make docs"


def test_the_page_has_a_row_for_each_claim_and_a_link_for_each_recording() -> None:
    rows = re.findall(r"^\| `(.+?)` \|(.*)$", claims_table(), re.M)
    assert [claim for claim, _ in rows] == [claim.id for claim in CLAIMS]
    for claim, cells in rows:
        recordings = set(BY_ID[claim].agrees.split()) - {"detail"}
        assert set(re.findall(r"\[(R\d+)\]\(https://", cells)) == recordings


def test_the_page_says_that_nobody_has_seen_any_as_long_as_nobody_has() -> None:
    unseen = not any(claim.seen for claim in CLAIMS)
    assert ("None of the claims below has been verified" in PAGE.read_text("utf-8")) == unseen


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_first_page_states_how_many_claims_nobody_has_seen(page: str) -> None:
    text = " ".join((ROOT / page).read_text("utf-8").split())
    stated = re.findall(r"[Nn]one of (?:the )?(\d+) claims", text)
    unseen = not any(claim.seen for claim in CLAIMS)
    assert stated == ([str(len(CLAIMS))] if unseen else [])


def test_the_readme_says_that_nobody_has_seen_it_as_long_as_nobody_has() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "(docs/reference/seen-on-aws.md)" in readme
    unseen = not any(claim.seen for claim in CLAIMS)
    assert ("It has not been run in a real AWS account yet" in readme) == unseen


def test_the_report_of_a_run_has_states_and_counts_and_no_names() -> None:
    saw = {**updated(), **canary(), "cli": "ok", "pages": ["arn:aws:sns:us-east-1:123456789012:x"]}
    assert judgements.measurements(saw) == {
        "stack_status": "UPDATE_COMPLETE",
        "cli": "ok",
        "answers: ok": 9,
        "z1: connect_ms": 0.8,
        "z1: answer_ms": 50.0,
        "z2: connect_ms": 0.8,
        "z2: answer_ms": 50.0,
    }
