"""A load generator in the local runtime's own loop, on the clock that jumps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta

import boto3
from jumping_loop import JumpingLoop

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import SimulatedModelServer
from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.measurement import Measurement
from low_latency_endpoint.load_test.engine.steps import Progress, Step, StepResult
from low_latency_endpoint.load_test.engine.target import Target

__all__ = ["JumpingGenerator", "jumping"]


@contextlib.contextmanager
def jumping(server: SimulatedModelServer) -> Iterator[tuple[LocalAws, JumpingLoop]]:
    """A local AWS with a model server, and the loop that it runs in, whose clock jumps."""
    loop = JumpingLoop()
    options = RuntimeOptions(clock_speed=0.0, seed=1)
    with LocalAws.in_process(model_servers={"model": server}, runtime=options) as aws:
        loop.become_the_runtimes(aws)
        yield aws, loop


class JumpingGenerator:
    """Callers that each wait for their answer, or arrivals that wait for nobody, in jumping time.

    Seconds of a step pass as fast as the machine can serve its requests, and a busy machine makes
    none of them slower. A closed loop's load stays until every request that counts is answered, so
    that a block's last ones meet the same as the others, however slow the answers are. Arrivals
    find so many connections open as ``warm_up`` requests at once, sent before, have opened: making
    one takes the machine's time, in which the clock jumps.
    """

    def __init__(
        self, aws: LocalAws, loop: JumpingLoop, target: Target, *, warm_up: int = 0
    ) -> None:
        environment = aws.environment()
        self._session = boto3.Session(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            region_name=environment["AWS_REGION"],
        )
        self._url, self._loop, self._target = aws.runtime_url(), loop, target
        self._warm_up = warm_up

    def run(
        self, step: Step, progress: Callable[[Progress], None] = lambda each: None
    ) -> StepResult:
        """Run one step."""
        return asyncio.run_coroutine_threadsafe(self._run(step), self._loop).result(600)

    def close(self) -> None:
        """There is nothing to close."""

    async def _run(self, step: Step) -> StepResult:
        call = self._call if step.arrivals is None else self._call_when_due
        async with AsyncRuntimeClient(
            session=self._session,
            url=self._url,
            concurrency=1000,
            retries=1,  # none is needed; calls without any let a connection rest before they use it
            latency_target=timedelta(seconds=30),
            # The warm-up opens its connections in real time, and all at once.
            connect_timeout=timedelta(seconds=60),
        ) as client:
            await asyncio.gather(
                *(
                    client.invoke_endpoint(EndpointName=self._target.endpoint_name, Body=b"{}")
                    for _ in range(self._warm_up)
                )
            )
            self._loop.jump_from_now_on(True)
            try:
                return await call(client, step)
            finally:
                self._loop.jump_from_now_on(False)

    async def _call_when_due(self, client: AsyncRuntimeClient, step: Step) -> StepResult:
        assert step.arrivals is not None
        clock, records = self._loop.time, Measurement()
        begin = clock()

        async def request(due: float) -> None:
            begun = clock() - begin
            await client.invoke_endpoint(EndpointName=self._target.endpoint_name, Body=b"{}")
            ended = clock() - begin
            records.completed += 1
            records.answered_in_time += ended < step.seconds
            records.latency.record(ended - due)
            records.service.record(ended - begun)
            records.send_lag.record(begun - due)

        async with asyncio.TaskGroup() as group:
            for due in step.arrivals.offsets(step.seconds, seed=step.seed):
                await asyncio.sleep(begin + due - clock())
                records.intended += 1
                records.sent += 1
                group.create_task(request(due))
        return StepResult.of(step, records, begin)

    async def _call(self, client: AsyncRuntimeClient, step: Step) -> StepResult:
        clock = self._loop.time
        begin, latency, in_time, open_requests = clock(), LatencyHistogram(), 0, 0
        variant = (
            {"TargetVariant": self._target.target_variant} if self._target.target_variant else {}
        )

        async def user() -> None:
            nonlocal in_time, open_requests
            while (begun := clock() - begin) < step.seconds or open_requests:
                counts = step.settle_seconds <= begun < step.seconds
                open_requests += counts
                await client.invoke_endpoint(
                    EndpointName=self._target.endpoint_name, Body=b"{}", **variant
                )
                open_requests -= counts
                ended = clock() - begin
                if counts:
                    latency.record(ended - begun)
                in_time += step.settle_seconds <= ended < step.seconds

        async with asyncio.TaskGroup() as group:
            for _ in range(step.users or 0):
                group.create_task(user())
        return StepResult(
            step=step,
            started_at=begin + step.settle_seconds,
            ended_at=begin + step.seconds,
            intended=latency.count,
            sent=latency.count,
            completed=latency.count,
            answered_in_time=in_time,
            latency=latency,
            service=latency,
        )
