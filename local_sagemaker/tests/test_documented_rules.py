"""The rules of `documented_rules.yaml`: each has AWS's words, and a request that breaks it."""

from __future__ import annotations

from typing import Any

from documented_sentences import sentences_of
from test_documented_limits import BASES, JUDGED, changed

from local_sagemaker.documented_rules import broken_rules, documented_rules

RULES = [
    (service, operation, rule)
    for service, operations in documented_rules().items()
    for operation, rules in operations.items()
    for rule in rules
]


def test_a_rule_has_the_words_of_its_page():
    for service, operation, rule in RULES:
        if not rule["says"].startswith("https://docs.aws.amazon.com/"):
            said = [sentence.says for sentence in sentences_of(service, operation)]
            assert rule["says"] in said, rule


def test_each_rule_is_broken_by_a_request_of_a_row():
    broken = []
    for row in JUDGED:
        base: dict[str, Any] = BASES[row["base"]]
        request = changed(base["request"], row["change"])
        broken += [
            rule["at"] + rule["says"]
            for rule in broken_rules(base["service"], base["operation"], request)
        ]
    assert [rule for *_, rule in RULES if rule["at"] + rule["says"] not in broken] == []
