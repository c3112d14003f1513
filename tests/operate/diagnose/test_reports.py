"""What people see: the command line at two widths, its exit codes, JSON, and the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from typer.testing import CliRunner

from low_latency_endpoint import report
from low_latency_endpoint.cli import app, main
from low_latency_endpoint.cli.diagnose import parse_window
from low_latency_endpoint.cli.options import parse_targets
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate import diagnose as diagnosis
from low_latency_endpoint.operate.diagnose.document import document
from low_latency_endpoint.operate.diagnose.findings import KINDS
from low_latency_endpoint.report.pages import page
from tests.fake_aws import Refused

from .account import FakeAccount
from .conftest import Run
from .faults.endpoints import ZONES
from .scenarios import END, ENDPOINT, Scaled, Scenario, constant
from .steady_faults import FAULTS
from .test_advised_settings import settings_file

_FAULT = {fault.finding: fault.scenario for fault in reversed(FAULTS)}


class _Session:
    """Stands in for ``boto3.Session``: the clients of an account in memory."""

    account: FakeAccount
    region_name = "us-east-1"

    def __init__(self, **given: Any) -> None:
        self.given = given

    def client(self, service: str, config: Any = None) -> Any:
        return type(self).account(service)

    def get_credentials(self) -> None:
        return None


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command on a scenario at its own time."""
    monkeypatch.setattr("boto3.Session", _Session)

    def _cli(scenario: Scenario, *arguments: str, columns: int = 80, **denied: str) -> Any:
        _Session.account = scenario.account()
        _Session.account.denied = denied
        return CliRunner().invoke(
            app,
            ["diagnose", ENDPOINT, "--until", END.isoformat(), *arguments],
            env={"COLUMNS": str(columns)},
        )

    return _cli


_FILE = """
client_zones: {{ids: [use1-az1, use1-az2]}}
endpoints:
  sentiment:
    endpoint_name: {name}
    containers: [{{image: {{dlc: {{repository: r, tag: t}}}}, data: {{s3: s3://bucket/m.tar.gz}}}}]
    instance_type: ml.m5.xlarge
    latency: {{p99: 200ms}}
"""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "80% of the target 200 ms from the settings file"),
        (["--target", "p99=90ms"], "80% of the target 90 ms"),
    ],
)
def test_the_command_takes_the_target_of_the_settings_file(
    given: list[str], said: str, cli: Any, tmp_path: Path
) -> None:
    """As load-test does, of an endpoint that no stack of this library made."""
    file = tmp_path / "endpoint.yaml"
    file.write_text(_FILE.format(name=ENDPOINT))
    scenario = Scenario(thresholds={}, planned=None, latency=lambda minute, instance: 400)
    result = cli(scenario, "--settings", str(file), "--json", *given)
    assert result.exit_code == 1, result.output
    (finding,) = json.loads(result.stdout)["findings"]
    assert said in str(finding)
    assert ("settings file" in str(finding)) is (not given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "90% of the target 200 ms from the settings file"),
        (["--target", "p99=90ms"], "90% of the target 90 ms"),
    ],
)
def test_the_command_splits_a_target_as_the_settings_file_does(
    given: list[str], said: str, cli: Any, tmp_path: Path
) -> None:
    file = tmp_path / "endpoint.yaml"
    text = _FILE.format(name=ENDPOINT).replace("200ms}", "200ms, overhead_share: 0.1}")
    file.write_text(text)
    scenario = Scenario(thresholds={}, planned=None, latency=lambda minute, instance: 400)
    result = cli(scenario, "--settings", str(file), "--json", *given)
    (finding,) = json.loads(result.stdout)["findings"]
    assert said in str(finding)


