"""The runtime as the local AWS uses it: one thread with one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, cast

from ..admission import Credentials, admit_known
from ..cloudwatch import evaluation
from ..cloudwatch.state import state_at
from ..connections import ACCOUNT
from ..hosting import Hosting, all_variants, hosting, let_go, scaled_places
from ..model_servers.specifications import ModelServer
from ..processes import HeldFolder, aws_variables
from .blueprints import component_fleet, desired_counts, fleet_of, is_live, server_of
from .clock import TICK, Clock, Ticks
from .containers import Site
from .endpoints import Deployment, RolledBack, RuntimeEndpoint
from .fleet import Fleet, FleetFailed, Room, Variant, copy_room, end_draining, take_room
from .http_server import LOOPBACK, Limits, Listener, listen, make_room
from .invocations import Invocations
from .loop_thread import LoopThread
from .meter import Meter, Place
from .observation import Observation
from .options import LARGEST_PAYLOAD, RuntimeOptions
from .paths import Paths, admit_names
from .scaling import TargetTracking
from .statuses import failed, in_service, pending, set_status

logger = logging.getLogger(__name__)

_FLUSH_SECONDS = 0.2
_END_SECONDS = 5.0  # for model servers to end with the local AWS; then they are made to


P = ParamSpec("P")


def _in_loop(
    method: Callable[Concatenate[Runtime, P], None],
) -> Callable[Concatenate[Runtime, P], None]:
    """Have a method called in the loop's thread, and wait for it."""

    @functools.wraps(method)
    def call(runtime: Runtime, /, *given: P.args, **named: P.kwargs) -> None:
        async def work() -> None:
            method(runtime, *given, **named)

        runtime._thread.run(work())

    return call


