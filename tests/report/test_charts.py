"""Charts: where a value stands, what interrupts a line, what is written at the axes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from low_latency_endpoint.report.charts import Chart, Line, Panel
from low_latency_endpoint.report.document import Cell, Document, Section, Table
from low_latency_endpoint.report.pages import page
from tests.browser import needs_chromium, opened

START = datetime(2026, 11, 20, 3, tzinfo=UTC)


def _panel(*lines: Line, **panel):
    axis = panel.pop("axis", "number")
    return Chart("made", [Panel("title", lines, **panel)], axis).drawn().panels[0]


def _points(d: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", d)]


def test_a_line_keeps_its_proportions():
    (path,) = _panel(Line("a", [0, 5, 10], [0, 50, 100], "blue")).paths
    (x0, y0), (x1, y1), (x2, y2) = _points(path.d)
    assert (x0, y0) == (0, 1000), "nothing is at the bottom left"
    assert x2 - x1 == pytest.approx(x1 - x0, abs=0.05)
    assert y2 - y1 == pytest.approx(y1 - y0, abs=0.05)
    assert 0 <= y2 < y1 < y0


def test_powers_of_ten_are_evenly_spaced_on_a_logarithmic_axis():
    panel = _panel(Line("a", [1, 2, 3], [1, 10, 100], "blue"), logarithmic=True)
    (path,) = panel.paths
    y = [y for _, y in _points(path.d)]
    assert y[0] - y[1] == pytest.approx(y[1] - y[2], abs=0.05)
    assert {"1", "10", "100"} <= {label for _, label in panel.ticks}


def test_none_interrupts_a_line_and_an_area():
    line = Line("a", [0, 1, 2, 3], [1, 1, None, 1], "blue", "area")
    area, path = _panel(line).paths
    assert path.d.count("M") == area.d.count("M") == 2
    assert area.d.count("z") == 2


def test_steps_go_across_before_they_rise():
    (path,) = _panel(Line("a", [0, 10], [1, 2], "blue", "steps")).paths
    assert re.fullmatch(r"M0 [\d.]+H[\d.]+V[\d.]+", path.d)


def test_what_is_shaded_or_marked_stays_between_the_ends_of_the_axis():
    line = Line("a", [10, 20], [1, 2], "blue")
    spans = [(5, 12, "blue"), (18, 40, "grey"), (1, 9, "red"), (12, 18, "red")]
    chart = Chart("made", [Panel("title", [line])], "time", spans=spans, events=[(3, "red", "x")])
    drawn = chart.drawn()
    assert [each[:2] for each in drawn.spans] == [(0, 200), (800, 200), (200, 600)]
    assert not drawn.events


def test_bars_stand_beside_each_other_and_intervals_on_them():
    lines = [
        Line(name, ["p50", "p99"], [1, 2], "blue", "bars", low=[0.9, 1.8], high=[1.1, 2.2])
        for name in ("one", "other")
    ]
    panel = _panel(*lines, axis="names")
    paths = list(panel.paths)
    left, right = (_points(path.d) for path in paths if path.kind == "bars")
    assert left[0][0] < right[0][0] < left[1][0] < right[1][0]
    assert sum(path.kind == "whisker" for path in paths) == 4
    assert [label for _, label in panel.chart.ticks] == ["p50", "p99"]


def test_limits_and_targets_are_within_the_axis():
    panel = _panel(Line("a", [0, 1], [1, 2], "blue"), limits=[("target", 50.0)])
    ((place, name),) = panel.limits
    assert name == "target"
    assert 0 < place < 1000


@pytest.mark.parametrize(
    ("length", "first", "count"),
    [
        (timedelta(seconds=30), "03:00:00", 7),
        (timedelta(hours=1), "03:00", 7),
        (timedelta(hours=30), "06:00", 5),
    ],
)
def test_times_at_round_times(length, first, count):
    drawn = Chart(
        "made", [Panel("a", [Line("a", [START, START + length], [1, 1], "blue")])], "time"
    ).drawn()
    labels = [label for _, label in drawn.ticks]
    assert labels[0] == first
    assert len(labels) == count


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [-3.0, 3.0], [1e-9, 1e9], [0.0, 0.0]])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_odd_values_are_drawn(values, logarithmic):
    panel = _panel(Line("a", list(range(len(values))), values, "blue"), logarithmic=logarithmic)
    assert "nan" not in "".join(path.d for path in panel.paths)
    assert 1 <= len(panel.ticks) <= 25


def test_a_chart_of_nothing_is_false():
    assert not Chart("made", [Panel("a", [])])
    assert Chart("made", [Panel("a", [Line("a", [1], [1], "blue")])])


def test_names_are_text_on_the_page():
    evil = '"><script>alert(1)</script>'
    line = Line(evil, [1, 2], [1, 2], "blue", marks=["●", "●"], notes=[evil, evil])
    chart = Chart(
        "made", [Panel(evil, [line], evil, [(evil, 1)])], title=evil, events=[(1, "red", evil)]
    )
    table = Table([evil], [[evil], [Cell(evil, "bad", evil)]], evil)
    text = page(Document(evil, [evil, Section(evil, [chart, table])], verdict=evil, under=evil))
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;alert(1)") >= 12


@needs_chromium
def test_the_pointer_reads_values(tmp_path):
    """Halfway along the axis a straight line has half its value, on a logarithmic axis too."""
    x = list(range(11))
    chart = Chart(
        "made",
        [
            Panel("plain", [Line("straight", x, [10 * each for each in x], "blue")], " ms"),
            Panel(
                "powers",
                [Line("powers", x, [10 ** (each / 5) for each in x], "red")],
                " ms",
                logarithmic=True,
            ),
            Panel("bars", [Line("bars", x, [3 * each for each in x], "sky", "bars")]),
        ],
        ends=(0, 10),
    )
    file = tmp_path / "page.html"
    file.write_text(page(Document("made", [chart])), "utf-8")
    seen = opened(
        file,
        tmp_path,
        then="""
      const box = document.querySelector(".plot").getBoundingClientRect();
      document.querySelector("figure").dispatchEvent(new PointerEvent("pointermove", {
        clientX: box.left + box.width * 0.5 / 1.03, clientY: box.top + 5}));""",
    )
    assert (seen.errors, seen.inaccessible) == ([], [])
    assert {"straight 50 ms", "powers 10 ms", "bars 15"} <= set(seen.charts["made"].titles)


def test_long_times_are_in_seconds():
    panel = Panel("a", [Line("a", [1, 2], [100, 600_000], "red")], " ms", logarithmic=True)
    labels = [label for _, label in Chart("made", [panel]).drawn().panels[0].ticks]
    assert labels == ["0.1 s", "1 s", "10 s", "100 s"]


@needs_chromium
@pytest.mark.parametrize(
    "attack",
    [
        "<script>document.title = 'taken'; console.error('it ran')</script>",
        "<img src=x onerror=\"console.error('it ran')\">",
        "<a id=a href=\"javascript:console.error('it ran')\">a</a>",
        '<script src="https://evil.invalid/a.js"></script>',
        "<iframe srcdoc=\"<script>parent.console.error('it ran')</script>\"></iframe>",
        '<base href="https://evil.invalid/">',
    ],
)
def test_markup_that_got_through_does_nothing(tmp_path, attack):
    """Every text is escaped; were one not, the page's content security policy would stop it."""
    file = tmp_path / "page.html"
    file.write_text(page(Document("made", ["HERE"])).replace("HERE", attack), "utf-8")
    seen = opened(file, tmp_path, then="document.getElementById('a')?.click();")
    assert not any("it ran" in error and "Content Security" not in error for error in seen.errors)
    assert any("Content Security Policy" in error for error in seen.errors), seen.errors


@needs_chromium
def test_axe_would_tell(tmp_path):
    file = tmp_path / "page.html"
    file.write_text('<html><head></head><body><img src="data:,"></body></html>', "utf-8")
    assert any(found.startswith("image-alt") for found in opened(file, tmp_path).inaccessible)
