"""An outage in the simulation: the instances of a zone die, and are replaced in other zones."""

from __future__ import annotations

from .fleet_changes import ZoneOutage
from .fleet_control import FleetControl
from .world import Instance


class FleetOutage:
    """Lets the instances of a zone die; until this is noticed requests to them hang."""

    def __init__(self, outage: ZoneOutage, control: FleetControl) -> None:
        self.outage = outage
        self.control = control
        self._struck: list[Instance] = []

    def begin(self) -> None:
        """Put the outage on the agenda."""
        self.control.at(self.outage.at, self._strike)

    def _strike(self) -> None:
        control = self.control
        world = self.control.world
        control.invocations.count()
        control.lost_zones.add(self.outage.zone)
        fleet = [*world.serving, *world.in_phase("draining"), *world.in_phase("starting")]
        in_zone = [instance for instance in fleet if instance.zone == self.outage.zone]
        for instance in in_zone:
            instance.kept = False
        self._struck = [instance for instance in in_zone if control.is_paid(instance)]
        world.kill(self._struck)
        control.after(self.outage.detection_seconds, self._notice)

    def _notice(self) -> None:
        """Let the requests of the dead fail, and launch what is missing of each fleet."""
        control = self.control
        world = self.control.world
        control.invocations.count()
        # Some that were starting may have been taken away meanwhile.
        lost = [
            instance for instance in self._struck if world.fleet.get(instance.place) is instance
        ]
        world.notice(lost)
        missing = [instance for instance in lost if instance.phase != "draining"]
        old_missing = sum(1 for instance in missing if instance.old)
        new_missing = len(missing) - old_missing
        new_wanted = control.desired - control.new_withheld
        new = min(new_missing, new_wanted - control.count_known(old=False))
        old = min(old_missing, control.old_wanted - control.count_known(old=True))
        control.launch(new, self.outage.replacement_seconds)
        control.launch(old, self.outage.replacement_seconds, old=True)
        control.join_ready()  # new instances that wait for traffic may take that of the dead
