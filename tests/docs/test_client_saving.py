"""What the client saves of boto3's processor time: one measured number, the same in every place."""

from __future__ import annotations

import math
import re

from .console_blocks import PAGES, ROOT

WORDS = {
    "half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "sixteenth": 16, "twentieth": 20,
}  # fmt: skip
SHARE = re.compile(
    rf"(?:\ban? ({'|'.join(WORDS)})(?: to an? ({'|'.join(WORDS)}))?)"
    r" of (?:its|boto3's) processor time"
)
PLACES = [
    *(page for page in PAGES if page.name != "errors.md"),
    *sorted((ROOT / "client").glob("*.toml")),
    *sorted((ROOT / "client" / "src").rglob("*.py")),
]


def measured() -> list[float]:
    """How many times less each client takes per request than boto3: the table of the client's page."""
    page = (ROOT / "client" / "README.md").read_text("utf-8")
    row = re.search(r"^\| Processor time per request \|(.*)$", page, re.M)
    assert row
    return [float(text) for text in re.findall(r"\(([\d.]+)\)", row[1])]


def test_each_place_has_the_measured_share() -> None:
    threads, *_, uvloop = measured()
    whole = {math.floor(threads), math.floor(uvloop)}
    shares = {}
    for place in PLACES:
        text = " ".join(place.read_text("utf-8").split())
        for match in SHARE.finditer(text):
            shares[place.relative_to(ROOT).as_posix()] = [
                WORDS[word] for word in match.groups() if word
            ]
    wrong = {name: share for name, share in shares.items() if not set(share) <= whole}
    assert wrong == {}, f"measured: {whole}"
    assert {"README.md", "client/README.md", "client/pyproject.toml"} <= set(shares)
    assert {share[0] for share in shares.values()} == {math.floor(threads)}
