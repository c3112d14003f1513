"""Which kept connection is used: the one used last among those that have rested."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Any

import pytest

from low_latency_client.http_connections import (
    LONG_REST_SECONDS,
    REST_SECONDS,
    SURE_SECONDS,
    KeptConnections,
    Peer,
    peer_watch,
)

ORIGIN = "https://h"


@dataclass(eq=False)
class Kept:
    name: str
    idle_since: float = 0.0
    aborted: bool = False
    peer: Peer = field(default_factory=lambda: Peer(1.0))

    def abort(self) -> None:
        self.aborted = True


def kept_at(*times: float, most: int | None = None) -> KeptConnections[Any]:
    kept: KeptConnections[Any] = KeptConnections(most)
    for at in times:
        kept.put(ORIGIN, Kept(str(at)), at)
    return kept


@pytest.mark.parametrize("sure", [True, False])
def test_the_one_used_last_that_has_rested(sure: bool) -> None:
    kept = kept_at(1, 2, 3, 9.9999)
    names = []
    for _ in range(3):
        found, _ = kept.take(ORIGIN, 10, sure=sure)
        assert found is not None
        names.append(found.name)
    assert names == ["3", "2", "1"]


def test_when_none_has_rested() -> None:
    first, second = 10 - REST_SECONDS * 0.8, 10 - REST_SECONDS * 0.2
    for sure in (True, False):
        found, pause = kept_at(first, second).take(ORIGIN, 10, sure=sure)
        assert found is not None
        assert (found.name, pause) == (str(first), 0)


def test_a_call_that_cannot_be_repeated_waits_for_a_farewell_behind_the_answer() -> None:
    just_now = kept_at(10 - SURE_SECONDS * 0.2)
    found, pause = just_now.take(ORIGIN, 10, sure=True)
    assert found is None
    assert pause == pytest.approx(SURE_SECONDS * 0.8)
    found, pause = just_now.take(ORIGIN, 10, sure=False)
    assert (found is not None, pause) == (True, 0)


def test_a_peer_that_ends_connections_makes_wary_for_a_while() -> None:
    kept = kept_at(9, 9.999)
    found, _ = kept.take(ORIGIN, 10, sure=False)
    assert found is not None
    kept.ended(ORIGIN, found, 9.5)
    found, pause = kept.take(ORIGIN, 10, sure=False)
    assert found is None
    assert pause == pytest.approx(REST_SECONDS - 0.001)
    found, pause = kept.take(ORIGIN, 10, sure=True)
    assert found is None
    assert pause == pytest.approx(LONG_REST_SECONDS - 0.001)
    kept.put(ORIGIN, Kept("later"), 100)
    found, _ = kept.take(ORIGIN, 100, sure=False)
    assert found is not None


def test_an_end_after_long_idleness_makes_nobody_wary() -> None:
    kept = kept_at(1, 99.999)
    found, _ = kept.take(ORIGIN, 100, sure=False)
    assert found is not None
    assert found.name == "1"
    kept.ended(ORIGIN, found, 100)
    found, _ = kept.take(ORIGIN, 100, sure=False)
    assert found is not None


def test_old_ones_are_closed_and_no_more_are_kept_than_asked_for() -> None:
    kept = kept_at(1, 2, 400)
    old = list(kept._by_origin[ORIGIN][:2])
    found, _ = kept.take(ORIGIN, 401, sure=True)
    assert found is not None
    assert found.name == "400"
    assert all(one.aborted for one in old)
    assert kept.take(ORIGIN, 401, sure=True) == (None, 0.0)
    full = kept_at(1, 2, most=2)
    third = Kept("3")
    full.put(ORIGIN, third, 3)
    assert third.aborted


def of_peers(*peers: Peer, most: int | None = None) -> KeptConnections[Any]:
    """Rested connections to these, the last one used last."""
    kept: KeptConnections[Any] = KeptConnections(most)
    for at, peer in enumerate(peers, 1):
        kept.put(ORIGIN, Kept(str(at), peer=peer), at)
    return kept


@pytest.mark.parametrize("sure", [True, False])
def test_a_peer_in_doubt_gets_no_request_until_it_says_something(sure: bool) -> None:
    silent, other = Peer(1), Peer(1)
    kept = of_peers(silent, other, silent)
    silent.doubted = 5
    found, _ = kept.take(ORIGIN, 10, sure=sure)
    assert found is not None
    assert found.name == "2"
    assert kept.take(ORIGIN, 10, sure=sure) == (None, 0.0)
    silent.heard = 6
    found, _ = kept.take(ORIGIN, 10, sure=sure)
    assert found is not None
    assert found.name == "3"


def test_a_silence_closes_what_was_kept_to_that_peer_before_it() -> None:
    silent, other = Peer(1), Peer(1)
    kept = of_peers(silent, other, silent, silent)
    all_of_them = list(kept._by_origin[ORIGIN])
    kept.drop(silent, 3)
    assert [one.name for one in all_of_them if one.aborted] == ["1", "3"]
    assert [one.name for one in kept._by_origin[ORIGIN]] == ["2", "4"]


def test_a_connection_in_doubt_makes_room_for_a_good_one() -> None:
    silent, other = Peer(1), Peer(1)
    kept = of_peers(other, silent, most=2)
    doubtful = kept._by_origin[ORIGIN][1]
    silent.doubted = 5
    kept.put(ORIGIN, Kept("3", peer=other), 6)
    assert doubtful.aborted
    assert [one.name for one in kept._by_origin[ORIGIN]] == ["1", "3"]


def test_an_address_is_one_peer_as_long_as_a_connection_leads_there() -> None:
    kept: KeptConnections[Any] = KeptConnections()
    peer = kept.peer(("192.0.2.1", 443), 1)
    assert kept.peer(("192.0.2.1", 443), 2) is peer
    assert kept.peer(("192.0.2.2", 443), 2) is not peer
    del peer
    assert kept.peer(("192.0.2.1", 443), 3).heard == 3


def test_a_watch_hears_bytes_and_the_end() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        heard = peer_watch(ours)
        assert not heard()
        theirs.send(b"x")
        assert heard()
        ours.recv(1)
        assert not heard()
        theirs.close()
        assert heard()
