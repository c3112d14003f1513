"""Each of AWS's sentences leads to changes that follow from it, and to a log only where one can be."""

from __future__ import annotations

import pytest

from low_latency_endpoint.facts.failure_reasons import FAILURE_KINDS, read_failure
from tests.facts.test_failure_reasons import SENTENCES

from .conftest import Run
from .faults.endpoints import not_started
from .scenarios import Scenario
from .test_faults import SCHEMA, endpoint_schema, has_key

_LOGGED = ("ping", "start", "service")


@pytest.mark.parametrize("kind", FAILURE_KINDS, ids=lambda kind: kind.name)
def test_settings_are_keys_of_the_settings_file(kind: object) -> None:
    for setting in kind.settings:  # type: ignore[attr-defined]
        root = SCHEMA if "stack-level" in setting.why else endpoint_schema()
        assert has_key(setting.key, root), setting.key


@pytest.mark.parametrize(("sentence", "name"), SENTENCES.items(), ids=SENTENCES.values())
def test_what_follows_from_a_sentence(sentence: str, name: str, run: Run) -> None:
    (update,) = run(Scenario(failure=sentence)).findings
    failed = run(not_started(status="Failed", failure=sentence, image="own:1")).findings
    reason = read_failure(sentence)
    assert [finding.id for finding in failed] == ["LLD701"], "no other guess beside AWS's reason"
    for finding in (update, *failed):
        assert sentence in finding.evidence[0].text
        assert reason.fix in finding.besides
        follows = {setting.key for setting in reason.settings(updating=finding is update)}
        assert {each.key for each in finding.changes if not each.command} == follows
    commands = [each.key for each in update.changes if each.command]
    assert bool(commands) == (name in _LOGGED)
    assert not any(each.command for each in failed[0].changes), "there is no log group"


def test_a_failure_without_a_reason_promises_nothing(run: Run) -> None:
    (finding,) = run(Scenario(status="UpdateRollbackFailed")).findings
    assert finding.id == "LLD701"
    assert [each.key for each in finding.changes if not each.command] == []
    assert finding.besides == "AWS gives no reason."
