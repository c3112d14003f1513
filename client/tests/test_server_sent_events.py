"""Events are the same however their bytes are cut, and as the standard's examples say."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_client.generations import ServerSentEvents


def by_the_standard(stream: bytes) -> list[bytes]:
    """WHATWG HTML 9.2.6, step by step over the whole stream, by regular expression."""
    text = stream.decode().removeprefix("\ufeff")
    told, data = [], ""
    *lines, _unfinished = re.split("\r\n|\n|\r", text)
    for line in lines:
        if line == "":
            if data:
                told.append(data.removesuffix("\n").encode())
            data = ""
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            if name == "data":
                data += value.removeprefix(" ") + "\n"
    return told


def fed(stream: bytes, cuts: list[int]) -> list[bytes]:
    events = ServerSentEvents()
    edges = [0, *sorted(cuts), len(stream)]
    return [
        one for start, end in itertools.pairwise(edges) for one in events.feed(stream[start:end])
    ]


LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
LINES = st.one_of(
    st.just(""),
    st.just(""),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["data", "event", "id", "retry", "", "dat", "datas", " data"]),
        st.sampled_from(["", ":", ": ", ":  ", "::"]),
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8),
    ),
)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    lines = draw(st.lists(st.tuples(LINES, LINE_ENDS), max_size=12))
    text = draw(st.sampled_from(["", "\ufeff"])) + "".join(line + end for line, end in lines)
    stream = (text + draw(LINES)).encode()
    some = st.lists(st.integers(0, len(stream)), max_size=8)
    return stream, draw(some | st.just(list(range(len(stream)))))


@given(streams())
def test_any_stream_cut_anywhere_gives_the_standards_events(case: tuple[bytes, list[int]]) -> None:
    stream, cuts = case
    assert fed(stream, cuts) == by_the_standard(stream)


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        # The standard's own examples (WHATWG HTML 9.2.6).
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [b"YHOO\n+2\n10"]),
        (b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
         b"data:  third event\n\n", [b"first event", b"second event", b" third event"]),
        (b"data\n\ndata\ndata\n\ndata:", [b"", b"\n"]),
        (b"data:test\n\ndata: test\n\n", [b"test", b"test"]),
    ],
)  # fmt: skip
def test_the_standards_examples(stream: bytes, data: list[bytes]) -> None:
    assert fed(stream, []) == data


def test_a_long_stream_in_small_pieces_takes_time_in_proportion() -> None:
    # 2 MB in one line, 20 bytes at a time: joining it anew at each piece would copy 100 GB.
    payload = json.dumps({"text": "x" * 2_000_000}).encode()
    stream = b"data: " + payload + b"\n\n"
    assert fed(stream, list(range(0, len(stream), 20))) == [payload]
