"""How long alarms look back: periods from the requests that arrive in them.

Start at :func:`latency_window` and :func:`share_window`. CloudWatch evaluates an alarm on a sliding
window of ``Period x Evaluation Periods``, so an alarm of one long period still notices a severe
fault as soon as enough of its requests are slow.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ..facts.token_values import is_token
from ..options.alarms import DEFAULT_PERIOD_SECONDS, WindowOptions
from ..options.throughput import stated

WINDOW_SOURCE = (
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation-window.html"
)
SAMPLES_BEYOND = 10
"""Requests beyond a percentile in a period, below which its value jumps from period to period."""
SAMPLES_ALONE = 30
"""The same for a period that decides alone: as many as the usual three periods have together."""
FEWEST_REQUESTS = 10
"""Requests in a period of shares and averages: if all fail, three failures are nearly certain."""
SILENT_PERIODS = 5
"""Periods without a request after which an endpoint counts as silent."""
_REQUESTS_BEFORE_SILENCE = 20
"""Requests usual in those periods; that none of them comes by chance has a probability of e^-20."""
_LADDER = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 360)
"""Periods in minutes. Six hours are the longest time that any alarm here looks back: the slow burn
rate's window. CloudWatch allows a day, and a week for periods of an hour or more."""


class AlarmWindow(NamedTuple):
    """The periods that an alarm evaluates."""

    seconds: int  # of one period
    evaluation_periods: int
    datapoints: int  # that must breach

    @property
    def counts(self) -> tuple[int, int]:
        """Evaluation periods, and datapoints to alarm."""
        return self.evaluation_periods, self.datapoints


def latency_window(options: WindowOptions, statistic: str, tps: float | None) -> AlarmWindow:
    """The window of an alarm on a latency's statistic at so many requests a second.

    Returns the stated window if a period or no rate is stated. The period of a percentile is the
    shortest with :data:`SAMPLES_ALONE` requests beyond it. Where that is longer than a minute, one
    period takes the place of the usual three: its sliding window shows a severe fault within
    minutes, where two long periods would first have to pass.
    """
    share = share_beyond(statistic)
    if share is None:
        return share_window(options, tps) if statistic == "Average" else _stated_window(options)
    if options.period_seconds is not None or tps is None:
        return _stated_window(options)
    beyond_per_minute = stated(tps) * 60 * share
    if beyond_per_minute >= SAMPLES_ALONE:
        return _stated_window(options)
    if options.is_usual:
        return AlarmWindow(_period(SAMPLES_ALONE / beyond_per_minute, 1), 1, 1)
    seconds = _period(SAMPLES_BEYOND / beyond_per_minute, options.evaluation_periods)
    return AlarmWindow(seconds, options.evaluation_periods, options.datapoints_to_alarm)


def share_window(options: WindowOptions, tps: float | None) -> AlarmWindow:
    """The window of an alarm on a share or an average: periods of :data:`FEWEST_REQUESTS`."""
    return _window_of(options, FEWEST_REQUESTS, tps)


def ratio_window(
    options: WindowOptions, statistic: str, fewest: int, tps: float | None
) -> AlarmWindow:
    """The window of an alarm on a ratio of two latencies, which needs so many requests of each."""
    of_statistic = latency_window(options, statistic, tps)
    of_requests = _window_of(options, fewest, tps)
    return max(of_statistic, of_requests, key=lambda window: window.seconds)


def silence_window(options: WindowOptions, tps: float | None) -> AlarmWindow:
    """The window of an alarm on the absence of requests, at the rate of the quietest time."""
    requests = _REQUESTS_BEFORE_SILENCE // SILENT_PERIODS
    all_of_them = WindowOptions(options.period_seconds, SILENT_PERIODS, SILENT_PERIODS)
    return _window_of(all_of_them, requests, tps)


def period_text(window: AlarmWindow) -> str:
    """The length of a period in words."""
    if window.seconds % 3600 == 0:
        hours = window.seconds // 3600
        return "an hour" if hours == 1 else f"{hours} hours"
    return "a minute" if window.seconds == 60 else f"{window.seconds // 60} minutes"


def window_text(window: AlarmWindow) -> str:
    """The window in words."""
    if window.counts == (1, 1):
        return f"one period of {period_text(window)}"
    if any(is_token(count) for count in window.counts):
        return f"the stated periods of {period_text(window)}"
    return f"{window.datapoints} of {window.evaluation_periods} periods of {period_text(window)}"


def samples_beyond(window: AlarmWindow, statistic: str, tps: float) -> Fraction | None:
    """Requests of a period that are slower than the percentile; None for another statistic."""
    share = share_beyond(statistic)
    return None if share is None else requests_in_period(window, tps) * share


def requests_in_period(window: AlarmWindow, tps: float) -> Fraction:
    """Requests that arrive in a period at so many a second."""
    return stated(tps) * window.seconds


def _window_of(options: WindowOptions, requests: int, tps: float | None) -> AlarmWindow:
    """As stated, with periods in which so many requests arrive."""
    if options.period_seconds is not None or tps is None:
        return _stated_window(options)
    minutes = requests / (stated(tps) * 60)
    seconds = _period(minutes, options.evaluation_periods)
    return AlarmWindow(seconds, options.evaluation_periods, options.datapoints_to_alarm)


def _stated_window(options: WindowOptions) -> AlarmWindow:
    seconds = options.period_seconds or DEFAULT_PERIOD_SECONDS
    return AlarmWindow(int(seconds), options.evaluation_periods, options.datapoints_to_alarm)


def _period(minutes: Fraction, evaluation_periods: int) -> int:
    """Seconds of the shortest period of so many minutes that CloudWatch takes, or of the longest."""
    possible = [step for step in _LADDER if _fits(step, evaluation_periods)] or [1]
    enough = [step for step in possible if step >= minutes]
    return 60 * (enough[0] if enough else possible[-1])


def _fits(minutes: int, evaluation_periods: int) -> bool:
    """Whether CloudWatch looks back on so many periods: a day, a week from an hour's period on."""
    days = 1 if minutes < 60 else 7
    return minutes * evaluation_periods <= days * 24 * 60


def share_beyond(statistic: str) -> Fraction | None:
    """The share of the requests beyond a percentile; None for another statistic."""
    number = statistic.removeprefix("p")
    if number == statistic or not number.replace(".", "", 1).isdigit():
        return None
    beyond = (100 - Fraction(number)) / 100
    return beyond or None  # nothing is beyond p100, which is the maximum
