"""Timeouts, retries, socket options and budgets."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from low_latency_client.timing import Budget, ClientCounts, call_timing, socket_options

from .refusals import refused


@pytest.mark.parametrize(
    ("target", "connect", "read", "delay"),
    [
        (1, 250, 1_000, 0.5),
        (100, 250, 1_000, 50),
        (200, 400, 2_000, 100),
        (2_000, 3_000, 20_000, 100),
        (60_000, 3_000, 70_000, 100),
    ],
)
def test_timing_follows_the_target(target: int, connect: int, read: int, delay: float) -> None:
    timing = call_timing(timedelta(milliseconds=target))
    assert timing.connect_timeout == timedelta(milliseconds=connect)
    assert timing.read_timeout == timedelta(milliseconds=read)
    assert timing.retry_delay == timedelta(milliseconds=delay)
    assert timing.retries == 1


def test_the_callers_own_numbers_win() -> None:
    timing = call_timing(
        timedelta(milliseconds=100),
        connect_timeout=timedelta(seconds=5),
        read_timeout=timedelta(seconds=7),
        retries=0,
    )
    assert timing.longest_call == timedelta(seconds=12)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"latency_target": timedelta(0)}, "LLC101"),
        ({"latency_target": timedelta(seconds=-1)}, "LLC101"),
        ({"latency_target": 0.2}, "LLC125"),
        ({"latency_target": timedelta(seconds=1), "read_timeout": 3}, "LLC125"),
        ({"latency_target": timedelta(seconds=1), "connect_timeout": timedelta(0)}, "LLC101"),
        ({"latency_target": timedelta(seconds=1), "retries": 6}, "LLC104"),
        ({"latency_target": timedelta(seconds=1), "retries": "1"}, "LLC104"),
    ],
)
def test_bad_timing_is_a_coded_error(arguments: dict[str, object], code: str) -> None:
    with refused(code):
        call_timing(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [1, 60, 300])
def test_a_dead_connection_is_noticed_before_private_link_drops_it(seconds: int) -> None:
    options = {
        (level, name): value
        for level, name, value in socket_options(timedelta(seconds=seconds), timedelta(seconds=1))
    }
    idle = options[socket.IPPROTO_TCP, socket.TCP_KEEPIDLE]
    interval = options[socket.IPPROTO_TCP, socket.TCP_KEEPINTVL]
    assert idle == seconds
    assert interval >= 1
    assert idle + interval * options[socket.IPPROTO_TCP, socket.TCP_KEEPCNT] < 350
    assert options[socket.SOL_SOCKET, socket.SO_KEEPALIVE] == 1
    assert options[socket.IPPROTO_TCP, socket.TCP_NODELAY] == 1


def test_the_kernel_takes_the_options() -> None:
    with socket.socket() as made:
        for level, name, value in socket_options(timedelta(seconds=60), timedelta(seconds=1)):
            made.setsockopt(level, name, value)
            assert made.getsockopt(level, name) in (value, 1)


@pytest.mark.parametrize("keepalive", [timedelta(seconds=350), timedelta(0), timedelta(hours=2)])
def test_keep_alive_that_comes_too_late(keepalive: timedelta) -> None:
    with refused("LLC103"):
        socket_options(keepalive, timedelta(seconds=1))


def test_a_budget_is_a_share_of_the_requests() -> None:
    budget = Budget(0.1, reserve=1)
    spent = 0
    for _ in range(1_000):
        budget.earn()
        spent += budget.spend()
    assert 100 <= spent <= 101


def test_counts_lose_nothing_between_threads() -> None:
    counts = ClientCounts()
    with ThreadPoolExecutor(8) as threads:
        for _ in range(8):
            threads.submit(lambda: [counts.add("retries") for _ in range(2_000)])
    assert counts.as_dict()["retries"] == 16_000
