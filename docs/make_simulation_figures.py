"""Draw the figures and the tables of docs/explanation/simulation.md from the code.

    python docs/make_simulation_figures.py

Takes about two minutes; the seed is fixed, so a second run writes the same numbers.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "low-latency-endpoint"
matplotlib.rcParams["font.size"] = 10

import matplotlib.pyplot as plt  # noqa: E402

from low_latency_endpoint.load_test.compare.published import (  # noqa: E402
    PUBLISHED_P99_CUT,
    PUBLISHED_THROUGHPUT_GAIN,
    SIZES,
)

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from examples.published_routing_gains import CASES, Gain, gains  # noqa: E402

PAGE = DOCS / "explanation" / "simulation.md"
FIGURE = DOCS / "simulation-published.svg"
COLOURS = {1: "#c2571a", 2: "#d98c3f", 3: "#b9a44c", 4: "#7d8c5c"}
BATCHING = "#1f6f8b"


def simulated() -> list[list[Gain]]:
    """Every case at every size."""
    return [
        gains(case, SIZES, requests=1_000_000, replications=8, seed=1, processes=2)
        for case in CASES
    ]


def draw(found: list[list[Gain]]) -> None:
    """Throughput gain against P99 cut, 5 to 20 instances joined, beside what was published."""
    figure, axes = plt.subplots(figsize=(8.6, 5.4), layout="constrained")
    low, high = (100 * each for each in PUBLISHED_THROUGHPUT_GAIN)
    less, more = (100 * each for each in PUBLISHED_P99_CUT)
    axes.add_patch(
        plt.Rectangle((low, less), high - low, more - less, color="#2a9d5c", alpha=0.25, lw=0)
    )
    axes.text((low + high) / 2, less - 1.2, "published", color="#1d7a45", ha="center", va="top")
    labelled = set()
    for case_gains in found:
        case = case_gains[0].case
        points = [gain for gain in case_gains if gain.instances >= 5]
        kind = (
            "batching, three routers"
            if case.routers > 1
            else "batching (all at once, each slows the others)"
            if case.batches
            else f"{case.concurrency} worker{'s' if case.concurrency > 1 else ''}, others wait"
        )
        axes.plot(
            [100 * gain.throughput.mean for gain in points],
            [-100 * gain.p99.mean for gain in points],
            color=BATCHING if case.batches else COLOURS[case.concurrency],
            marker="s" if case.routers > 1 else "o",
            ms=4,
            lw=1.2,
            ls="--" if case.routers > 1 else "-",
            label=None if kind in labelled else kind,
        )
        labelled.add(kind)
        last = points[-1]
        text = f"CV {case.variation:g}"
        if case.batches:
            text = f"slope {case.slope:g}, {text}"
        if not case.batches or case.variation != 1:
            axes.annotate(
                text,
                (100 * last.throughput.mean, -100 * last.p99.mean),
                xytext=(-2, 7) if case.concurrency in (1, 3) else (5, -4),
                ha="right" if case.concurrency in (1, 3) else "left",
                textcoords="offset points",
                fontsize=7.5,
                va="center",
                color="#48525f",
            )
    axes.set_xlabel("more throughput per instance, %")
    axes.set_ylabel("shorter P99, %")
    axes.set_xlim(10, 42)
    axes.set_ylim(0, 75)
    axes.set_title(
        "Least outstanding requests against random: 5, 10, 15, 20 instances",
        loc="left",
        fontsize=11,
    )
    axes.legend(loc="upper right", fontsize=8, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(FIGURE, metadata={"Date": None})


def table(found: list[list[Gain]]) -> str:
    """What was published and what is simulated, over 5 to 20 instances; the figure has each size."""
    rows = [
        "| Instances | Throughput | P99 shorter | Within what was published |",
        "|---|---|---|---|",
        "| **AWS, published** | +15 to 16 % | 4 to 33 % | |",
    ]
    for case_gains in found:
        points = [gain for gain in case_gains if gain.instances >= 5]
        widest = [
            max(gain.throughput.half_width for gain in points),
            max(gain.p99.half_width for gain in points),
        ]
        tells = math.isfinite(widest[1])
        if widest[0] > 0.01 or (tells and widest[1] > 0.03):
            raise SystemExit(f"{case_gains[0].case.name}: the page says narrower than {widest}")
        if case_gains[0].case.variation == 0.25:
            continue  # in the figure
        throughput = [gain.throughput.mean for gain in points]
        cut = [-gain.p99.mean for gain in points]
        low, high = PUBLISHED_THROUGHPUT_GAIN
        least, most = PUBLISHED_P99_CUT
        both = (
            (
                "not certain"
                if not tells
                else "yes"
                if least <= min(cut) and max(cut) <= most
                else "no"
            )
            + " for P99, "
            + (
                "yes"
                if low - 0.005 <= min(throughput) and max(throughput) <= high + 0.005
                else "nearly"
                if low - 0.02 <= min(throughput) and max(throughput) <= high + 0.02
                else "no"
            )
            + " for throughput"
        )
        rows.append(
            f"| {case_gains[0].case.name} "
            f"| {100 * min(throughput):+.1f} to {100 * max(throughput):.1f} % "
            f"| {f'{100 * min(cut):.0f} to {100 * max(cut):.0f} %' if tells else 'too short to tell'} "
            f"| {both} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Draw and write."""
    found = simulated()
    draw(found)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        re.sub(
            r"(<!-- published: begin -->\n).*?(<!-- published: end -->)",
            lambda match: match[1] + "\n" + table(found) + "\n\n" + match[2],
            text,
            flags=re.DOTALL,
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
