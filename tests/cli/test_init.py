"""``low-latency init``: what it writes, what it finds, what it misses, and what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import low_latency_endpoint
from local_sagemaker import LocalAws
from low_latency_endpoint.cli import main
from low_latency_endpoint.errors.installation import client_wheel
from low_latency_endpoint.settings import load_settings

ROOT = Path(__file__).parents[2]
ARCHIVE, PREFIX = "s3://my-bucket/model.tar.gz", "s3://my-bucket/model/"
MODELS = {"text-classification": ARCHIVE, "language-model": PREFIX, "inferentia2": ARCHIVE}
NEW_VPC = ("--region", "us-east-1", "--zones", "use1-az1,use1-az2")
VPC = ("--vpc-id", "vpc-0123456789abcdef0", "--account", "123456789012")
NETWORKS = {
    "a new VPC": NEW_VPC,
    "an existing VPC": (
        *VPC,
        *NEW_VPC,
        "--subnets",
        "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    ),
    "an existing VPC by zone names": (*VPC, "--zones", "us-east-1a,us-east-1b"),
}
FILES = {
    "app.py",
    "cdk.json",
    "endpoint.schema.json",
    "endpoint.yaml",
    "requirements.txt",
    "package.json",
    ".gitignore",
    "tests/test_endpoint_snapshot.py",
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which nobody has built the wheels, whatever this one has in dist/."""
    return tmp_path_factory.mktemp("checkout")


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    checkout: Path,
) -> Run:
    """Run the command line in an empty folder, without credentials unless the test gives some."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("low_latency_endpoint.cli.init.origin", lambda: checkout)
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["low-latency", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def written(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("template", MODELS)
def test_each_template_is_whole_and_plan_takes_it(
    run: Run, tmp_path: Path, template: str, network: str
) -> None:
    model = ("--template", template, "--model-data", MODELS[template])
    assert run("init", *model, *NETWORKS[network])[0] == 0
    assert written(tmp_path) == FILES
    assert all("$settings" not in (tmp_path / name).read_text("utf-8") for name in FILES)
    status, out, err = run("plan", "--settings", "endpoint.yaml")
    assert (status, err) == (0, "")
    assert "LEAST_OUTSTANDING_REQUESTS" in out
    settings = load_settings("endpoint.yaml")
    (endpoint,) = settings.endpoints.values()
    data = endpoint.containers[0].data
    assert data is not None
    assert MODELS[template] in (data.s3, data.s3_prefix)
    assert (settings.network.vpc_id is None) == (network == "a new VPC")
    # A name that stays when constructs move, and a warm-up: production's.
    assert endpoint.endpoint_name
    assert endpoint.warm_up


#: Files that are named before they are there, and what makes them.
MADE_LATER = {
    "cdk.context.json": "npx cdk synth",
    "manifest.json": "npx cdk synth",
    "result.json": "low-latency load-test",
    "tests/template.json": "pytest",
    "template.json": "pytest",
}
_FILE = re.compile(r"(?<![\w/.-])(?:[\w-]+/)*[\w.-]+\.(?:csv|json|lock|md|py|toml|txt|yaml|yml)\b")


@pytest.mark.parametrize("template", MODELS)
def test_no_text_names_a_file_that_the_app_has_not(run: Run, tmp_path: Path, template: str) -> None:
    assert run("init", "--template", template, "--model-data", MODELS[template], *NEW_VPC)[0] == 0
    texts = {name: (tmp_path / name).read_text("utf-8") for name in FILES}
    del texts["endpoint.schema.json"]  # options' own texts, which the settings page has too
    named = {(name, file) for name, text in texts.items() for file in _FILE.findall(text)}
    assert {(name, file) for name, file in named if file not in FILES | MADE_LATER.keys()} == set()


def test_requirements_name_each_extra_that_users_may_add(run: Run, tmp_path: Path) -> None:
    run("init", "--model-data", ARCHIVE, *NEW_VPC)
    text = (tmp_path / "requirements.txt").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {extra for extra in project["optional-dependencies"] if extra not in text} == set()


def library_wheel(folder: Path) -> Path:
    return folder / f"cdk_low_latency_endpoint-{low_latency_endpoint.__version__}-py3-none-any.whl"


def files_required(requirements: str) -> set[str]:
    """The files that requirements name, without their extras."""
    return set(re.findall(r"^\./([^\[\n]+)", requirements, re.M))


@pytest.mark.parametrize("built", ["both", "the library's"])
def test_both_wheels_are_copied_that_the_requirements_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: str
) -> None:
    """The extra requires the client in a version that no index can have, so pip needs its file."""
    dist = tmp_path / "a dist"
    dist.mkdir()
    wheel = library_wheel(dist)
    wheel.write_bytes(b"library")
    client = dist / client_wheel()
    if built == "both":
        client.write_bytes(b"client")
    monkeypatch.setattr("low_latency_endpoint.cli.init.origin", lambda: wheel)
    app = tmp_path / "app"
    status, out, err = run("init", str(app), "--model-data", ARCHIVE, *NEW_VPC)
    assert (status, err) == (0, "")
    copied = {wheel.name, client.name} if built == "both" else {wheel.name}
    assert written(app) == FILES | copied
    assert files_required((app / "requirements.txt").read_text("utf-8")) == {
        wheel.name,
        client.name,
    }
    assert (app / wheel.name).read_bytes() == b"library"
    if built == "both":
        assert (app / client.name).read_bytes() == b"client"
        assert "  cp " not in out
    else:
        assert f"  cp '{client}' ." in out
    # An app that exists is told the lines of both.
    _, out, _ = run("init", str(app), "--settings", "more.yaml", "--model-data", ARCHIVE, *NEW_VPC)
    assert files_required(out.replace("  ./", "./")) == {wheel.name, client.name}


def test_an_app_of_a_checkout_is_told_to_copy_both_wheels(run: Run, checkout: Path) -> None:
    _, out, _ = run("init", "--model-data", ARCHIVE, *NEW_VPC)
    for wheel in (library_wheel(checkout / "dist"), checkout / "dist" / client_wheel()):
        assert f"  cp {wheel} ." in out


def test_what_is_commented_out_is_valid_too(run: Run) -> None:
    run("init", "--model-data", ARCHIVE, *NEW_VPC)
    path = Path("endpoint.yaml")
    text = path.read_text(encoding="utf-8")
    for line in ("    # throughput:", "    #   peak_tps", "    #   tps_per", "# alarm_topic_arn"):
        assert line in text
        text = text.replace(line, line.replace("# ", "", 1))
    path.write_text(text, encoding="utf-8")
    settings = load_settings(path)
    assert settings.alarm_topic_arn
    assert settings.endpoints["sentiment"].throughput


def test_all_that_is_missing_is_listed(run: Run, tmp_path: Path) -> None:
    status, out, err = run("init")
    assert (status, out) == (2, "")
    assert "--model-data, --region, --zones are missing" in err
    status, out, err = run("init", *VPC[:2], "--zones", "use1-az1,use1-az2")
    assert (status, out) == (2, "")
    assert "--model-data, --account, --subnets are missing" in err
    assert not written(tmp_path)


@pytest.mark.parametrize("template", [*MODELS, "hugging-face"])
@pytest.mark.parametrize(
    "stated",
    [(), VPC[:2], (*VPC[:2], "--zones", "use1-az1,use1-az2,use1-az4"), ("--region", "us-east-1")],
    ids=" ".join,
)
def test_what_the_message_adds_is_enough(
    run: Run, tmp_path: Path, template: str, stated: tuple[str, ...]
) -> None:
    arguments = ("--template", template, *stated)
    status, _, err = run("init", *arguments)
    assert (status, written(tmp_path)) == (2, set())
    line = " ".join(err.replace("\u2502", " ").split()).partition("your values: ")[2]
    status, _, err = run("init", *arguments, *line.partition(". With credentials")[0].split())
    assert (status, err) == (0, "")


def test_a_vpc_that_exists_keeps_its_dns_unless_somebody_says_so(run: Run) -> None:
    assert run("init", "--model-data", ARCHIVE, *NETWORKS["an existing VPC"])[0] == 0
    status, out, _ = run("plan", "--settings", "endpoint.yaml", "-v")
    assert (status, "private DNS makes" in out) == (0, False)
    assert load_settings("endpoint.yaml").private_link.private_dns is False


@pytest.mark.parametrize("network", NETWORKS)
def test_each_next_step_works_after_the_one_before(run: Run, network: str) -> None:
    """What a step needs, and the step that brings it."""
    _, out, _ = run("init", "--model-data", ARCHIVE, *NETWORKS[network])
    steps = out.partition("Next:")[2]
    order = [
        "pip install",
        "npm install",
        "low-latency plan",
        "npx cdk synth",
        "  pytest ",
        "npx cdk deploy",
    ]
    if network == "a new VPC":
        order.remove("npx cdk synth")
    places = [steps.index(step) for step in order]
    assert places == sorted(places)


@pytest.mark.parametrize("there", ["app.py", "endpoint.yaml", "requirements.txt"])
def test_nothing_is_overwritten(run: Run, tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    status, _, err = run("init", "--model-data", ARCHIVE, *NEW_VPC)
    assert status == 2
    assert there in err
    assert written(tmp_path) == {there}
    assert (tmp_path / there).read_text() == "mine"


def test_an_answer_that_cannot_be_is_explained_before_anything_is_written(
    run: Run, tmp_path: Path
) -> None:
    status, _, err = run("init", "--model-data", "s3://b/model.tar.gz", *NEW_VPC)
    assert status == 2
    assert "LLE387" in err
    assert not written(tmp_path)


def test_an_app_that_exists_gets_a_settings_file_and_is_told_its_lines(
    run: Run, tmp_path: Path
) -> None:
    mine = {"app.py": "print()", "cdk.json": '{"app": "python3 app.py"}', "requirements.txt": ""}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    status, out, _ = run("init", "--model-data", ARCHIVE, *NEW_VPC)
    assert status == 0
    new = {"endpoint.yaml", "endpoint.schema.json", "tests/test_endpoint_snapshot.py"}
    assert written(tmp_path) == {*mine, *new}
    committed = (ROOT / "endpoint.schema.json").read_text("utf-8")
    assert (tmp_path / "endpoint.schema.json").read_text("utf-8") == committed
    assert all((tmp_path / name).read_text() == text for name, text in mine.items())
    assert 'LowLatencyEndpointStack.from_settings(app, "endpoint.yaml")' in out
    # And a second endpoint's stack beside the first.
    more = ("--settings", "chat.yaml", "--template", "language-model", "--model-data", PREFIX)
    assert run("init", *more, *NEW_VPC)[0] == 0
    assert load_settings("chat.yaml").stack_name != load_settings("endpoint.yaml").stack_name


def test_an_app_in_another_language_is_led_to_another_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text('{"app": "npx ts-node bin/app.ts"}')
    status, _, err = run("init", "--model-data", ARCHIVE, *NEW_VPC)
    assert (status, written(tmp_path)) == (2, {"cdk.json"})
    assert "npx ts-node" in err
    assert "low-latency init serving" in err


def test_the_feature_flags_are_this_repositorys(run: Run, tmp_path: Path) -> None:
    run("init", "--model-data", ARCHIVE, *NEW_VPC)
    ours = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))
    assert json.loads((tmp_path / "cdk.json").read_text())["context"] == ours["context"]
    cli = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    started = json.loads((tmp_path / "package.json").read_text())["devDependencies"]
    assert started == {"aws-cdk": cli["aws-cdk"]}  # axe is for the pages of this repository's tests


# --- with credentials ---------------------------------------------------------------------------


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, run: Run) -> Iterator[LocalAws]:
    with LocalAws.in_process(region="eu-west-1") as aws:
        for name, value in aws.exports().items():
            monkeypatch.setenv(name, value)
        yield aws


def test_credentials_tell_account_region_and_zones(run: Run, aws: LocalAws) -> None:
    status, _, err = run("init", "--model-data", ARCHIVE)
    assert status == 0, err
    settings = load_settings("endpoint.yaml")
    assert (settings.account, settings.region) == (aws.account, "eu-west-1")
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    assert list(settings.client_zones.zones) == sorted(each["ZoneId"] for each in zones)[:2]
    # Nobody said that the callers run there.
    assert "not said: the region's first two" in Path("endpoint.yaml").read_text()


ODD_KINDS: dict[str, Callable[[Path], object]] = {
    "dangling link": lambda path: path.symlink_to("/nonexistent"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a folder": lambda path: path.symlink_to(path.parents[2] / "elsewhere"),
    "link to an unending device": lambda path: path.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "empty file": Path.touch,
    "large file": lambda path: path.write_bytes(b" " * (2 << 20)),
    "binary file": lambda path: path.write_bytes(b"\xff\xfe"),
}


@pytest.mark.parametrize("kind", ODD_KINDS)
@pytest.mark.parametrize("name", sorted({*FILES, "tests"}))
def test_nothing_is_written_where_something_odd_is(
    run: Run, tmp_path: Path, name: str, kind: str
) -> None:
    """Of each file that would be written, and of their folder, there is one of each kind already."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "a" / "folder"
    (folder / name).parent.mkdir(parents=True)
    ODD_KINDS[kind](folder / name)
    before = written(folder)
    status, _, err = run("init", str(folder), "--model-data", ARCHIVE, *NEW_VPC)
    assert "Traceback" not in err
    assert not list(elsewhere.iterdir())
    is_folder_of_ours = (name, kind) == ("tests", "folder")
    assert status == (0 if name == "endpoint.schema.json" or is_folder_of_ours else 2), err
    if status:
        assert written(folder) == before


