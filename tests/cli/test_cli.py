"""``low-latency``: what it prints, where, with which exit code, and how soon."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from local_sagemaker.cli import app as local_sagemaker
from low_latency_endpoint import __version__
from low_latency_endpoint.cli import app, main
from low_latency_endpoint.errors import ConfigurationError
from tests.report.test_visible import HOSTILE, acting

REPOSITORY = Path(__file__).parents[2]
SHIPPED = str(REPOSITORY / "tests" / "sentiment.yaml")
COMMANDS = ("plan", "schema", "errors", "local-aws")


@dataclass
class Done:
    """What a run left behind."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def low_latency(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process, its output piped."""

    def run(*arguments: str, columns: int | None = None) -> Done:
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns:
            monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["low-latency", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return run


def in_a_process(*arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    code = f"import sys; {before}\nfrom low_latency_endpoint.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def other(tmp_path: Path) -> str:
    """The shipped settings for twice the load."""
    path = tmp_path / "twice.yaml"
    text = Path(SHIPPED).read_text(encoding="utf-8")
    assert "peak_tps: 1000" in text
    path.write_text(text.replace("peak_tps: 1000", "peak_tps: 2000"), encoding="utf-8")
    return str(path)


HOSTILE_NAME = HOSTILE.replace("\0", "").encode("utf-8", "ignore").decode()


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_examples(command: str, flag: str) -> None:
    done = CliRunner().invoke(app, [command, flag] if command else [flag])
    assert done.exit_code == 0
    assert re.search(r"Examples?:\n +low-latency ", done.output)


def test_the_installed_command() -> None:
    done = in_a_process("plan", "--settings", SHIPPED)
    assert (done.returncode, done.stderr) == (0, "")
    assert "8 at peak" in done.stdout


def test_version(low_latency: Run) -> None:
    assert low_latency("--version").stdout == f"low-latency {__version__}\n"


def test_plan_as_text(low_latency: Run) -> None:
    done = low_latency("plan", "--settings", SHIPPED)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "https://" not in done.stdout
    whole = low_latency("plan", "--settings", SHIPPED, "--verbose").stdout
    assert "8 instances" in whole  # ceil(1000 / (200 * 0.65))
    assert "7,800 invocations per instance per minute" in whole
    assert "https://docs.aws.amazon.com" in whole


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_keeps_to_the_width_and_cuts_no_value(low_latency: Run, columns: int) -> None:
    done = low_latency("plan", "--settings", SHIPPED, "-v", columns=columns)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert max(map(len, lines)) > columns * 0.8
    assert not any(line.endswith(" ") for line in lines)
    assert "…" not in done.stdout
    for word in ("SageMakerVariantInvocationsPerInstance", "LEAST_OUTSTANDING_REQUESTS"):
        assert word in done.stdout, "names stay whole, to be copied"


def test_plan_as_json(low_latency: Run) -> None:
    done = low_latency("plan", "--settings", SHIPPED, "--json", columns=80)
    plan = json.loads(done.stdout)["endpoints"]["sentiment"]
    decisions = {each["name"]: each for each in plan["decisions"]}
    assert decisions["instances_at_peak"]["value"] == 8
    assert decisions["scaling_target"]["value"] == 7800
    assert all(each["rule"] for each in decisions.values())


def test_plan_as_markdown(low_latency: Run) -> None:
    lines = low_latency("plan", "--settings", SHIPPED, "--markdown", columns=80).stdout.splitlines()
    assert "**sentiment ml.m5.12xlarge**" in lines
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) > 15
    assert all(line.endswith("|") for line in rows)


def test_plan_of_one_endpoint_among_several(low_latency: Run, tmp_path: Path) -> None:
    text = Path(SHIPPED).read_text(encoding="utf-8").replace("  sentiment:", "  sentiment: &first")
    path = tmp_path / "two.yaml"
    second = "  topics: {<<: *first, endpoint_name: topics, instance_type: ml.c5.4xlarge}\n"
    path.write_text(text + second, "utf-8")
    assert list(
        json.loads(low_latency("plan", "--settings", str(path), "--json").stdout)["endpoints"]
    ) == ["sentiment", "topics"]
    only = low_latency("plan", "--settings", str(path), "topics", "--json")
    assert list(json.loads(only.stdout)["endpoints"]) == ["topics"]
    none = low_latency("plan", "--settings", str(path), "other")
    assert (none.returncode, none.stdout) == (2, "")
    assert "LLE933" in none.stderr
    assert "sentiment, topics" in none.stderr


def test_plan_against_another(low_latency: Run, other: str) -> None:
    done = low_latency("plan", "--settings", other, "--against", SHIPPED, "--json")
    changes = {
        each["decision"]: (each["before"], each["after"])
        for each in json.loads(done.stdout)["changes"]
    }
    assert changes["instances_at_peak"] == ("8 instances", "16 instances")
    assert "scaling_target" not in changes
    table = low_latency("plan", "--settings", other, "--against", SHIPPED).stdout
    assert "16 instances" in table
    assert "7,800" not in table
    markdown = low_latency("plan", "--settings", other, "--against", SHIPPED, "--markdown").stdout
    assert "| Instances at peak | 8 instances | **16 instances** |" in markdown
    same = low_latency("plan", "--settings", SHIPPED, "--against", SHIPPED).stdout
    assert "no difference" in same


def test_bad_settings_are_explained_without_a_traceback(low_latency: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("client_zones: {ids: [use1-az1]}\nendpoint: {}\n", encoding="utf-8")
    done = low_latency("plan", "--settings", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{path}: 3 problems\n")
    assert f"{path}:1: LLE103" in done.stderr
    assert "Did you mean endpoints?" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--settings", SHIPPED, "--json", "--markdown"],
        ["plan", "--settings", SHIPPED, "--unknown"],
        ["plan", "--settings", "/nowhere/endpoint.yaml"],
        ["preflight", SHIPPED],  # without --settings
        ["errors", "LLE000"],
        ["unknown"],
        ["local-aws", "--behave", "clock_speed=60"],
        ["local-aws", "--behave", "nothing=1"],
        ["local-aws", "--behave", "unchanged_configuration=no"],
    ],
)
def test_usage_errors(low_latency: Run, arguments: list[str]) -> None:
    done = low_latency(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--settings", HOSTILE_NAME],
        ["plan", "--settings", SHIPPED, HOSTILE_NAME],
        ["plan", f"--{HOSTILE_NAME}"],
        ["errors", HOSTILE_NAME],
        [HOSTILE_NAME],
        ["init", "--file", f"{HOSTILE_NAME}.txt"],
        ["simulate", "--traffic-from", HOSTILE_NAME],
    ],
)
def test_what_is_typed_acts_nowhere(low_latency: Run, arguments: list[str]) -> None:
    done = low_latency(*arguments)
    assert done.returncode == 2
    assert acting(done.stdout) == acting(done.stderr) == []
    assert "Traceback" not in done.stderr


