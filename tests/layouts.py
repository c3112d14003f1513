"""Lays pages out in headless Chromium, on phones and desks, in light and dark, and names the faults.

Chromium draws no window narrower than 500 pixels, whatever ``--window-size`` says: a phone's width
is stated by its DevTools protocol, which it speaks over a pipe.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser import CHROMIUM

WIDTHS = (390, 500, 1280)
_FAULTS = (Path(__file__).parent / "layout.js").read_text("utf-8")
# Folded parts are opened, as a reader opens them; code and tables come to rest.
_OPEN = "document.querySelectorAll('details').forEach(part => { part.open = true; })"


class Layouts:
    """One tab of a browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = os.fdopen(commands, "wb", buffering=0)
        self._answers = os.fdopen(answers, "rb")
        self._number = 0
        self._session = ""
        tab = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=tab, flatten=True)
        self._session = attached["sessionId"]
        self._ask("Page.enable")

    def faults(self, page: Path, width: int, *, dark: bool) -> list[str]:
        """Sentences on what stands on, covers or cuts what else; none for a page that can be read."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self._ask("Page.navigate", url=page.absolute().as_uri())
        self._event("Page.loadEventFired")
        seen = (width, dark)
        assert self._result("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [
            *seen
        ]
        self._result(_OPEN)
        self._result("new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn, 50)))")
        faults: list[str] = self._result(f"({_FAULTS})()")
        return faults

    def picture(self, file: Path) -> None:
        """Write the whole page, as it was last laid out, as a PNG."""
        picture = self._ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(picture["data"]))

    def _result(self, script: str) -> Any:
        answer = self._ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self._number:
            pass
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _event(self, method: str) -> None:
        while self._message().get("method") != method:
            pass

    def _message(self) -> dict[str, Any]:
        """The next message; each ends with a null byte."""
        text = bytearray()
        while (character := self._answers.read(1)) != b"\0":
            assert character, "Chromium has ended"
            text += character
        message: dict[str, Any] = json.loads(text)
        return message


@contextmanager
def layouts(folder: Path) -> Iterator[Layouts]:
    """A browser that fetches nothing from a network; it ends with the block."""
    assert CHROMIUM is not None
    its_commands, commands = os.pipe()
    answers, its_answers = os.pipe()
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--allow-file-access-from-files",
        f"--user-data-dir={folder / 'chromium'}",
        "--remote-debugging-pipe",
    ]
    # Chromium reads from file 3 and writes to file 4.
    shell = ["bash", "-c", f'exec "$@" 3<&{its_commands} 4>&{its_answers}', "bash"]
    process = subprocess.Popen(
        [*shell, CHROMIUM, *options],
        pass_fds=(its_commands, its_answers),
        stderr=subprocess.DEVNULL,
    )
    os.close(its_commands)
    os.close(its_answers)
    try:
        yield Layouts(commands, answers)
    finally:
        process.kill()
        process.wait()
