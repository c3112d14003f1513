"""When Locust stops a test: nothing that callers waited for vanishes, and every test is told of."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from .locust_runs import (
    aggregated,
    counts_said,
    exit_code_said,
    locust,
    locusts_page,
    page_of,
    percentiles_said,
    two_processes,
    until,
    write_locustfile,
)
from .servers import precise_server

pytestmark = pytest.mark.realtime

ARRIVALS = "arrivals = ConstantArrivals(100)"


@pytest.mark.parametrize("processes", [1, 2])
def test_callers_of_a_dead_endpoint_do_not_vanish(tmp_path: Path, processes: int) -> None:
    """The server answers a hundred requests and then nobody, until Locust ends the test."""
    with precise_server([0.02] * 100 + [900.0] * 10_000) as server:
        options = "--csv run --html run.html"
        done = locust(tmp_path, server, options, processes, attributes=ARRIVALS, requests=300)
    ((sent, due, answered, failed),) = counts_said(done.stderr)
    assert done.returncode == 1
    assert sent == answered + failed == due
    assert answered == 100
    assert failed >= 200
    assert f"{failed:,} times no answer when stopped" in done.stderr
    assert f"{answered:,} answers and {failed:,} requests that waited in vain" in done.stderr
    said = percentiles_said(done.stderr)
    assert said["p99"] > 1000
    assert f"generator: {processes} process" in done.stderr

    total = aggregated(tmp_path)
    assert (int(total["Request Count"]), int(total["Failure Count"])) == (sent, failed)
    assert float(total["99%"]) == pytest.approx(said["p99"], rel=0.01)
    row = page_of(tmp_path)["requests_statistics"][-1]
    assert (row["num_requests"], row["num_failures"]) == (sent, failed)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("seconds", "requests", "options"),
    [(0.3, 100, "--csv run"), (1.5, 150, "--stop-timeout 60 --csv run")],
)
def test_requests_under_way_to_a_healthy_endpoint_are_waited_for(
    tmp_path: Path, processes: int, seconds: float, requests: int, options: str
) -> None:
    with precise_server([seconds]) as server:
        done = locust(tmp_path, server, options, processes, attributes=ARRIVALS, requests=requests)
        count = len(server.times())
    assert done.returncode == exit_code_said(done.stderr), done.stderr
    assert count >= requests
    assert counts_said(done.stderr) == [(count, count, count, 0)]
    assert int(aggregated(tmp_path)["Request Count"]) == count


@pytest.mark.parametrize("processes", [1, 2])
def test_each_test_of_locusts_page_is_told_of_when_it_stops(tmp_path: Path, processes: int) -> None:
    with precise_server([0.02]) as server:
        write_locustfile(tmp_path, server, ARRIVALS)
        page_file = tmp_path / "locustfile.py"
        # The page stays when a test has ended.
        page_file.write_text(page_file.read_text().replace("runner.quit()", "pass"))
        served = 0
        options = two_processes() if processes == 2 else []
        with locusts_page(tmp_path, *options) as (page, log):
            until(lambda: ready(page, processes))
            for number in (1, 2):
                before = served
                ask(f"{page}/swarm", user_count=processes, spawn_rate=2)
                until(lambda before=before: len(server.times()) > before + 80)
                ask(f"{page}/stop")
                until(lambda number=number: len(counts_said(log.read_text())) == number)
                served = len(server.times())
                sent, due, answered, failed = counts_said(log.read_text())[-1]
                assert sent == due == answered == served - before, "of this test alone"
                assert failed == 0
            time.sleep(1)  # which would have lowered the share of the processor
        output = log.read_text()
    assert len(counts_said(output)) == 2, "nothing is told again at the end"
    assert output.count(f"generator: {processes} process") == 2
    assert "busiest 0% of a core" not in output


def ready(page: str, processes: int) -> bool:
    """Whether Locust serves its page and, with more than one process, has its workers."""
    try:
        with urllib.request.urlopen(f"{page}/stats/requests", timeout=10) as answer:
            found = json.loads(answer.read())
    except OSError:
        return False
    return processes == 1 or len(found.get("workers", ())) == processes


def ask(address: str, **form: object) -> None:
    """Press a button of Locust's page; it wants a POST, even of nothing."""
    data = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(address, data=data, timeout=90) as answer:
        assert answer.status == 200
