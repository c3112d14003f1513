"""AWS's Price List: which lines count, what is refused, and the file that comes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError, SettingsError
from low_latency_endpoint.facts.prices import priced_items
from low_latency_endpoint.operate.price_list import Wanted, read_offer, read_price_list
from low_latency_endpoint.plan.price_file import price_file_text, read_price_file
from low_latency_endpoint.settings import load_settings, stack_cost

from .offers import OFFERS, SAGEMAKER, VPC, offer

TODAY = date(2026, 11, 23)
G5 = Wanted("us-east-1", frozenset({"ml.g5.xlarge"}), TODAY)
SETTINGS = {
    "client_zones": {"ids": ["use1-az1", "use1-az2"]},
    "endpoints": {
        "mood": {
            "containers": [{"image": {"uri": "example/image:1"}}],
            "instance_type": "ml.g5.xlarge",
            "latency": {"p99": "200ms"},
        }
    },
}


def found(text: str, wanted: Wanted = G5) -> dict[str, float]:
    lines = iter(text.splitlines(keepends=True))
    return {each.item: each.usd for each in read_offer(lines, wanted, "here")}


def test_of_an_instance_the_price_of_hosting_on_demand_is_taken() -> None:
    """Asynchronous endpoints, training, reservations and disks have other lines."""
    assert found(SAGEMAKER) == {"ml.g5.xlarge": 1.408}
    everything = found(SAGEMAKER, Wanted("us-east-1", None, TODAY))
    assert everything == {"ml.g5.xlarge": 1.408, "ml.m5.xlarge": 0.23}


def test_of_tiers_the_first_is_taken_and_of_endpoints_the_interface_endpoint() -> None:
    assert found(VPC) == {"interface_endpoint": 0.01, "interface_endpoint_data": 0.01}


def test_every_item_is_found_where_its_table_says() -> None:
    listed: dict[str, float] = {}
    for text in OFFERS.values():
        listed |= found(text)
    assert set(listed) == {"ml.g5.xlarge", *priced_items()}
    assert listed["function_request"] == 2e-7
    assert listed["function_memory"] == 0.0000133334
    assert listed["composite_alarm"] == 0.5
    assert listed["custom_metric"] == 0.3  # of the first 10,000


def test_prices_of_other_regions_are_passed_over() -> None:
    assert found(SAGEMAKER, Wanted("eu-west-1", None, TODAY)) == {}


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (SAGEMAKER[: -len('"US East (N. Virginia)","USE1-"')], "the download may be incomplete"),
        ("<Error><Code>AccessDenied</Code></Error>", "nothing of an offer file"),
        ("", "nothing of an offer file"),
        (SAGEMAKER.replace('"PricePerUnit"', '"Price"'), "no column priceperunit"),
        (SAGEMAKER.replace('"1.4080000000"', '"free"'), "'free' in line 7"),
        (SAGEMAKER.replace('"1.4080000000"', '"nan"'), "'nan' in line 7"),
        (SAGEMAKER.replace('"1.4080000000"', '"-1.4"'), "'-1.4' in line 7"),
        (SAGEMAKER.replace('"1.4080000000"', "1" * 200_000), "field larger than field limit"),
    ],
)
def test_what_is_no_whole_offer_file_is_refused(text: str, got: str) -> None:
    with pytest.raises(ConfigurationError, match=r"LLE892") as refused:
        found(text)
    assert got in str(refused.value)


def test_an_item_with_two_prices_is_not_taken_but_told(tmp_path: Path) -> None:
    rows = [("OnDemand", "0", usd, "USE1-Host:ml.g5.xlarge") for usd in ("1.4", "1.5", "1.4")]
    path = tmp_path / "two.csv"
    path.write_text(offer("AmazonSageMaker", rows), encoding="utf-8")
    both = read_price_list(G5, [str(path)])
    assert (both.prices, both.unclear) == ((), {"ml.g5.xlarge": "1.4 and 1.5"})


Answer = Callable[[BaseHTTPRequestHandler, bytes], None]


def _answered(request: BaseHTTPRequestHandler, body: bytes, until: int | None = None) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body[:until])


def _half(request: BaseHTTPRequestHandler, body: bytes) -> None:
    """Ends after a line, where the rows look whole."""
    _answered(request, body, body.index(b"\n", len(body) // 2) + 1)


def _missing(request: BaseHTTPRequestHandler, body: bytes) -> None:
    request.send_error(404)


@contextmanager
def price_list(answer: Answer = _answered) -> Iterator[tuple[str, list[str]]]:
    """AWS's Price List on loopback: its address, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer(self, OFFERS[self.path.split("/")[4]].encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def low_latency(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, arguments)
    if isinstance(done.exception, ConfigurationError):
        return 2, str(done.exception)
    return done.exit_code, done.output


def state(path: Path, **more: object) -> Path:
    """Write the settings, with more of the stack's."""
    path.write_text(yaml.safe_dump({**SETTINGS, **more}), encoding="utf-8")
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return state(tmp_path / "endpoint.yaml")


