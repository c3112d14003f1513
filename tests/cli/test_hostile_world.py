"""Every command in a hostile world: no traceback, an exit code that is one, a line that says why.

All commands and all their options are taken from the application, so that a new one is here, too.
``local-aws`` serves until it is stopped and has tests of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors.installation import install_command
from tests.depth import sampled

REPOSITORY = Path(__file__).parents[2]
SHIPPED = str(REPOSITORY / "endpoint.yaml")
ENVIRONMENT = {
    **{
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AWS_") and name not in ("COLUMNS", "LINES")
    },
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
#: Arguments with which each command does its work, or gets as far as asking an account.
COMMANDS: dict[str, tuple[str, ...]] = {
    "plan": ("--settings", SHIPPED),
    "prices": ("--settings", SHIPPED, "--from", "no-such-file.csv"),
    "pin": ("--check", "--lock", "no-such.lock.yaml"),
    "preflight": ("--settings", SHIPPED),
    "verify": ("Stack",),
    "simulate": ("--settings", SHIPPED, "--replications", "1"),
    "load-test": ("sentiment", "--tps", "10", "--payload", "{}"),
    "compare-routing": ("sentiment", "--users", "2", "--payload", "{}"),
    "recommend": ("--settings", SHIPPED, "--job", "j"),
    "optimize": ("--settings", SHIPPED, "--job", "j"),
    # Folders that cannot be made, and one that is not empty: nothing is written.
    "init": (
        *("/proc/nowhere", "--region", "us-east-1", "--zones", "use1-az1,use1-az2"),
        *("--model-data", "s3://my-bucket/model.tar.gz"),
    ),
    "stage": ("--bucket", "models", "--lock", "no-such.lock.yaml"),
    "schema": (),
    "errors": (),
    "list": (),
    "diagnose": ("sentiment",),
}
ANSWERS = ("plan", "schema", "errors")
#: All commands share one entry: what it does is looked at with some, and where files, AWS's
#: library or the printing of each may differ, with all.
FEW = ("plan", "errors", "diagnose")
EVERY_COMMAND_IN = ("all closed", "stdout full", "folder gone")
Do = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def do() -> Iterator[Do]:
    """Runs a command in surroundings."""
    program = Path(__file__).with_name("hostile_cli.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(
            *arguments: str, environment: dict[str, str] | None = None, **more: Any
        ) -> dict[str, Any]:
            process.stdin.write(
                json.dumps(
                    {
                        "arguments": arguments,
                        "environment": {**ENVIRONMENT, **(environment or {})},
                        **more,
                    }
                )
                + "\n"
            )
            process.stdin.flush()
            found: dict[str, Any] = json.loads(process.stdout.readline())
            return found

        yield run
        process.stdin.close()


def in_order(found: dict[str, Any], *, said: bool = True) -> None:
    """What holds of every run."""
    text = found["out"] + found["err"]
    assert "Traceback" not in text, text[-2000:]
    assert "Exception ignored" not in text, text[-2000:]
    assert found["code"] in (0, 1, 2, 130), found
    if found["code"] == 2 and said:
        assert found["err"].strip(), found


def test_all_commands_are_here() -> None:
    command: Any = get_command(app)
    assert set(command.commands) - {"local-aws"} == set(COMMANDS)
    # What takes a file is told from what takes a value: of a new Typer once nothing took one.
    assert "settings" in {each.name for each in parameters("plan", files=True)}
    assert "peak_tps" in {each.name for each in parameters("plan", files=False)}


WIDTHS = ("0", "1", "20", "abc", "²", "99999999999999")


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_width_takes_the_answer_away(do: Do, columns: str) -> None:
    found = do(
        "plan", "--settings", SHIPPED, "-v", environment={"COLUMNS": columns, "LINES": columns}
    )
    in_order(found)
    assert found["code"] == 0
    assert "InvocationsPerInstance" in "".join(found["out"].split())


SURROUNDINGS: dict[str, dict[str, Any]] = {
    "dumb terminal": {"environment": {"TERM": "dumb"}},
    "no terminal type": {"environment": {"TERM": ""}},
    "no colour": {"environment": {"NO_COLOR": "1", "FORCE_COLOR": "1"}},
    "C": {"environment": {"LANG": "C", "LC_ALL": "C"}, "encoding": "ascii"},
    "no such locale": {"environment": {"LANG": "xx_YY.UTF-99", "LC_ALL": "xx_YY.UTF-99"}},
    "ascii": {"environment": {"PYTHONIOENCODING": "ascii"}, "encoding": "ascii"},
    "latin": {"encoding": "latin-1"},
    "stdin closed": {"stdin": "closed"},
    "stdout closed": {"stdout": "closed"},
    "stderr closed": {"stderr": "closed"},
    "all closed": {"stdin": "closed", "stdout": "closed", "stderr": "closed"},
    "stdout full": {"stdout": "/dev/full"},
    "stderr full": {"stderr": "/dev/full"},
    "both full": {"stdout": "/dev/full", "stderr": "/dev/full"},
    "nobody reads": {"stdout": "broken"},
    "no home": {"environment": {"HOME": ""}},
    "home that is none": {"environment": {"HOME": "/nonexistent/home"}},
    "no temporary folder": {"environment": {"TMPDIR": "/nonexistent"}},
    "folder gone": {"folder_gone": True},
    "region that is none": {"environment": {"AWS_REGION": "a b", "AWS_DEFAULT_REGION": "\x7f"}},
    "profile that is none": {"environment": {"AWS_PROFILE": "nobody"}},
    "configuration a folder": {"environment": {"AWS_CONFIG_FILE": "/"}},
    "endpoint that is none": {"environment": {"AWS_ENDPOINT_URL": "::", "AWS_REGION": "us-east-1"}},
}
#: Somebody, who would ask a server on this machine that is not there.
SOMEBODY = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
}
ODD_VARIABLES = [
    *(
        ("AWS_ENDPOINT_URL", url)
        for url in (
            *("foo", "http://localhost:99999", "localhost:5000x", "http://127.0.0.1:0"),
            *("http://[::1", "http://127.0.0.1:x", "http://a b", "https://", "ftp://127.0.0.1:9"),
            *("http://127.0.0.1:9\x7f", "http://\udcff"),
        )
    ),
    *(
        (name, "x\udcff")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    ),
    ("AWS_MAX_ATTEMPTS", "x"),
    ("AWS_RETRY_MODE", "x"),
]
#: Lines of a configuration file, or what its credential_process prints.
ODD_LINES = (
    "endpoint_url=foo",
    "metadata_service_timeout=x",
    "metadata_service_num_attempts=x",
    "max_attempts=x",
    "retry_mode=x",
    "use_fips_endpoint=x",
    "s3=x",
    "parameter_validation=x",
    "defaults_mode=x",
    "tcp_keepalive=x",
    "request_min_compression_size_bytes=x",
    "source_profile=nobody\nrole_arn=x",
    "credential_process='",
    "credential_process=/nonexistent",
)
ODD_CREDENTIALS = (
    *("x", "[]", "null", "5", '"x"', "{}", '{"Version": "1"}', '{"Version": 1}'),
    '{"Version": 1, "AccessKeyId": 5, "SecretAccessKey": "x"}',
    '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": []}',
    '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "\\u00ff"}',
    '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "x", "Expiration": "soon"}',
    '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "x", "Expiration": 5}',
    '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "x", "Expiration": "2001-01-01"}',
    '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "x", "SessionToken": {}}',
)


@pytest.mark.parametrize(("name", "value"), ODD_VARIABLES)
def test_odd_variables_of_aws(do: Do, name: str, value: str) -> None:
    found = do("list", environment={**SOMEBODY, name: value})
    in_order(found)
    assert found["code"] == 2, found
    assert "You must specify a region" not in found["err"]


@pytest.mark.parametrize("line", ODD_LINES)
def test_odd_lines_of_aws_configuration(do: Do, tmp_path: Path, line: str) -> None:
    in_order(do("list", environment=configured(tmp_path, line, {})))
    anybody = {name: value for name, value in SOMEBODY.items() if "_KEY" in name}
    in_order(do("list", environment=configured(tmp_path, line, anybody)))


@pytest.mark.parametrize("printed", ODD_CREDENTIALS)
def test_odd_credentials_of_a_process(do: Do, tmp_path: Path, printed: str) -> None:
    (tmp_path / "printed").write_text(printed)
    found = do(
        "list", environment=configured(tmp_path, f"credential_process=cat {tmp_path}/printed", {})
    )
    in_order(found)
    assert found["code"] == 2, found


def configured(folder: Path, lines: str, more: dict[str, str]) -> dict[str, str]:
    """An environment with a configuration file of these lines; services are on this machine."""
    (folder / "config").write_text(f"[default]\n{lines}\n")
    return {
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_DEFAULT_REGION": "us-east-1",
        "PATH": os.environ["PATH"],
        **({} if "endpoint_url" in lines else {"AWS_ENDPOINT_URL": SOMEBODY["AWS_ENDPOINT_URL"]}),
        **more,
    }


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_all_commands_in_all_surroundings(do: Do, tmp_path: Path, name: str) -> None:
    around = {"folder": str(tmp_path), **SURROUNDINGS[name]}
    commands = COMMANDS if name in EVERY_COMMAND_IN else FEW
    for command in commands:
        found = do(command, *COMMANDS[command], **around)
        in_order(found, said="stderr" not in around)
        if command in ANSWERS:
            full = around.get("stdout") == "/dev/full"
            assert found["code"] == (2 if full else 0), (command, found)
            if full and "stderr" not in around:
                assert found["err"].count("standard output cannot be written: No space left") == 1
        else:
            assert found["code"] == 2, (command, found)
    in_order(do("nothing", **around), said="stderr" not in around)


def test_json_is_json_in_any_encoding(do: Do) -> None:
    for encoding in ("ascii", "latin-1", "utf-8"):
        for arguments in (("plan", "--settings", SHIPPED, "--json"), ("schema",)):
            json.loads(do(*arguments, encoding=encoding)["out"])


def odd_files(folder: Path) -> dict[str, str]:
    """Paths that are no good, by what is wrong with them."""
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(bytes(range(256)) * 100)
    (folder / "null.json").write_text("null")
    (folder / "deep.json").write_text("[\n" * 100_000)
    (folder / "loop").symlink_to("loop")
    return {each.name: str(each) for each in folder.iterdir()} | {
        "missing": str(folder / "none" / "none"),
        "nothing": "",
        "undecodable": str(folder / "\udcff"),
    }


def parameters(command: str, *, files: bool) -> list[Any]:
    """The command's parameters that take a file, or another value; flags take none."""
    application: Any = get_command(app)
    return [
        each
        for each in application.commands[command].params
        if not getattr(each, "is_flag", False)
        # Of `plan` there may be several settings files, and patterns: Typer knows no Path of them.
        and ("Path" in each.bare_type() or (command, each.name) == ("plan", "settings")) == files
    ]