def _all_commands() -> Iterator[tuple[list[str], Any]]:
    """Each command, with the words that call it: of both command lines."""
    group: Any = get_command(app)
    yield from (([name], command) for name, command in group.commands.items())
    inner: Any = get_command(local_sagemaker)
    yield ["local-aws"], inner
    yield from ((["local-aws", name], command) for name, command in inner.commands.items())


def _with_values(command: Any) -> list[str]:
    return [one.opts[0] for one in command.params if one.opts[0][0] == "-" and not one.is_flag]


ODD_LINES = [
    *([*words, f"--{HOSTILE_NAME}"] for words, _ in _all_commands()),
    *([*words, HOSTILE_NAME, "--none"] for words, _ in _all_commands()),
    *(
        [*words, name, HOSTILE_NAME]
        for words, command in _all_commands()
        for name in _with_values(command)
        if words == ["local-aws"]
    ),
    ["local-aws", HOSTILE_NAME],
    ["local-aws", "add-image", HOSTILE_NAME],
    ["local-aws", "add-model-server", HOSTILE_NAME],
    ["local-aws", "add-model-server", f"{HOSTILE_NAME}=simulated"],
]


@pytest.mark.parametrize("arguments", ODD_LINES, ids=lambda line: " ".join(line)[:40])
def test_what_is_typed_acts_in_no_command(
    low_latency: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:9/{HOSTILE_NAME}")
    done = low_latency(*arguments)
    assert done.returncode == 2
    assert done.stderr
    assert acting(done.stdout) == acting(done.stderr) == []
    assert "Traceback" not in done.stderr


def test_schema_prints_the_committed_schema(low_latency: Run) -> None:
    committed = (REPOSITORY / "endpoint.schema.json").read_text(encoding="utf-8")
    assert low_latency("schema").stdout == committed


def test_errors(low_latency: Run) -> None:
    one = low_latency("errors", "lle604").stdout
    assert low_latency("errors", "LLE604\n").stdout == one
    assert one.startswith("LLE604: the safety factor is out of range\n")
    assert "https://docs.aws.amazon.com/" in one
    every = low_latency("errors").stdout.splitlines()
    assert len(every) > 500
    assert len({line.split()[0] for line in every}) == len(every)
    assert low_latency("errors", "llp403").stdout.startswith("LLP403: The model data exists")
    assert "LLE" not in low_latency("errors", "LLP4O3").stderr
    assert low_latency("errors", "--markdown").stdout == (
        REPOSITORY / "docs" / "reference" / "errors.md"
    ).read_text(encoding="utf-8")
    assert "Did you mean" in low_latency("errors", "LLE60").stderr


def test_local_aws_says_what_to_install_when_it_is_missing() -> None:
    done = in_a_process("local-aws", before="sys.modules['local_sagemaker'] = None")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("This needs local_sagemaker, which is not installed: its wheel")


def test_local_aws_is_the_command_of_local_sagemaker() -> None:
    done = in_a_process("local-aws", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("local-sagemaker ")


def test_any_error_of_the_library_is_printed_kindly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from low_latency_endpoint import cli

    def fail() -> None:
        raise ConfigurationError(code="LLE000", what="nothing", got="a", allowed="b", fix="c")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("LLE000: nothing\n")


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "--settings", SHIPPED)])
def test_what_is_loaded(arguments: tuple[str, ...]) -> None:
    """No command loads the CDK (which starts Node.js), boto3 or moto; help not even YAML."""
    heavy = ["aws_cdk", "jsii", "boto3", "botocore", "moto"]
    heavy += ["pydantic", "ruamel.yaml", "rich"] if arguments == ("--help",) else []
    before = (
        "import atexit; atexit.register(lambda: print([name for name in "
        f"{heavy} if name in sys.modules], file=sys.stderr))"
    )
    done = in_a_process(*arguments, before=before)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


