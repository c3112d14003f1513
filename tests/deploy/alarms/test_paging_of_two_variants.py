"""What holds pages back has an end, with several variants too."""

from __future__ import annotations

from .conftest import Pager

ENDPOINTS = ("two",)


def test_two_variants_in_turn_do_not_hold_pages_back_for_ever(world):
    """59 minutes of one, which are not too long yet, then 59 of the other, and so on."""
    one = [*range(3, 590, 10), *range(1183, 1300, 10)]
    other = range(593, 1180, 10)
    assert (len(one[:59]), one[58], len(other)) == (59, 583, 59)
    found = Pager(world, "two").run(
        1200, failing=range(5, 1200), deploying=one, deploying_other=other, asleep=range(1170)
    )
    assert found == [("ALARM", 1183 + 2)]