def call(command: str, parameter: Any, value: str) -> list[str]:
    """The command with one argument or option of this value."""
    arguments = list(COMMANDS[command])
    if parameter.param_type_name == "option":
        return [command, *arguments, f"{max(parameter.opts, key=len)}={value}"]
    positions = [
        each.name
        for each in get_command(app).commands[command].params  # type: ignore[attr-defined]
        if each.param_type_name == "argument"
    ]
    at = positions.index(parameter.name)
    return (
        [
            command,
            "--",
            *arguments[:at],
            value,
            *(each for each in arguments[at + 1 :] if not each.startswith("-")),
        ]
        if not any(each.startswith("-") for each in arguments)
        else [command, *arguments[:at], value, *arguments[at + 1 :]]
    )


WRITTEN = {"output", "html", "csv", "file"}


@pytest.mark.parametrize("command", sampled(COMMANDS, 4))
def test_files_that_are_no_good(do: Do, tmp_path: Path, command: str) -> None:
    odd = odd_files(tmp_path)
    for parameter in parameters(command, files=True):
        # What is read from /dev/full has no end, and nobody would name it.
        full = ["/dev/full"] if parameter.name in WRITTEN else []
        runs = [call(command, parameter, path) for path in (*odd.values(), *full)]
        for found in do(runs=runs, folder=str(tmp_path))["runs"]:
            in_order(found)
    if command != "init":  # which writes into folders
        assert sorted(os.listdir(tmp_path / "folder")) == []


