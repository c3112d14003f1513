"""Locust's own table, CSV, HTML and page with figures that hold, from a plain locustfile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.load_test.engine.locust_statistics import bucket_response_time

from .locust_runs import aggregated, counts_said, exit_code_said, locust, page_of, percentiles_said
from .servers import precise_server, said_by

pytestmark = pytest.mark.realtime


@given(st.floats(0, 3_600_000))
def test_a_bucket_is_at_most_a_tenth_of_a_percent_or_a_microsecond_away(
    milliseconds: float,
) -> None:
    found = bucket_response_time(milliseconds)
    assert found == pytest.approx(milliseconds, rel=0.001, abs=0.001)


@given(st.floats(0, 3_600_000), st.floats(0, 3_600_000))
def test_buckets_keep_the_order(one: float, other: float) -> None:
    if one <= other:
        assert bucket_response_time(one) <= bucket_response_time(other)


def test_there_are_few_enough_buckets_for_a_report_every_three_seconds() -> None:
    decade = {bucket_response_time(number / 1000) for number in range(10_000, 100_000)}
    assert len(decade) < 2000


def test_a_stall_shows_in_every_figure_of_locust(tmp_path: Path) -> None:
    """Two workers, 100 requests a second, half a second each; two seconds without an answer."""
    with precise_server([0.5], stall=(2, 2)) as server:
        seven = "arrivals = ConstantArrivals(100)\n    seconds = 7"
        done = locust(tmp_path, server, "--csv run --html run.html", 2, attributes=seven)
        true = sorted(server.times())
    output = done.stderr
    busy = exit_code_said(output)
    assert done.returncode == busy, output

    said = percentiles_said(output)
    assert said["p99"] > 1800
    if not busy:
        # The median is the server's own; other work on the machine may add some milliseconds.
        assert said["p50"] == pytest.approx(1000 * true[len(true) // 2], rel=0.03)
    assert "700 of 700 requests that were due were sent, 700 answered well" in output, output
    assert "2 processes" in output

    total = aggregated(tmp_path)
    assert total["Name"] == "Aggregated"
    assert float(total["99%"]) > 1800
    assert float(total["99%"]) == pytest.approx(said["p99"], rel=0.05)  # one sample's rank apart
    assert float(total["50%"]) == pytest.approx(said["p50"], rel=0.002)
    assert total["50%"] == str(bucket_response_time(float(total["50%"])))

    table = next(line for line in output.splitlines()[::-1] if " Aggregated " in line)
    assert float(table.split()[1]) == pytest.approx(said["p50"], rel=0.002)

    found = page_of(tmp_path)
    (row,) = (one for one in found["response_time_statistics"] if one["name"] == "Aggregated")
    assert row["0.99"] == pytest.approx(float(total["99%"]))
    shown = found["requests_statistics"][-1]
    assert shown["min_response_time"] == pytest.approx(float(total["Min Response Time"]), abs=1e-3)
    assert shown["max_response_time"] == pytest.approx(float(total["Max Response Time"]), abs=1e-3)


def test_the_number_of_users_shares_the_rate_and_does_not_change_it(tmp_path: Path) -> None:
    for users in (1, 3):
        with precise_server([0.01]) as server:
            one = "arrivals = ConstantArrivals(100)\n    seconds = 1"
            done = locust(tmp_path, server, f"-u {users} -r 10", attributes=one)
            count = len(server.times())
        busy = exit_code_said(done.stderr)
        assert done.returncode == busy, done.stderr
        ((_, due, _, _),) = counts_said(done.stderr)
        assert due == 100
        assert count == 100 or (busy and count < 100), done.stderr


SHAPE = """arrivals = ConstantArrivals(100)

from locust import LoadTestShape

class OneThreeTwo(LoadTestShape):
    def tick(self):
        second = self.get_run_time()
        return (1, 10) if second < 1 else (3, 10) if second < 2 else (2, 10) if second < 4 else None
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_users_who_come_and_go_share_the_rate_anew(tmp_path: Path, processes: int) -> None:
    with precise_server([0.01]) as server:
        done = locust(tmp_path, server, "", processes, attributes=SHAPE)
        count = len(server.times())
    assert done.returncode == exit_code_said(done.stderr), done.stderr
    # 400 without what spawning takes; without sharing anew it would be twice as much.
    assert 110 < count < 550
    sent, due, *_ = counts_said(done.stderr)[-1]
    assert due - 20 <= sent <= due
    assert abs(sent - count) < 60


def test_finished_arrivals_end_their_users(tmp_path: Path) -> None:
    with precise_server([0.01]) as server:
        ramp = "arrivals = RampArrivals(10, 90, poisson=False)\n    seconds = 2"
        done = locust(tmp_path, server, "-u 2 -r 10", attributes=ramp)
        busy = exit_code_said(done.stderr)
        assert done.returncode == busy, done.stderr
        assert len(server.times()) == 100 or busy, done.stderr
    assert "100 of 100 requests that were due were sent, 100 answered well" in done.stderr


def test_a_locustfile_without_arrivals_is_refused_with_a_code(tmp_path: Path) -> None:
    with precise_server([0.01]) as server:
        done = locust(tmp_path, server, "-u 1", attributes="arrivals = None")
    assert done.returncode == 2
    assert "LLT131" in done.stderr


def test_importing_the_user_finds_locust_patched_in_its_own_process() -> None:
    program = (
        "import low_latency_endpoint.load_test.engine.open_loop\n"
        "from locust import stats\n"
        "print(stats.bucket_response_time(23.73), stats.PERCENTILES_TO_REPORT[-3:])"
    )
    assert said_by(program) == "23.72 [0.999, 0.9999, 1.0]"