Refusal = Callable[..., None]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """Runs the command as a process would, which must end with this code."""
    monkeypatch.setattr("boto3.Session", _Session)

    def _refused(code: str, *arguments: str, endpoint: str = ENDPOINT) -> None:
        monkeypatch.setattr("sys.argv", ["low-latency", "diagnose", endpoint, *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        message = capsys.readouterr().err
        assert message.startswith(f"{code}: ")
        assert "Traceback" not in message

    return _refused


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("finding", ["LLD102", "LLD501", "LLD121", "LLD301"])
def test_the_terminal_report_fits(cli: Any, finding: str, columns: int) -> None:
    result = cli(_FAULT[finding](), columns=columns)
    assert result.exit_code == 1, result.output
    lines = result.stdout.splitlines()
    # Only links may stick out: folded, nobody could follow them.
    assert [line for line in lines if len(line) > columns and "https://" not in line] == []
    assert any(line.startswith(f"1. {finding} ") for line in lines)
    assert "measured" in result.stdout
    assert "change " in result.stdout


@pytest.mark.parametrize("finding", ["LLD102", "LLD501"])
def test_a_link_is_not_folded(cli: Any, finding: str) -> None:
    (kind,) = [each for each in KINDS.values() if each.id == finding]
    lines = [line.strip() for line in cli(_FAULT[finding]()).stdout.splitlines()]
    assert f"source   {kind.source}" in lines


def test_healthy(cli: Any) -> None:
    result = cli(Scenario())
    assert result.exit_code == 0, result.output
    assert "Nothing found: the endpoint is healthy." in result.stdout
    assert "no data: primary: no metrics per instance" in result.stdout


_SILENT = constant(0)


@pytest.mark.parametrize(
    ("scenario", "why", "said"),
    [
        (
            lambda: Scenario(tps=_SILENT),
            "no_requests",
            "Nothing to judge: no request in the window.",
        ),
        (
            lambda: Scenario(tps=_SILENT, planned=None, thresholds={}),
            "no_requests",
            "low-latency diagnose sentiment --since 1d",
        ),
        (
            lambda: Scenario(tps=lambda m: 600 if m < 50 else 0),
            "requests_ended",
            "primary: no request since 03:50",
        ),
        (
            lambda: Scenario(tps=_SILENT, status="Creating", created=57),
            "no_requests",
            "The endpoint is Creating.",
        ),
        (
            lambda: Scenario(thresholds={}, planned=None),
            "no_latency_target",
            "errors were judged, latency was not",
        ),
        (
            lambda: Scenario(thresholds={("ModelLatency", "p99"): 160.0}, latency=lambda m, i: 0),
            "no_latency_data",
            "errors were judged, latency was not",
        ),
    ],
)
def test_what_was_not_tested_is_not_called_healthy(
    scenario: Callable[[], Scenario], why: str, said: str, cli: Any, run: Any
) -> None:
    given = scenario()
    if why == "no_latency_data":
        account = given.account()
        account.data = {key: of for key, of in account.data.items() if key[1] != "ModelLatency"}
        made = run(account)
        assert (made.healthy, [each.why for each in made.unjudged]) == (None, [why])
        return
    result = cli(given)
    assert result.exit_code == 3, result.output
    assert said in result.stdout
    assert "ealthy" not in result.stdout
    made = json.loads(cli(given, "--json").stdout)
    assert made["healthy"] is None
    assert made["verdict"]["state"] == "not_judged"
    assert [each["why"] for each in made["verdict"]["not_judged"]] == [why]


def test_traffic_of_every_few_minutes_has_not_ended(cli: Any) -> None:
    sparse = Scenario(tps=lambda m: 600 if m % 8 == 0 else 0)
    assert json.loads(cli(sparse, "--json").stdout)["verdict"]["not_judged"] == []


_LINK = {"State": "available", "PrivateDnsEnabled": True, "Groups": [{"GroupId": "sg-1"}]}
_OPEN = [
    {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
]


@pytest.mark.parametrize(
    ("link", "let_in", "found"),
    [
        ({}, _OPEN, []),
        ({"State": "rejected"}, _OPEN, ["vpce-1 is rejected"]),
        (
            {"PrivateDnsEnabled": False},
            _OPEN,
            ["vpce-1 has no private DNS: the runtime's DNS name bypasses it"],
        ),
        ({}, [], ["the security groups of vpce-1 admit nobody on port 443"]),
    ],
)
def test_silence_looks_at_the_way_to_the_endpoint(
    link: dict[str, Any], let_in: list[Any], found: list[str], run: Any
) -> None:
    account = Scenario(tps=_SILENT).account()
    account.links, account.let_in = {"vpce-1": {**_LINK, **link}}, let_in
    stated = {"ServiceName": "com.amazonaws.us-east-1.sagemaker.runtime", "PrivateDnsEnabled": True}
    account.template["Resources"]["Link"] = {"Type": "AWS::EC2::VPCEndpoint", "Properties": stated}
    made = run(account)
    assert [each.text for finding in made.findings for each in finding.evidence] == found
    assert made.healthy is (False if found else None)


def test_an_endpoint_out_of_service_is_a_finding(run: Any) -> None:
    made = run(Scenario(tps=_SILENT, status="OutOfService"))
    assert [each.id for each in made.findings] == ["LLD705"]
    assert run(Scenario(tps=_SILENT)).findings == ()


def test_the_answer_comes_first(cli: Any) -> None:
    """What is wrong and since when, what to change, what happened; then what shows it."""
    scenario = _FAULT["LLD702"]()
    lines = cli(scenario).stdout.splitlines()
    (made,) = json.loads(cli(scenario, "--json").stdout)["onsets"]
    start = made["start"][11:16]
    assert made["before"] < made["limit"] < made["since"]
    assert re.fullmatch(
        rf"primary ModelLatency p99: \d+ ms until {start}, \d+ ms since \(limit 160 ms\)", lines[2]
    )
    order = [
        "1. LLD702",
        "   change",
        "What happened",
        "Evidence of 1.",
        "   because",
        "primary: 8 x",
    ]
    places = [next(n for n, line in enumerate(lines) if line.startswith(o)) for o in order]
    assert places == sorted(places)


def test_alarms_are_named_by_what_they_watch(cli: Any) -> None:
    """First evaluations are no events, those of a minute are one, and names stay whole to be copied."""
    scenario = Scenario(alarm={"StateValue": "ALARM"})
    long = (
        "LowLatencyEndpoint-sentimentAlarmsprimaryModelLatencyp99BD40B6C0-FEDQ6CPZG3G8AAAAAAAAAAAA"
    )
    account = scenario.account()
    account.alarms[0]["AlarmName"] = long
    names = [each["AlarmName"] for each in account.alarms if "other" not in each["AlarmName"]]
    states = [(3, "INSUFFICIENT_DATA", "OK", ""), (30, "OK", "ALARM", "")]
    states.append((50, "ALARM", "OK", "no datapoints were received for 3 periods"))
    account.history = [
        {
            "AlarmName": name,
            "Timestamp": scenario.at(minute + number / 9),
            "HistoryData": json.dumps(
                {
                    "oldState": {"stateValue": old},
                    "newState": {"stateValue": new, "stateReason": why},
                }
            ),
        }
        for minute, old, new, why in states
        for number, name in enumerate(names)
    ]
    scenario.account = lambda: account  # type: ignore[method-assign]
    lines = [line.strip() for line in cli(scenario).stdout.splitlines()]
    assert [
        line.split(maxsplit=2)[::2] for line in lines if re.match(r"\d\d:\d\d +alarm ", line)
    ] == [
        ["03:30", "ALARM: primary ModelLatency p99, primary OverheadLatency Average"],
        ["03:50", "OK, without data: primary ModelLatency p99, primary"],
    ]
    assert long in lines
    events = json.loads(cli(scenario, "--json").stdout)["events"]
    assert [(each["state"], each["no_data"], each["names"]) for each in events] == [
        ("ALARM", False, names),
        ("OK", True, names),
    ]


def test_healthy_as_far_as_it_is_known(cli: Any) -> None:
    result = cli(Scenario(), DescribeScalableTargets="AccessDeniedException")
    assert result.exit_code == 0
    assert "Nothing found, but 1 thing is unknown: see below." in result.stdout
    assert "unknown: scaling of primary" in result.stdout


def test_json_is_all_that_is_printed(cli: Any) -> None:
    result = cli(_FAULT["LLD102"](), "--json")
    assert result.exit_code == 1
    made = json.loads(result.stdout)
    assert [finding["id"] for finding in made["findings"]] == ["LLD102"]
    assert made["findings"][0]["changes"][0] == {
        "key": "throughput.peak_tps",
        "value": "1900",
        "why": "the plan's maximum follows from it",
    }
    assert made["variants"][0]["series"]["ModelLatency.p99"]["2026-11-20T03:00:00+00:00"] > 0
    assert made["latency_ms"]["primary"][0]["part"] == "model"


def test_instances_and_zones_in_json(cli: Any) -> None:
    scenario = Scenario(
        enhanced=True, zones=ZONES, overhead=lambda m: 7, latency=lambda m, i: 400 if i == 3 else 40
    )
    made = json.loads(cli(scenario, "--json").stdout)
    instances, zones = made["instances"]["primary"], made["zones"]["primary"]
    assert instances[0]["name"] == "i-3"
    assert len(instances) == 8
    assert sum(each["share"] for each in instances) == pytest.approx(1)
    assert instances[0]["requests"] == pytest.approx(600 * 3600 / 8)
    assert instances[0]["model_average_ms"] == pytest.approx(418, rel=0.05)
    assert instances[0]["model_p99_ms"] > instances[0]["model_average_ms"]
    assert instances[0]["overhead_average_ms"] == pytest.approx(7)
    assert instances[0]["cpu_percent"] == pytest.approx(45, rel=0.05)
    assert [each["name"] for each in zones] == ["us-east-1b", "us-east-1a"]
    assert zones[0]["cpu_percent"] is None
    assert json.loads(cli(Scenario(), "--json").stdout)["instances"] == {"primary": []}


@pytest.mark.parametrize("columns", [80, 120])
def test_instances_and_zones_in_the_terminal(cli: Any, columns: int) -> None:
    scenario = Scenario(enhanced=True, zones=ZONES, latency=lambda m, i: 400 if i == 3 else 40)
    text = cli(scenario, columns=columns).stdout
    assert "primary by zone" in text
    lines = [line.strip() for line in text[text.index("primary by instance") :].splitlines()]
    shown = [line for line in lines if line.startswith("i-")]
    assert len(shown) == 5
    assert re.fullmatch(r"i-3 +270,000 +12 % +4\d\d ms +8\d\d ms +6 ms +45 %", shown[0])
    assert "the slowest 5 of 8; all of them in --json" in lines
    assert max(len(line) for line in text.splitlines() if "https://" not in line) <= columns
    assert "by instance" not in cli(Scenario()).stdout


def test_client_and_target(cli: Any) -> None:
    result = cli(Scenario(), "--target", "p99=90ms", "--client-latency", "p99=400ms")
    assert result.exit_code == 1
    assert "LLD801" in result.stdout
    assert "p99 72 ms" in result.stdout  # four fifths of the target


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--since", "yesterday"], "LLD902"),
        (["--since", "1"], "LLD902"),
        (["--since", "500d"], "LLD902"),
        (["--since", "1m"], "LLD902"),
        (["--until", "tomorrow"], "LLD903"),
        (["--until", "2999-01-01T00:00Z"], "LLD903"),
        (["--until", "0001-01-01T00:00"], "LLD903"),
        (["--target", "200ms"], "LLD904"),
        (["--target", "p99=200"], "LLD904"),
        (["--target", "p99=0ms"], "LLD904"),
        (["--target", "p99=1ms", "--target", "p99=2ms"], "LLD904"),
        (["--client-latency", "best=1ms"], "LLD905"),
    ],
)
def test_usage(arguments: list[str], code: str, refused: Refusal) -> None:
    _Session.account = Scenario().account()
    refused(code, *arguments)
    assert _Session.account.asked == [], "refused before anything is read"


def test_aws_refuses_in_words(refused: Refusal) -> None:
    _Session.account = Scenario().account()
    _Session.account.answers |= {
        "cloudformation.DescribeStacks": Refused("ValidationError", status=400),
        "sagemaker.ListEndpoints": {"Endpoints": []},
    }
    refused("LLA101", endpoint="nowhere")
    _Session.account.denied = {"GetMetricData": "AccessDenied"}
    refused("LLD901")


@pytest.mark.parametrize("given", [("--profile", "nobody"), (), ("--region", "us-east-1")])
def test_no_profile_no_region_or_no_credentials(
    given: tuple[str, ...], refused: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boto3.Session", boto3.session.Session)
    refused("LLA102", *given)


# -------------------------------------------------------------------------------------------- page


class _Loads(HTMLParser):
    """Collects everything that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (name == "src" or (tag == "link" and name == "href")) and not (
                value or ""
            ).startswith("data:"):
                self.fetched.append(f"{tag} {value}")


def test_the_page_is_self_contained(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    result = cli(_FAULT["LLD501"](), "--html", str(file))
    assert result.exit_code == 1, result.output
    assert f"wrote {file}" in result.stderr
    text = file.read_text("utf-8")
    loads = _Loads()
    loads.feed(text)
    assert loads.fetched == []
    assert "LLD501" in text
    assert "ModelLatency by instance, average" in text
    assert '<th class="l">instance</th>' in text
    assert '<figure id="chart-primary"' in text
    assert len(text) < 100_000, "a page that can be sent by mail"


def test_names_are_text_on_the_page(run: Any, tmp_path: Path) -> None:
    failed = Scaled(30, 9, "Failed", "<script>alert(1)</script> no capacity")
    text = page(document(run(Scenario(activities=[failed]))))
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_page_of_nothing(run: Any) -> None:
    assert "No request in the window." in page(document(run(Scenario(tps=lambda minute: 0))))


def test_a_page_that_cannot_be_written(cli: Any, tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "missing" / "report.html"):
        result = cli(Scenario(), "--html", str(file))
        assert result.exit_code == 2
        assert "cannot be written" in result.stderr
        assert _Session.account.asked == [], "said before anything is read"


def test_operations_do_not_need_the_report_extra() -> None:
    source = Path(diagnosis.__file__).parent
    folders = (source, Path(report.__file__).parent)
    importing = {
        path.name
        for folder in folders
        for path in folder.glob("*.py")
        if re.search(r"^(from|import) jinja2", path.read_text("utf-8"), re.M)
    }
    assert importing == set()


def test_the_fix_states_what_is_allowed_not_what_was_given() -> None:
    for given in ("4m", "0h", "456d"):
        with pytest.raises(ConfigurationError) as caught:
            parse_window(given, None, END)
        assert "5m to 455d" in caught.value.fix
    with pytest.raises(ConfigurationError) as caught:
        parse_targets(["p99=0ms"], ())
    assert "in this range" in caught.value.fix


def test_the_prices_of_a_settings_file_say_what_fewer_instances_save(
    cli: Any, tmp_path: Path
) -> None:
    scenario = Scenario(
        cpu=constant(12), scaling=None, planned={"peak TPS": 600.0, "TPS per instance": 300.0}
    )
    file = settings_file(scenario)
    file["endpoints"]["sentiment"]["endpoint_name"] = ENDPOINT
    settings = tmp_path / "endpoint.yaml"
    settings.write_text(yaml.safe_dump({**file, "prices": {"ml.m5.12xlarge": 2.5}}), "utf-8")
    wide = {"columns": 200}
    assert "saves 6 instances of ml.m5.12xlarge: 15.00 USD an hour (price: yours)" in (
        cli(scenario, "--settings", str(settings), **wide).output
    )
    without = cli(scenario, **wide).output
    assert "saves 6 instances of ml.m5.12xlarge" in without
    assert "USD" not in without


@pytest.mark.parametrize("planned", [True, False])
def test_only_a_stack_of_this_library_is_verified(run: Run, planned: bool) -> None:
    """An endpoint that was made otherwise has none: the command would answer LLA103."""
    changed = {} if planned else {"planned": None}
    text = page(document(run(Scenario(tps=lambda minute: 0, **changed))))
    assert ("low-latency verify" in text) is planned
    assert "Callers, DNS, security group" in text