VALUES = ("", "nan", "9" * 30, "²\udcff")
#: Good names. `pin` would ask the Hub for such models, again and again for eight seconds, as
#: tests/hugging_face has it.
GOOD = {("pin", "models"): ("nan", "9" * 30)}


@pytest.mark.parametrize("command", sampled(COMMANDS, 4))
def test_values_that_are_no_good(do: Do, tmp_path: Path, command: str) -> None:
    runs = [
        call(command, parameter, value)
        for parameter in parameters(command, files=False)
        for value in VALUES
        if value not in GOOD.get((command, parameter.name), ())
    ]
    for arguments, found in zip(runs, do(runs=runs, folder=str(tmp_path))["runs"], strict=True):
        in_order({**found, "arguments": arguments})


INTERRUPT = """
import os, signal, sys
number = 0
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        global number
        number += 1
        if number == int(os.environ["AT_IMPORT"]):
            os.kill(os.getpid(), signal.SIGINT)
from low_latency_endpoint.cli import main
sys.meta_path.insert(0, Interrupting())
main()
"""


# Whether SIGINT came ignored is over before the first import.
@pytest.mark.parametrize(
    ("at", "ignored"),
    sampled([(1, False), (2, True), (1, True), (10, True), (60, True), (200, True)], 2),
)
def test_an_early_interrupt_ends_a_command_without_a_word(at: int, ignored: bool) -> None:
    """While Python imports what the command line needs; also where SIGINT came ignored."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, "plan", "--settings", SHIPPED],
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
        preexec_fn=ignore if ignored else None,
        env={**ENVIRONMENT, "AT_IMPORT": str(at)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


EXTRAS = {
    "boto3": "operations",
    "botocore": "operations",
    "httptools": "operations",
    "numba": "simulation",
    "jinja2": "report",
    "gevent": "load-test",
    "geventhttpclient": "load-test",
    "hdrh": "load-test",
    "huggingface_hub": "hugging-face",
    "locust": "load-test",
}


TABLE_OF_EXTRAS = (REPOSITORY / "docs" / "index.md").read_text("utf-8").splitlines()

WITHOUT_EXTRAS = f"""
import json, os, sys
class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(EXTRAS)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hiding())
import rich.table  # what most commands load: no process need load it anew
from low_latency_endpoint import settings
from low_latency_endpoint.cli import app, errors, main
errors.all_codes()
settings.load_settings({SHIPPED!r})
for line in sys.stdin:
    sys.argv[1:] = json.loads(line)
    if not (child := os.fork()):
        os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def do_without_extras(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Runs a command in a process that imports none of the extras; exit code and what it said."""
    folder = tmp_path_factory.mktemp("without")
    with subprocess.Popen(
        [sys.executable, "-c", WITHOUT_EXTRAS],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(*arguments: str) -> tuple[int, str]:
            process.stdin.write(json.dumps(arguments) + "\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            return code, (folder / "said").read_text()

        yield run
        process.stdin.close()


@pytest.mark.parametrize(
    "arguments",
    sampled(
        [
            [name, *arguments]
            for name, arguments in COMMANDS.items()
            if name not in ("init", "plan", "prices", "schema", "errors", "simulate")
        ]
        + [
            ["diagnose", "sentiment", "--html", "page.html"],
            [
                "simulate",
                "--settings",
                SHIPPED,
                "--tps",
                "1",
                "--replications",
                "2",
                "--html",
                "page.html",
            ],
        ],
        3,
    ),
    ids=" ".join,
)
def test_a_command_names_the_extra_that_it_needs(
    do_without_extras: Callable[..., Any], arguments: list[str]
) -> None:
    code, text = do_without_extras(*arguments)
    assert code == 2, text
    assert "Traceback" not in text
    said = text.strip().splitlines()[-1]
    package = said.split("needs ")[1].split(",")[0]
    assert said.endswith(install_command(EXTRAS[package]))
    option = " --html" if "--html" in arguments else ""
    row = next(row for row in TABLE_OF_EXTRAS if row.endswith(f"| `{EXTRAS[package]}` |"))
    assert f"`{arguments[0]}{option}`" in row