def test_the_file_is_written_beside_the_settings_and_the_plan_counts_with_it(
    settings: Path,
) -> None:
    with price_list() as (url, asked):
        code, printed = low_latency("prices", "--settings", str(settings), "--from", url)
    assert code == 0, printed
    assert asked == [f"/offers/v1.0/aws/{each}/current/us-east-1/index.csv" for each in OFFERS]
    written = settings.with_name("prices-us-east-1.csv")
    text = written.read_text(encoding="utf-8")
    today = datetime.now(UTC).date().isoformat()
    assert (
        f"\nml.g5.xlarge,us-east-1,1.408,instance-hour,2026-09-20,20260920170512,{today},{url}"
        in text
    )
    assert "\nfunction_request,us-east-1,0.0000002,request," in text  # no 2e-07
    assert "prices: {file: prices-us-east-1.csv}" in printed
    state(settings, prices={"file": written.name})
    price = stack_cost(load_settings(settings)).endpoints["mood"].price
    assert price is not None
    assert price.usd == 1.408
    assert price.origin == f"AWS's Price List in us-east-1, published 2026-09-20, read {today}"
    # What is stated beside the file wins.
    state(settings, prices={"ml.g5.xlarge": 1.1, "file": written.name})
    mine = stack_cost(load_settings(settings)).endpoints["mood"].price
    assert mine is not None
    assert (mine.usd, mine.origin) == (1.1, "yours")


def test_the_file_that_the_settings_name_already_is_written_anew(settings: Path) -> None:
    """As in a fresh clone, and when it is spoilt."""
    state(settings, prices={"file": "prices-us-east-1.csv", "m5.nonsense": -1})
    written = settings.with_name("prices-us-east-1.csv")
    with price_list() as (url, _):
        assert low_latency("prices", "--settings", str(settings), "--from", url)[0] == 0
        written.write_text("spoilt", encoding="utf-8")
        assert low_latency("prices", "--settings", str(settings), "--from", url)[0] == 0
    assert read_price_file(written)["ml.g5.xlarge"].usd == 1.408


@pytest.mark.parametrize(("answer", "got"), [(_half, "bytes early"), (_missing, "Not Found")])
def test_of_a_partial_download_nothing_is_written(settings: Path, answer: Answer, got: str) -> None:
    with price_list(answer) as (url, _):
        code, printed = low_latency("prices", "--settings", str(settings), "--from", url)
    assert code == 2
    assert "LLE892" in printed
    assert got in printed
    assert list(settings.parent.iterdir()) == [settings]


def test_a_download_that_takes_too_long_is_given_up() -> None:
    with price_list() as (url, _), pytest.raises(ConfigurationError, match="longer than"):
        read_price_list(G5, [url], seconds=0.0)


@pytest.mark.parametrize("url", ["http://example.com", "ftp://127.0.0.1", "file:///etc/passwd"])
def test_prices_come_over_https(url: str) -> None:
    with pytest.raises(ConfigurationError, match="LLE892"):
        read_price_list(G5, [url])


def test_files_that_were_downloaded_serve_as_well_and_what_they_lack_is_told(
    settings: Path, tmp_path: Path
) -> None:
    file = tmp_path / "sagemaker.csv"
    file.write_text(SAGEMAKER, encoding="utf-8")
    output = tmp_path / "mine.csv"
    code, printed = low_latency(
        "prices", "--settings", str(settings), "--from", str(file), "-o", str(output),
        "--instance-type", "ml.p5.48xlarge",
    )  # fmt: skip
    assert code == 1
    assert set(read_price_file(output)) == {"ml.g5.xlarge"}
    assert "No price: ml.p5.48xlarge." in printed
    assert "No price: alarm." in printed


def test_without_settings_region_and_types_are_needed(tmp_path: Path) -> None:
    assert low_latency("prices")[0] == 2
    assert low_latency("prices", "--region", "us-east-1")[0] == 2
    code, printed = low_latency("prices", "--region", "us-east-1", "--instance-type", "g5.xlarge")
    assert code == 2
    assert "--instance-type" in printed


def test_a_price_file_of_another_region_is_refused(settings: Path, tmp_path: Path) -> None:
    (tmp_path / "sagemaker.csv").write_text(SAGEMAKER, encoding="utf-8")
    listed = read_price_list(G5, [str(tmp_path / "sagemaker.csv")]).prices
    (tmp_path / "prices.csv").write_text(price_file_text(listed), encoding="utf-8")
    elsewhere = {"ids": ["euw1-az1", "euw1-az2"]}
    state(settings, client_zones=elsewhere, prices={"file": "prices.csv"})
    with pytest.raises(ConfigurationError, match="LLE891"):
        stack_cost(load_settings(settings))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "LLE890"),
        ("item,usd\nml.g5.xlarge,1\n", "LLE890"),
        ("x,us-east-1,1,request,a,b,2026-11-23,c", "LLE882"),
        ("ml.g5.xlarge,us-east-1,-1,request,a,b,2026-11-23,c", "LLE883"),
        ("ml.g5.xlarge,us-east-1,much,request,a,b,2026-11-23,c", "LLE890"),
        ("ml.g5.xlarge,us-east-1,1,request,a,b,yesterday,c", "LLE890"),
        ("ml.g5.xlarge,us-east-1,1,request,a,b", "LLE890"),
        ("ml.g5.xlarge,us-east-1,1,request,a,b,2026-11-23,c,d", "LLE890"),
        ('ml.g5.xlarge,us-east-1,1,request,"a"b,b,2026-11-23,c', "LLE890"),
        ("alarm,us-east-1,1,r,a,b,2026-11-23,c\nalarm,us-east-1,1,r,a,b,2026-11-23,c", "LLE890"),
        ("alarm,us-east-1,1,r,a,b,2026-11-23,c\nlogs,eu-west-1,1,r,a,b,2026-11-23,c", "LLE890"),
    ],
)
def test_a_price_file_of_another_form_is_refused(
    settings: Path, text: str | None, code: str
) -> None:
    if text is not None:
        head = "" if text.startswith("item") else price_file_text(())
        settings.with_name("prices.csv").write_text(f"{head}{text}\n", encoding="utf-8")
    state(settings, prices={"file": "prices.csv"})
    with pytest.raises(SettingsError, match=code):
        load_settings(settings)