class Runtime:
    """SageMaker Runtime on loopback, started by the first URL or endpoint that needs it."""

    def __init__(
        self,
        options: RuntimeOptions | None = None,
        region: str = "us-east-1",
        folder: Path | None = None,
    ) -> None:
        self.aws_url = ""
        self._folder = folder
        self._held: HeldFolder | None = None
        self.options = options or RuntimeOptions()
        self.credentials = Credentials.new()
        self.clock = Clock(self.options.clock_speed, self.options.clock_start)
        self.meter = Meter()
        self._region = region
        self.paths = Paths(region)
        self._endpoints: dict[tuple[Place, str], RuntimeEndpoint] = {}
        self._listeners: dict[str | None, Listener] = {}
        self._thread = LoopThread(self._begin, self._end, make_room)
        self._invocations = Invocations(
            self._find, self.meter, self.clock, self.options, region, self.credentials
        )
        self._ticks: Ticks | None = None
        self._tracking = TargetTracking(self._scale_for_policy, self.clock.now)
        self._background: list[asyncio.Task[None]] = []
        self._observation = Observation(self.meter, lambda: self.options)

    # --------------------------------------------------------------------------------- the thread

    async def _begin(self) -> None:
        self._background.append(asyncio.create_task(self._flush_for_ever()))
        self._ticks = Ticks(self.clock, self._tick)
        self._background.append(asyncio.create_task(self._ticks.run()))

    def stop(self) -> None:
        """Stop every model server, the listeners and the thread."""
        self._thread.stop()
        if self._held is not None:
            self._held.remove()

    async def _end(self) -> None:
        self._stop_endpoints()
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()
        await end_draining(_END_SECONDS)
        await asyncio.get_running_loop().run_in_executor(None, self.meter.flush)

    def reset(self) -> None:
        self.paths = Paths(self._region)
        if self._thread.runs:
            self._forget()

    def _stop_endpoints(self) -> None:
        for endpoint in self._endpoints.values():
            endpoint.stop()
        self._endpoints.clear()

    @_in_loop
    def _forget(self) -> None:
        self._stop_endpoints()
        self._tracking = TargetTracking(self._scale_for_policy, self.clock.now)
        self.meter.forget()

    # ----------------------------------------------------------------------------------- listeners

    def url(self, zone: str | None = None) -> str:
        """Give the URL of the regional name, or of a zone's."""
        name = None if zone is None else self.paths.zone(zone)
        listener = self._thread.run(self._listen(name))
        return f"http://{LOOPBACK}:{listener.port}"

    async def _listen(self, zone: str | None) -> Listener:
        if zone not in self._listeners:
            admit = admit_known(self.credentials)
            self._listeners[zone] = await listen(
                self._invocations.handler(zone),
                admit=admit_names(admit, self._region) if zone else admit,
                limits=Limits(largest_body=LARGEST_PAYLOAD),
            )
        return self._listeners[zone]

    # ----------------------------------------------------------------------------------- endpoints

    async def _find(self, region: str, name: str) -> RuntimeEndpoint | None:
        """Give an endpoint; those without a model server of the mapping follow their records."""
        place = (ACCOUNT, region)
        state = hosting(*place)
        record = state.endpoints.get(name)
        endpoint = self._endpoints.get((place, name))
        if record is None:
            return None
        if endpoint is None:
            endpoint = RuntimeEndpoint(place, name, state, live=False)
            self._endpoints[place, name] = endpoint
        if not endpoint.live and endpoint.seen is not record["LastModifiedTime"]:
            await self._follow(endpoint, record)
        return endpoint

    async def _follow(self, endpoint: RuntimeEndpoint, record: Mapping[str, Any]) -> None:
        async with endpoint.lock:
            modified = record["LastModifiedTime"]
            if endpoint.seen is modified:
                return
            config = endpoint.hosting.configs.get(record["EndpointConfigName"])
            if config is None:
                return
            counts = desired_counts(record)
            fleet = endpoint.fleet
            if fleet is None or fleet.config_name != record["EndpointConfigName"]:
                new = self._fleet(endpoint, config)
                new.own_metrics |= fleet is not None
                await new.start(counts)
                endpoint.fleet = new
                if fleet is not None:
                    fleet.stop()
                fleet = new
            for variant in fleet:
                await fleet.scale(variant, counts[variant.name])
            fleet.take_weights(record)
            endpoint.seen = modified

    def _fleet(self, endpoint: RuntimeEndpoint, config: Mapping[str, Any]) -> Fleet:
        endpoint.take_metrics_config(config)
        fleet = fleet_of(
            endpoint.place,
            endpoint.name,
            config,
            endpoint.hosting,
            self.clock,
            self.options,
            running=lambda: sum(f.size for e in self._endpoints.values() for f in e.fleets),
            site=self._site(endpoint),
        )
        if not endpoint.live:  # what its roles lack was judged when its record was made
            for variant in fleet:
                variant.role = None
        first = endpoint.fleet is None
        fleet.own_metrics = first and self.options.configuration_metrics_from_create
        return fleet

    @property
    def folder(self) -> Path:
        """Where its model servers' files are: a log for each instance, and the models' data."""
        if self._folder is None:
            self._held = HeldFolder("local-aws-")
            self._folder = self._held.path
        return self._folder / "model-servers"

    def _site(self, endpoint: RuntimeEndpoint) -> Site:
        account, region = endpoint.place
        return Site(
            endpoint.name,
            account,
            region,
            lambda: self.folder,
            lambda session: aws_variables(region, self.aws_url, session or self.credentials),
            self.clock.now if endpoint.live else None,
        )

    def set_model_servers(self, servers: Mapping[str, ModelServer]) -> dict[str, list[str]]:
        """Take other model servers: new instances have them, simulated ones change at once.

        Gives the names of the endpoints that have others now: those that `changed`, and those
        that `kept` what runs.
        """
        if servers and not self.options.model_servers:
            evaluation.BACKGROUND.stop()  # from here on alarms are judged by the runtime's clock
        return self._thread.run(self._set_model_servers(servers))

    def add_model_servers(self, servers: Mapping[str, ModelServer]) -> dict[str, list[str]]:
        """Take more model servers; they go before those that are there."""
        others = {n: s for n, s in self.options.model_servers.items() if n not in servers}
        return self.set_model_servers({**servers, **others})

    async def _set_model_servers(self, servers: Mapping[str, ModelServer]) -> dict[str, list[str]]:
        self.options = dataclasses.replace(self.options, model_servers=servers)
        self._invocations.options = self.options
        told: dict[str, list[str]] = {"changed": [], "kept": []}
        for endpoint in self._endpoints.values():
            variants = itertools.chain.from_iterable(endpoint.all_fleets)
            outcomes = {self._change(variant, endpoint.hosting) for variant in variants} - {""}
            for outcome in outcomes:
                told[outcome].append(endpoint.name)
        return told

    def _change(self, variant: Variant, hosting: Hosting) -> str:
        server = server_of(variant.settings, hosting, self.options)
        if server == variant.server:
            return ""
        variant.server = server
        changes = [instance.change(server) for instance in variant.instances]
        return "changed" if all(changes) else "kept"

    def is_live(self, place: Place, config: Mapping[str, Any]) -> bool:
        """Say whether an endpoint with this configuration is started rather than there at once."""
        return is_live(config, hosting(*place), self.options)

    def owns(self, place: Place, name: str) -> bool:
        """Say whether an endpoint that exists is one that was started."""
        endpoint = self._endpoints.get((place, name))
        return endpoint is not None and endpoint.live

    @_in_loop
    def create(self, place: Place, name: str, config: Mapping[str, Any]) -> None:
        """Start a new endpoint, whose record says Creating."""
        endpoint = RuntimeEndpoint(place, name, hosting(*place), live=True)
        self._endpoints[place, name] = endpoint
        endpoint.work = asyncio.create_task(self._bring_up(endpoint, config))

    async def _bring_up(self, endpoint: RuntimeEndpoint, config: Mapping[str, Any]) -> None:
        fleet = self._fleet(endpoint, config)
        endpoint.new_fleet = fleet
        record = cast(dict[str, Any], endpoint.record)
        try:
            await fleet.start(desired_counts(record))
        except FleetFailed as error:
            endpoint.new_fleet = None
            failed(endpoint.hosting, record, self.clock.moment(), str(error))
            return
        endpoint.fleet, endpoint.new_fleet = fleet, None
        in_service(endpoint.hosting, record, self.clock.moment())

    @_in_loop
    def update(
        self,
        place: Place,
        name: str,
        config: Mapping[str, Any],
        described: Mapping[str, Any],
        deployment: Mapping[str, Any] | None,
        done: Callable[[], None],
    ) -> None:
        """Replace an endpoint's fleet, whose record says Updating."""
        endpoint = self._endpoints[place, name]
        work = self._deploy(endpoint, config, described, deployment or {}, done)
        endpoint.work = asyncio.create_task(work)

    async def _deploy(
        self,
        endpoint: RuntimeEndpoint,
        config: Mapping[str, Any],
        described: Mapping[str, Any],
        deployment: Mapping[str, Any],
        done: Callable[[], None],
    ) -> None:
        record = cast(dict[str, Any], endpoint.record)
        state = state_at(endpoint.place)

        def alarms_on(names: list[str]) -> list[str]:
            found = (state.alarms.get(alarm) for alarm in names)
            return [alarm.name for alarm in found if alarm is not None and alarm.state == "ALARM"]

        work = Deployment(
            endpoint,
            self._fleet(endpoint, config),
            desired_counts(described),
            deployment,
            self.clock,
            cast(Ticks, self._ticks).caught_up,
            alarms_on,
            lambda status: pending(
                endpoint.hosting, record, self.clock.moment(), config, described, status
            ),
        )
        try:
            await work.run()
        except RolledBack as error:
            former = endpoint.hosting.configs.get(record["EndpointConfigName"])
            endpoint.take_metrics_config(former or {})
            reason = str(error) if self.options.keeps_failure_reason else None
            in_service(endpoint.hosting, record, self.clock.moment(), reason)
        except FleetFailed as error:
            set_status(
                endpoint.hosting, record, self.clock.moment(), "UpdateRollbackFailed", str(error)
            )
        else:
            done()
            cast(Fleet, endpoint.fleet).take_weights(record)
            in_service(endpoint.hosting, record, self.clock.moment())
        finally:
            if endpoint.record is record:  # else it was deleted meanwhile, with all it had
                let_go(
                    endpoint.place,
                    endpoint.name,
                    self.clock,
                    self.options,
                    but_for=record["EndpointConfigName"],
                )

    @_in_loop
    def scale(self, place: Place, name: str) -> None:
        """Bring a started endpoint to the counts and weights that its record wants."""
        endpoint = self._endpoints[place, name]
        endpoint.work = asyncio.create_task(self._resize(endpoint, None))

    async def _resize(
        self, endpoint: RuntimeEndpoint, ended: Callable[[str | None], None] | None
    ) -> None:
        record = cast(dict[str, Any], endpoint.record)
        fleet = cast(Fleet, endpoint.fleet)
        fleet.take_weights(record)
        problem = None
        try:
            await asyncio.gather(
                *(
                    fleet.scale(fleet.variants[name], count)
                    for name, count in desired_counts(record).items()
                    if name in fleet.variants
                )
            )
        except FleetFailed as error:
            problem = str(error)
        for variant in all_variants(record):
            if problem and variant["VariantName"] in fleet.variants:
                count = len(fleet.variants[variant["VariantName"]].instances)
                variant["DesiredInstanceCount"] = count
        in_service(endpoint.hosting, record, self.clock.moment(), problem)
        if ended is not None:
            ended(problem)

    @_in_loop
    def watch(self) -> None:
        """Let the ticks run: something is to be scaled, which may have no model server."""

    def _scale_for_policy(
        self, place: Place, resource_id: str, count: int, ended: Callable[[str | None], None]
    ) -> bool:
        """Move the capacity of a variant or component for a scaling policy; runs in the loop."""
        _, name, *rest = resource_id.split("/")
        if not rest:
            return self._scale_component(place, name, count, ended)
        record = hosting(*place).endpoints.get(name)
        if record is None:
            return False
        if record["EndpointConfigName"] not in hosting(*place).configs:
            ended(f"Could not find endpoint configuration {record['EndpointConfigName']}.")
            return True
        endpoint = self._endpoints.get((place, name))
        live = endpoint is not None and endpoint.live
        for described in all_variants(record):
            if described["VariantName"] == rest[-1]:
                described["DesiredInstanceCount"] = count
                if not live:
                    described["CurrentInstanceCount"] = count
        if endpoint is None or not endpoint.live:  # its record is all there is
            ended(None)
            return True
        set_status(endpoint.hosting, record, self.clock.moment(), "Updating")
        endpoint.work = asyncio.get_running_loop().create_task(self._resize(endpoint, ended))
        return True

    # ------------------------------------------------------------------------ inference components

    @_in_loop
    def place_copies(
        self, place: Place, component: dict[str, Any], specification: Mapping[str, Any]
    ) -> None:
        """Bring a component, which says Creating or Updating, to its specification and copies."""
        name = component["EndpointName"]
        endpoint = self._endpoints.setdefault(
            (place, name), RuntimeEndpoint(place, name, hosting(*place), live=False)
        )
        endpoint.move(self._place_copies(endpoint, component, specification, None))

    async def _place_copies(
        self,
        endpoint: RuntimeEndpoint,
        component: dict[str, Any],
        specification: Mapping[str, Any],
        ended: Callable[[str | None], None] | None,
    ) -> None:
        name, counts = component["InferenceComponentName"], component["RuntimeConfig"]
        count, before = counts["DesiredCopyCount"], endpoint.rooms.get(name)
        fleet = endpoint.components.get(name)
        problem = None
        try:
            self._take_room(
                endpoint, component, (component["VariantName"], copy_room(specification), count)
            )
            if fleet is not None and specification == component["Specification"]:
                await fleet.scale(fleet.variants[name], count)
            else:
                new = component_fleet(
                    endpoint.place,
                    name,
                    specification,
                    _host(endpoint.hosting, component),
                    endpoint.hosting,
                    self.clock,
                    self.options,
                    self._site(endpoint),
                )
                await new.start({name: count})
                endpoint.components[name] = new
                if fleet is not None:
                    fleet.stop()
                fleet = new
            component["Specification"] = specification
        except FleetFailed as error:
            problem = str(error)
            with contextlib.suppress(FleetFailed):
                self._take_room(endpoint, component, before)
        # An update that fails leaves the component as it was; that it is InService is ours.
        status = "InService" if fleet is not None else "Failed"
        counts["CurrentCopyCount"] = fleet.size if fleet is not None else 0
        if fleet is not None:
            counts["DesiredCopyCount"] = fleet.size
        set_status(endpoint.hosting, component, self.clock.moment(), status, problem)
        if ended is not None:
            ended(problem)

    def _take_room(
        self,
        endpoint: RuntimeEndpoint,
        component: Mapping[str, Any],
        wanted: tuple[str, Room, int] | None,
    ) -> None:
        rooms, name = dict(endpoint.rooms), component["InferenceComponentName"]
        rooms.pop(name, None)
        if wanted is not None:
            rooms[name] = wanted
        copies = [
            (size, count)
            for variant, size, count in rooms.values()
            if variant == component["VariantName"]
        ]
        take_room(endpoint.hosting, component, _host(endpoint.hosting, component), copies)
        endpoint.rooms = rooms

    def _scale_component(
        self, place: Place, name: str, count: int, ended: Callable[[str | None], None]
    ) -> bool:
        component = hosting(*place).components.get(name)
        endpoint = self._endpoints.get((place, component["EndpointName"])) if component else None
        if component is None or endpoint is None:
            return False
        component["RuntimeConfig"]["DesiredCopyCount"] = count
        set_status(endpoint.hosting, component, self.clock.moment(), "Updating")
        endpoint.move(self._place_copies(endpoint, component, component["Specification"], ended))
        return True

    @_in_loop
    def remove_copies(
        self, place: Place, component: Mapping[str, Any], done: Callable[[], None]
    ) -> None:
        """Stop the copies of a component that says Deleting; `done` is called when they ended."""
        endpoint = self._endpoints[place, component["EndpointName"]]

        async def remove() -> None:
            fleet = endpoint.components.pop(component["InferenceComponentName"], None)
            if fleet is not None:
                await fleet.end()
            with contextlib.suppress(FleetFailed):
                self._take_room(endpoint, component, None)
            done()

        endpoint.move(remove())

    def delete(self, place: Place, name: str) -> None:
        """Stop a deleted endpoint's instances."""
        if self._thread.runs and (place, name) in self._endpoints:
            self._drop(place, name)

    @_in_loop
    def _drop(self, place: Place, name: str) -> None:
        self._endpoints.pop((place, name)).stop()

    # --------------------------------------------------------------------------- metrics and clock

    async def _flush_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            try:
                await loop.run_in_executor(None, self.meter.flush)
            except Exception:
                # Metrics that cannot be put must not end the metrics that can.
                logger.exception("putting metrics failed")

    async def _tick(self, at: float) -> None:
        """Publish what is due and judge the alarms, where there are model servers; scale."""
        if self.options.model_servers:
            await self._judge(at)
        for place in scaled_places():
            self._tracking.act(place, at)

    async def _judge(self, at: float) -> None:
        live = [e for e in self._endpoints.values() if e.live and e.fleet is not None]
        await self._observation.publish(live, at)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.meter.flush)
        await loop.run_in_executor(None, self._observation.judge, at)

    def flush(self) -> None:
        """Put every request that has been answered so far into CloudWatch."""
        if self._thread.runs:
            self._thread.run(asyncio.sleep(0))  # an answer is counted right after it was sent
        self.meter.flush()

    def advance(self, seconds: float) -> float:
        """Move the clock on, with everything that happens meanwhile; gives its new time."""
        self.clock.check_jump(seconds)
        return self._thread.run(self._advance(seconds), None)

    async def _advance(self, seconds: float) -> float:
        ticks = cast(Ticks, self._ticks)
        # Counted, not subtracted: of a large number ten seconds take nothing away.
        whole, rest = divmod(seconds, TICK)
        for step in itertools.chain(itertools.repeat(TICK, int(whole)), [rest] if rest else []):
            self.clock.advance(step)
            await ticks.caught_up()
            # Deployments and cold starts that waited for this moment take their next step.
            await asyncio.sleep(0.002)
        return self.clock.now()


def _host(hosting: Hosting, component: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the settings of the variant that a component is placed on, and its network."""
    name = hosting.endpoints[component["EndpointName"]]["EndpointConfigName"]
    config = hosting.configs.get(name, {})
    for variant in all_variants(config):
        if variant["VariantName"] == component["VariantName"]:
            of_all = ("VpcConfig", "ExecutionRoleArn", "KmsKeyId", "EnableNetworkIsolation")
            return {**variant, **{name: config.get(name) for name in of_all}}
    # As an update or scaling of an endpoint whose configuration was deleted; see there.
    raise FleetFailed(f"Could not find endpoint configuration {name}.")
