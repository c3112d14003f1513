"""``low-latency load-test --fleet N``: the fleet in place of this machine's processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...account.sessions import aws_errors_in_words
from ..engine.payloads import Payloads
from ..engine.target import Target
from .description import find_fleet
from .fleet_generator import FleetGenerator


class FleetRun:
    """One load test on the endpoint's deployed fleet.

    Parameters
    ----------
    client : callable
        Service name to boto3 client.
    tell : callable
        Takes a line of text for each thing that happens, the cost first.
    expected_seconds : float, optional
        How long the plan takes, where that is known.
    **options
        Further options of :class:`.fleet_generator.FleetGenerator`.

    Raises
    ------
    ConfigurationError
        ``LLE965``, ``LLE966``, ``LLE969``.
    AwsUnavailable
        When AWS refuses or does not answer.

    Examples
    --------
    ::

        run = FleetRun(session.client, target, payloads, workers=4, tell=print)
        report = load_test(target, payloads, plan, generator=run.open)
        print(run.keep(report.to_dict()))
    """

    def __init__(
        self,
        client: Callable[[str], Any],
        target: Target,
        payloads: Payloads,
        *,
        workers: int,
        tell: Callable[[str], None],
        expected_seconds: float | None = None,
        **options: Any,
    ) -> None:
        with aws_errors_in_words():
            self._generator = FleetGenerator(
                client,
                find_fleet(client, target.endpoint_name),
                target,
                payloads,
                workers=workers,
                tell=tell,
                expected_seconds=expected_seconds,
                **options,
            )

    def open(self) -> FleetGenerator:
        """Start the tasks; gives the generator when all workers are connected.

        Closing it stops them; when they do not start, they are stopped already.
        """
        return self._generator.__enter__()

    def keep(self, result: Mapping[str, Any]) -> str:
        """Put the result into the fleet's bucket; gives its URL."""
        with aws_errors_in_words():
            return self._generator.keep_result(result)