def test_the_cost_of_the_shipped_settings_is_asked_for_and_never_guessed(low_latency: Run) -> None:
    done = low_latency("plan", "--settings", SHIPPED, "--cost")
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert "ml.m5.12xlarge, price not known 2 x 8 x 16 x 32 x" in text
    assert "low-latency prices reads it from AWS's Price List" in text
    assert "https://aws.amazon.com/sagemaker/ai/pricing/" in text
    assert "prices: {ml.m5.12xlarge: USD}, or with --price ml.m5.12xlarge=USD" in text
    assert 'PRICES="ml.m5.12xlarge=USD"' in text
    assert "together" not in text
    assert "a million requests" not in text
    assert "Not in it: disks, SageMaker's data" in text
    assert "OpenTelemetry metrics are on unless metrics.detailed_observability is false" in text
    assert "0.50 USD for a GB" in text
    whole = " ".join(low_latency("plan", "--settings", SHIPPED).stdout.split())
    assert "Instance hours per hour: 2 at least, 8 at first, 16 at most, 32 in an update" in whole


def test_the_cost_with_a_price(low_latency: Run) -> None:
    arguments = ("plan", "--settings", SHIPPED, "--price", "ml.m5.12xlarge=3")
    # 2, 8, 16 and 32 instances at 3, an interface endpoint in two zones at 0.01 each.
    text = " ".join(low_latency(*arguments, "--cost", columns=150).stdout.split())
    assert "2 x 3 = 6.00 8 x 3 = 24.00 16 x 3 = 48.00 32 x 3 = 96.00" in text
    assert "together 6.02 24.02 48.02 96.02" in text
    # 730 hours of each; no update lasts a month.
    assert "a month of 730 hours of it 4,395 17,535 35,055 -" in text
    # 24.02 an hour, in which 3.6 million come; 40 bytes each are 0.04 GB of a million.
    assert "a million requests cost 6.67 US dollars at 1,000 requests a second on 8" in text
    assert "a request of 40 bytes" in text
    assert "Prices: ml.m5.12xlarge: yours; interface_endpoint" in text
    assert "Not in these amounts, as their price is not known: 14 metrics in alarms, 1 comp" in text
    assert "Deleting" not in text
    whole = " ".join(low_latency(*arguments).stdout.split())
    assert "24.00 at first" in whole
    said = " ".join(whole.split())
    assert "6.02 at least, 24.02 at first, 48.02 at most, 96.02 in an update. For a million" in said
    assert "For a million requests at the peak: sentiment 6.67." in said
    data = json.loads(low_latency(*arguments, "--json").stdout)
    assert (data["cost"]["at_least"], data["cost"]["in_an_update"]) == (6.02, 96.02)
    assert data["minutes"]["delete"]["seen_on_aws"] is False
    names = {each["name"]: each["value"] for each in data["endpoints"]["sentiment"]["decisions"]}
    assert names["hourly_cost_at_first"] == 24
    assert list(json.loads(low_latency(*arguments, "--cost", "--json").stdout)) == [
        "format_version",
        "settings",
        "cost",
    ]


