"""Every rule that a settings file can break: the code it gives and the line it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import low_latency_endpoint
from low_latency_endpoint import LatencyTarget
from low_latency_endpoint.errors import BrokenRule
from low_latency_endpoint.settings import parse_settings
from tests.contradictions import contradicts_itself
from tests.settings_files import mistakes, problems

SHARED = {"client_zones": "{ids: [use1-az1, use1-az2]}"}
ENDPOINT = {
    "containers": "[{image: {uri: example/image:1}}]",
    "instance_type": "ml.m5.large",
    "latency": "{p99: 200ms}",
}
VPC = "vpc-0123456789abcdef0"
SUBNETS = "{use1-az1: subnet-0123456789abcdef0, use1-az2: subnet-0123456789abcdef1}"
#: Calls, keywords with values, and our classes: what only an app says.
OF_PYTHON = re.compile(
    rf"\b(?:{'|'.join(low_latency_endpoint.__all__)})[(.][a-z(]|\bof_(?:ids|names|vpc)\b"
    r"|\b[a-z_]+=[A-Za-z\"'\[]|\b\w+\.[a-z_]+\("
)
Lines = dict[str, str | None]
TABLE = Path(__file__).with_name("mistakes.yaml").read_text("utf-8")


def as_written(value: yaml.Node) -> str | None:
    """A setting in the words of the table, on one line."""
    text = TABLE[value.start_mark.index : value.end_mark.index]
    return None if text == "~" else re.sub(r"\n\s*", " ", re.sub(r"^&\w+ ", "", text))


def rows(part: str) -> list[tuple[str, Lines]]:
    """Code and settings of all rows of a part of the table."""
    [codes] = [codes for name, codes in yaml.compose(TABLE).value if name.value == part]
    return [
        (code.value, {name.value: as_written(value) for name, value in case.value})
        for code, cases in codes.value
        for case in (cases.value if isinstance(cases, yaml.SequenceNode) else [cases])
    ]


def text_of(shared: Lines, endpoint: Lines) -> str:
    """A settings file with one setting per line; ``None`` leaves a line out."""
    lines = [f"{key}: {value}" for key, value in {**SHARED, **shared}.items() if value is not None]
    if "endpoints" not in shared:
        lines += ["endpoints:", "  sentiment:"]
        lines += [
            f"    {key}: {value}"
            for key, value in {**ENDPOINT, **endpoint}.items()
            if value is not None
        ]
    return "\n".join(lines) + "\n"


def line_of(text: str, key: str) -> int:
    """The line on which a key stands, from 1."""
    return next(
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip().startswith(f"{key}:")
    )


def check(text: str, code: str, settings: Lines, above: str) -> None:
    """There is this mistake on the line of the first setting, or of what lacks it."""
    if code == "none":
        parse_settings(text)
        return
    key = next(iter(settings))
    where = above if settings[key] is None else key
    found = mistakes(text)
    line = line_of(text, where) if where else 1
    assert [(at, error.code) for at, error in found] == [(line, code)]
    for _, error in found:
        said = [error.what, error.allowed, error.fix]
        assert not [part for part in said if OF_PYTHON.search(part)], "a file has no Python"


def test_what_is_no_number_is_told_with_a_number() -> None:
    throughput = "{peak_tps: 1k, tps_per_instance: 200}"
    [(_, error)] = mistakes(text_of({}, {"throughput": throughput}))
    assert (error.what, error.got) == (
        "the peak requests per second is no number",
        '"1k", which is text',
    )
    assert error.allowed.startswith("a number, such as 1000")


def test_what_is_meant_stands_before_a_long_list_of_what_could_be() -> None:
    [(_, error)] = mistakes(text_of({}, {"laency": "{p99: 1s}"}))
    assert str(error).index("Did you mean latency?") < str(error).index("allowed:")


def test_no_rule_fails_where_a_deployment_says_nothing() -> None:
    variants = "{b: {weight: 1}}"
    for deployment in ("{}", "{canary: {}, rolling: {}}", "{maximum_execution: 1h}"):
        text = text_of({}, {"deployment": deployment, "variants": variants})
        assert problems(text) == [(line_of(text, "deployment"), "LLE927")]


def test_a_rule_that_fails_is_our_bug_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a rule is no mistake of whoever wrote the file."""

    def _rules(self: object) -> None:
        raise ValueError("not enough values to unpack")

    monkeypatch.setattr(LatencyTarget, "_rules", _rules)
    with pytest.raises(BrokenRule, match=r"its rule LatencyTarget\._rules ended with ValueError"):
        parse_settings(text_of({}, {}))
    with pytest.raises(BrokenRule, match="not a mistake of yours"):
        LatencyTarget(p99="1s")


@pytest.mark.parametrize(("code", "shared"), rows("shared"))
def test_shared_settings(code: str, shared: Lines) -> None:
    check(text_of(shared, {}), code, shared, "")


def environment(*pairs: str) -> Lines:
    return {"containers": f"[{{image: {{uri: a/b:1}}, environment: {{{', '.join(pairs)}}}}}]"}


@pytest.mark.parametrize(
    ("code", "endpoint"),
    [
        *rows("endpoint"),
        ("LLE305", environment(*(f"K{number}: v" for number in range(101)))),
        ("LLE307", environment("A: " + "v" * 1025)),
        ("LLE308", environment(*(f"K{number}: {'v' * 1000}" for number in range(33)))),
        ("LLE509", {"tags": f"{{{', '.join(f'k{number}: v' for number in range(51))}}}"}),
        ("LLE908", {"startup_health_check_timeout": f"{'9' * 400}h"}),
    ],
)
def test_settings_of_an_endpoint(code: str, endpoint: Lines) -> None:
    check(text_of({}, endpoint), code, endpoint, "sentiment")