def test_an_existing_vpcs_private_subnets_are_found_with_their_zones(
    run: Run, aws: LocalAws
) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    made = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=zone)["Subnet"]
        for block, zone in (
            ("10.0.0.0/20", "eu-west-1a"),  # the largest, but public
            ("10.0.16.0/24", "eu-west-1a"),
            ("10.0.17.0/24", "eu-west-1b"),
            ("10.0.32.0/21", "eu-west-1b"),
        )
    ]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    ec2.associate_route_table(RouteTableId=table, SubnetId=made[0]["SubnetId"])
    status, _, err = run("init", "--model-data", ARCHIVE, "--vpc-id", vpc)
    assert status == 0, err
    settings = load_settings("endpoint.yaml")
    assert settings.network.subnets == {
        made[1]["AvailabilityZoneId"]: made[1]["SubnetId"],
        made[3]["AvailabilityZoneId"]: made[3]["SubnetId"],
    }
    # Which other one there was, the file says.
    assert f"# or {made[2]['SubnetId']}" in Path("endpoint.yaml").read_text()


def test_a_vpc_that_is_not_there_is_said(run: Run, aws: LocalAws, tmp_path: Path) -> None:
    status, _, err = run("init", "--model-data", ARCHIVE, "--vpc-id", "vpc-00000000000000000")
    assert status == 2
    assert "vpc-00000000000000000 has no subnets in eu-west-1" in err
    assert not written(tmp_path)
