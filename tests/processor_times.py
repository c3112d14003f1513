"""The processor time of each test, for ``make test ARGS=--durations``.

pytest's own durations are of the clock on the wall, which a busy machine stretches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import suppress

import psutil
import pytest


class ProcessorTimes:
    """Seconds of processor time by test, of the test's process and of the processes it started."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._seconds: Counter[str] = Counter()
        self._before = 0.0

    def pytest_collection_finish(self) -> None:
        self._before = _spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.processor_seconds = _spent() - self._before
            self._before = _spent()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += getattr(report, "processor_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        files: Counter[str] = Counter()
        for test, seconds in self._seconds.items():
            files[test.partition("::")[0]] += seconds
        for title, times in (("tests", self._seconds), ("files", files)):
            terminalreporter.section(f"processor time of the dearest {self._shown} {title}")
            for name, seconds in times.most_common(self._shown):
                terminalreporter.write_line(f"{seconds:8.2f} s  {name}")
        terminalreporter.write_line(f"{sum(files.values()):8.2f} s  in all")


def _spent() -> float:
    """Seconds of this process, of its children that have ended, and of those that run."""
    seconds = 0.0
    process = psutil.Process()
    for running in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            seconds += sum(running.cpu_times()[:4])
    return seconds
