"""Opens a page in headless Chromium: its console, its charts, what axe finds inaccessible."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine: install the package `chromium`"
)

_AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
# Runs before the page's own scripts, so that it hears their errors, and before its content security
# policy, which would forbid it. When all is drawn, it writes down what axe finds, and of each chart
# its size on the page and how much ink it has: lines of more than one point, bars, markers.
_PROBE = """<script>
const told = [];
window.addEventListener("error", event => told.push(String(event.message)));
window.addEventListener("load", () => setTimeout(async () => {
  const charts = {};
  for (const chart of document.querySelectorAll("[id^=chart-]")) {
    const box = chart.getBoundingClientRect();
    const seen = path => { const b = path.getBBox(); return b.width + b.height > 0; };
    charts[chart.id] = {
      width: box.width, height: box.height,
      ink: [...chart.querySelectorAll("path.line, path.bars, path.area")].filter(seen).length,
      titles: [...chart.querySelectorAll("b, span, p")].map(text => text.textContent.trim()),
    };
  }
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const found = document.createElement("pre");
  found.id = "probe";
  found.textContent = JSON.stringify({told, charts, width: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches,
    inaccessible: violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`)), overflow:
    document.documentElement.scrollWidth - document.documentElement.clientWidth});
  document.body.append(found);
}, 1500));
</script>"""


@dataclass(frozen=True)
class Chart:
    """One chart as it stands on the page; sizes in pixels."""

    width: float
    height: float
    ink: int
    titles: list[str]

    @property
    def visible(self) -> bool:
        """Whether it has a size and something is drawn in it."""
        return self.width > 300 and self.height > 200 and self.ink > 0


@dataclass(frozen=True)
class Seen:
    """A page as a browser shows it."""

    errors: list[str]
    charts: dict[str, Chart]
    overflow: float
    inaccessible: list[str]


def opened(
    page: Path, folder: Path, width: int = 1280, then: str = "", *, dark: bool = False
) -> Seen:
    """Open a page and run a script; it may fetch nothing, there being no network for it."""
    assert CHROMIUM is not None
    probed = folder / f"probed-{page.name}"
    text = page.read_text("utf-8")
    assert "<head>" in text
    loaded = f'window.addEventListener("load", () => {{ {then} }});' if then else ""
    before = f"<script>{_AXE.read_text('utf-8')}</script>{_PROBE}<script>{loaded}</script>"
    probed.write_text(text.replace("<head>", f"<head>{before}", 1), "utf-8")
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            "--v=0",
            f"--window-size={width},2000",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--user-data-dir={folder / 'chromium'}",
            "--virtual-time-budget=15000",
            "--dump-dom",
            probed.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S)
    assert found, f"the page did not finish: {done.stderr[-2000:]}"
    probe = json.loads(unescape(found[1]))
    assert (probe["dark"], probe["width"]) == (dark, width), "no window is narrower than 500 px"
    # `...:CONSOLE:12] "text", source: file:///... (1)`; CONSOLE(12) in older versions.
    console = [line for line in done.stderr.splitlines() if re.search(r"CONSOLE[:(]\d", line)]
    return Seen(
        probe["told"] + console,
        {name.removeprefix("chart-"): Chart(**chart) for name, chart in probe["charts"].items()},
        probe["overflow"],
        probe["inaccessible"],
    )