def test_the_cost_along_a_recorded_day(low_latency: Run, tmp_path: Path) -> None:
    """12 hours at the planned peak of 1,000 a second, 12 hours at a fifth of it.

    Held at 130 each, 8 instances serve 735 minutes, until 15 minutes lay lower, and 2 serve 705:
    5.0625 x 3 + 0.02 = 15.2075 an hour. It has 2.16 million requests of 40 bytes: 0.0864 GB at
    0.01 make it 15.2084, and x 730 = 11,102 a month.
    """
    recorded = tmp_path / "monday.csv"
    counts = [500] * 720 + [100] * 720  # the recording's peak counts as the planned one
    recorded.write_text(
        "\n".join(f"{60 * minute},{count}" for minute, count in enumerate(counts)), encoding="utf-8"
    )
    arguments = ("plan", "--settings", SHIPPED, "--cost", "--price", "ml.m5.12xlarge=3")
    text = " ".join(low_latency(*arguments, "--traffic-from", str(recorded)).stdout.split())
    assert (
        "Along monday (24 h, repeated, its peak the planned one; recorded: 1,440 periods of 60 s, "
        "at most 8.333 requests per second, times in seconds from a start): sentiment 2 to 8 instances, "
        "5.062 on average, 3,696 instance hours a month. 15.21 US dollars per hour, 11,102 a month of 730 hours, 7.04 for a "
        "million requests." in text
    )
    # 500 in 60 s are 8.3 a second.
    assert "The recorded peak of 8.333 requests per second is not in the order of magnitude" in text
    data = json.loads(low_latency(*arguments, "--traffic-from", str(recorded), "--json").stdout)[
        "cost"
    ]["along"]
    assert data["instances"] == {"sentiment": 5.0625}
    assert data["usd_per_hour"] == pytest.approx(15.2075 + 0.0009, abs=1e-4)
    assert data["requests_per_month"] == 2_160_000 * 730
    assert "is not in the order of magnitude" in data["warnings"][0]
    wave = low_latency(*arguments, "--traffic", "daily-wave").stdout
    assert "Along daily-wave (24 h" in wave
    assert "--traffic-from with a recorded day" in low_latency(*arguments).stdout
    # Without a price the instances: 5.0625 x 730 = 3,695.6 hours.
    whole = " ".join(
        low_latency("plan", "--settings", SHIPPED, "--traffic-from", str(recorded)).stdout.split()
    )
    assert "5.062 on average, 3,696 instance hours a month." in whole
    assert (
        low_latency("plan", "--settings", SHIPPED, "--traffic", "spike", "--markdown").returncode
        == 2
    )
    both = low_latency(*arguments, "--traffic", "spike", "--traffic-from", str(recorded))
    assert both.returncode == 2
    assert low_latency(*arguments, "--period", "60s").returncode == 2
    sparse = "0,60000\n120,30000\n360,60000"  # a minute's number is the planned peak's
    recorded.write_text(sparse, encoding="utf-8")
    open_period = low_latency(*arguments, "--traffic-from", str(recorded))
    assert (open_period.returncode, "say it with --period" in open_period.stderr) == (2, True)
    minutes = low_latency(*arguments, "--traffic-from", str(recorded), "--period", "60s")
    assert "Along monday (0.1167 h" in minutes.stdout
    assert "order of magnitude" not in minutes.stdout


def test_old_prices_are_said_to_be_old(low_latency: Run, tmp_path: Path) -> None:
    path = tmp_path / "priced.yaml"
    path.write_text(
        Path(SHIPPED).read_text(encoding="utf-8") + "prices: {file: old.csv}\n", encoding="utf-8"
    )
    (tmp_path / "old.csv").write_text(
        "item,region,usd,unit,published,version,read,source\n"
        "ml.m5.12xlarge,us-east-1,3,instance-hour,2025-01-01,1,2025-01-02,a.csv\n",
        encoding="utf-8",
    )
    text = low_latency("plan", "--settings", str(path), "--cost", columns=300).stdout
    assert "AWS's Price List in us-east-1, published 2025-01-01, read 2025-01-02" in text
    assert "days ago: low-latency prices reads anew" in text


