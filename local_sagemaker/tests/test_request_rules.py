"""The rules of `request_rules.yaml`: each has AWS's words, and a request that breaks it."""

from __future__ import annotations

import contextlib

from documented_sentences import all_sentences
from test_documented_limits import BASES, JUDGED, changed

from local_sagemaker import protocols, request_rules

RULES = [rule for shape in request_rules.RULES.values() for rule in shape.get("rules", ())]


def test_a_rule_has_the_words_of_its_page():
    said = {sentence.says for sentence in all_sentences()}
    for rule in RULES:
        assert rule["says"].startswith("https://docs.aws.amazon.com/") or rule["says"] in said, rule


def test_each_rule_is_broken_by_a_request_of_a_row(monkeypatch):
    broken = []
    find = request_rules.broken_rules

    def find_and_keep(name, value):
        rules = list(find(name, value))
        broken.extend(rules)
        return iter(rules)

    monkeypatch.setattr(request_rules, "broken_rules", find_and_keep)
    for row in JUDGED:
        base = BASES[row["base"]]
        with contextlib.suppress(protocols.ServiceError):
            protocols.check(
                base["service"], base["operation"], changed(base["request"], row["change"])
            )
    sentences = {(rule["at"], rule["says"]) for rule in broken}
    assert [rule for rule in RULES if (rule["at"], rule["says"]) not in sentences] == []