@pytest.mark.parametrize(
    "tags", ["{'${Token[TOKEN.12]}': a}", "{'${Token[TOKEN.12]}': a, '${Token[TOKEN.12]}': a}"]
)
def test_a_token_in_a_file_is_shown_as_it_stands_there(tags: str) -> None:
    """Whoever looks for it in the file must find it: what it stands for, nobody asks here."""
    for _, error in mistakes(text_of({"tags": tags}, {})):
        assert "${Token[TOKEN.12]}" in error.got
        assert error.where == "tags.${Token[TOKEN.12]}"


def test_a_bad_endpoint_key() -> None:
    text = text_of({}, {}).replace("sentiment:", "senti_ment:")
    assert problems(text) == [(3, "LLE915")]


def test_the_same_endpoint_name_twice() -> None:
    endpoint = (
        "{containers: [{image: {uri: a/b:1}}], instance_type: ml.m5.large, "
        "latency: {p99: 1s}, endpoint_name: same}"
    )
    text = f"client_zones: {SHARED['client_zones']}\nendpoints:\n  a: {endpoint}\n  b: {endpoint}\n"
    assert problems(text) == [(4, "LLE931")]


@pytest.mark.parametrize(
    ("shared", "endpoint", "fix"),
    [
        ({}, {"alarm_topic_arn": "a"}, "It belongs at the top level."),
        ({"endpoint_name": "fraud"}, {}, "It belongs under endpoints.<name>."),
        ({}, {"peak_tps": "4"}, "It belongs under endpoints.<name>.throughput."),
        ({}, {"name": "fraud"}, "Did you mean variant_name or endpoint_name?"),
        ({}, {"containers": "{image: {uri: a/b:1}}"}, "Write a list, even of one, such as [{"),
        ({"region": "us-east1"}, {}, "Write a region's code such as us-east-1."),
        ({"alarm_topic_arn": "on-call"}, {}, "Write an ARN such as arn:aws:sns:"),
        ({}, {"routing": "LEAST_OUTSTANDING_REQUESTS"}, "Did you mean least_outstanding_requests?"),
    ],
)
def test_the_fix_says_where_or_what(shared: Lines, endpoint: Lines, fix: str) -> None:
    [(_, error)] = mistakes(text_of(shared, endpoint))
    assert error.fix.startswith(fix)


def test_what_only_the_plan_refuses_has_its_line_too() -> None:
    """A GPU image on a CPU type breaks a planning rule, not a limit of one setting."""
    gpu = "{dlc: {repository: pytorch-inference, tag: 2.6.0-gpu-py312-cu124-ubuntu22.04}}"
    text = text_of({}, {"containers": f"[{{image: {gpu}}}]"})
    [(line, code)] = problems(text)
    assert code.startswith("LLE33")
    assert line == line_of(text, "containers")


def test_one_instance_is_not_refused() -> None:
    one = parse_settings(text_of({}, {"instances": "{min: 1, max: 1}"}))
    [endpoint] = one.endpoints.values()
    assert (endpoint.instances.min, endpoint.instances.max) == (1, 1)


def test_thresholds_are_as_many_as_one_likes_where_no_alarm_rolls_back() -> None:
    """SageMaker takes no rollback alarms where a variant is on Inf1."""
    percentiles = ", ".join(f"p{number}: 1s" for number in range(90, 100))
    alarms = {"alarms": f"{{model_latency: {{{percentiles}}}}}"}
    image = "[{image: {uri: registry.example.com/scorer:1}}]"
    inf1 = f"{{b: {{instance_type: ml.inf1.xlarge, containers: {image}}}}}"
    assert "LLE508" in {code for _, code in problems(text_of({}, alarms))}
    parse_settings(text_of({}, {**alarms, "variants": inf1}))


@pytest.mark.parametrize(
    ("got", "allowed"),
    [
        ("s3://my-bucket/models/", "an S3 prefix ending in /"),
        ("true", "true or false"),
        ("'10.0.0.1/8'", "such as 10.0.0.0/16"),
        ("7", "2 to 16"),
        ("400 seconds", "300 to 3600 seconds"),
        ("model.tar.gz", "a file named *.tar.gz"),
    ],
)
def test_an_error_that_contradicts_itself_is_known(got: str, allowed: str) -> None:
    assert contradicts_itself(got, allowed)


@pytest.mark.parametrize(
    ("part", "code", "settings"),
    [
        (part, code, settings)
        for part in ("shared", "endpoint")
        for code, settings in rows(part)
        if code != "none"
    ],
)
def test_what_is_refused_is_not_what_is_allowed(part: str, code: str, settings: Lines) -> None:
    """Where it is, the mistake is in another place than the error says: the key, or the kind."""
    text = text_of(settings, {}) if part == "shared" else text_of({}, settings)
    for _, error in mistakes(text):
        assert not contradicts_itself(str(error.got), str(error.allowed)), str(error)


def test_an_error_of_the_key_names_the_key() -> None:
    data = "{s3_prefix: s3://my-bucket/models/}"
    container = f"[{{image: {{uri: a/b:1}}, multi_model: true, data: {data}}}]"
    ((_, error),) = mistakes(text_of({}, {"containers": container}))
    assert error.code == "LLE326"
    assert error.where.endswith("data.s3_prefix")
    assert error.got == "s3_prefix with multi_model"
    assert "s3: s3://my-bucket/models/" in error.fix


def test_a_switch_in_quotes_is_told_from_one_without() -> None:
    ((_, error),) = mistakes(text_of({"private_link": "{fips: 'true'}"}, {}))
    assert (error.got, error.allowed) == ('"true", which is text', "true or false")