def test_a_price_on_the_command_line_wins_over_the_settings(
    low_latency: Run, tmp_path: Path
) -> None:
    path = tmp_path / "priced.yaml"
    path.write_text(
        Path(SHIPPED).read_text(encoding="utf-8")
        + "prices: {ml.m5.12xlarge: 4, interface_endpoint: 0.5}\n",
        encoding="utf-8",
    )

    def least(*more: str) -> float:
        cost = json.loads(
            low_latency("plan", "--settings", str(path), "--cost", "--json", *more).stdout
        )["cost"]
        return float(cost["at_least"])

    assert (least(), least("--price", "ml.m5.12xlarge=3")) == (9, 7)
    # In a comparison the former settings' prices count, and no price that only the change states.
    changes = low_latency("plan", "--settings", str(path), "--against", SHIPPED).stdout
    assert "without prices of ml.m5.12xlarge in the former settings" in changes
    assert "ml.m5.12xlarge 4" not in changes
    back = low_latency("plan", "--settings", SHIPPED, "--against", str(path)).stdout
    assert "Prices used: ml.m5.12xlarge 4 (of the former settings)" in back


@pytest.mark.parametrize(
    ("price", "code"),
    [
        ("m5.large=1", "LLE882"),
        ("ml.m5.large=-1", "LLE883"),
        ("ml.m5.large=nan", "LLE883"),
        ("ml.m5.large", "LLE884"),
        ("ml.m5.large=$1", "LLE884"),
        ("=", "LLE884"),
        ("ml.m5.large=\u0663", "LLE884"),
        ("ml.m5.large=1_0", "LLE884"),
    ],
)
def test_a_price_of_another_form_is_refused(low_latency: Run, price: str, code: str) -> None:
    done = low_latency("plan", "--settings", SHIPPED, "--cost", "--price", price)
    assert (done.returncode, done.stdout) == (2, "")
    assert code in done.stderr


@pytest.mark.parametrize("number", ["\u0663", "1_0", "\uff11"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["load-test", "sentiment", "--payload", "{}", "--tps", "N"],
        ["load-test", "sentiment", "--payload", "{}", "--tps", "1..N"],
        ["load-test", "sentiment", "--payload", "{}", "--tps", "9", "--target", "p99=Nms"],
        ["diagnose", "sentiment", "--since", "Nm"],
        ["diagnose", "sentiment", "--target", "p99=Nms"],
        ["diagnose", "sentiment", "--client-latency", "p99=Nms"],
        ["simulate", "--tps", "9", "--service-time", "Nms"],
    ],
    ids=" ".join,
)
def test_numbers_have_the_digits_of_ascii(
    low_latency: Run, arguments: list[str], number: str
) -> None:
    *words, last = arguments
    done = low_latency(*words, last.replace("N", number))
    assert done.returncode == 2
    assert number in done.stderr


def test_the_minutes_are_marked_as_not_seen(low_latency: Run) -> None:
    text = " ".join(low_latency("plan", "--settings", SHIPPED, "--minutes").stdout.split())
    assert text.count("not seen on AWS yet") == 2
    assert "Creating takes about 10 to 20 minutes" in text
    assert "Deleting takes about 20 to 45 minutes" in text
    assert "price" not in text


@pytest.mark.parametrize(
    "others",
    [
        ("--cost", "--markdown"),
        ("--minutes", "--against", SHIPPED),
        ("--cost", "x"),
        ("--from-load-test", SHIPPED, "--price", "ml.m5.12xlarge=3"),
    ],
)
def test_what_does_not_go_with_cost_is_refused(low_latency: Run, others: tuple[str, ...]) -> None:
    done = low_latency("plan", "--settings", SHIPPED, *others)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage" in done.stderr


@pytest.mark.realtime
@pytest.mark.parametrize(
    ("arguments", "times"), [(("--help",), 2), (("plan", "--settings", SHIPPED), 6)]
)
def test_it_is_quick(arguments: tuple[str, ...], times: float) -> None:
    """Beside a process that only imports what any command line like it needs, in turn with it."""

    def seconds(run: Callable[[], subprocess.CompletedProcess[str]]) -> float:
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run().returncode == 0
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime

    # Typer reads the arguments of a command with pydantic.
    imports = [sys.executable, "-c", "import typer, rich.table, pydantic, ruamel.yaml"]
    measured = [
        (
            seconds(lambda: in_a_process(*arguments)),
            seconds(lambda: subprocess.run(imports, capture_output=True, text=True, check=False)),
        )
        for _ in range(3)
    ]
    ours, others = map(min, zip(*measured, strict=True))
    assert ours < times * others, measured
