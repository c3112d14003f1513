"""A deployment in the simulation: a new fleet replaces the old one, in steps."""

from __future__ import annotations

from functools import partial

from .fleet_changes import Rollout
from .fleet_control import FleetControl


class FleetReplacement:
    """Replaces every instance by a new one.

    Blue/green launches a whole new fleet, moves the traffic to it in one or more steps, and keeps
    the old fleet until the end. Rolling launches a batch and retires as many old instances, in turn.
    """

    def __init__(self, rollout: Rollout, control: FleetControl) -> None:
        self.rollout = rollout
        self.control = control

    def begin(self) -> None:
        """Put the deployment on the agenda."""
        self.control.at(self.rollout.at, self._deploy)

    def _deploy(self) -> None:
        control = self.control
        rollout = self.rollout
        if control.updating:  # by scaling: the endpoint takes one update at a time
            control.after(1.0, self._deploy)
            return
        control.updating = True
        for instance in control.known:
            instance.old = True
        fleet = control.old_wanted = control.desired
        step = rollout.step(fleet)
        if rollout.kind == "rolling":
            control.new_withheld = fleet
            self._launch_batch(step)
            return
        control.launch(fleet, rollout.instance_seconds)
        first = fleet if rollout.kind == "all_at_once" else step
        control.after(rollout.instance_seconds, partial(self._shift, first))

    def _shift(self, step: int) -> None:
        """Move the traffic of so many instances of the old fleet, which stay until the end."""
        control = self.control
        rollout = self.rollout
        self._replace(step, kept=True)
        if not control.old_wanted:
            control.after(rollout.bake_seconds, control.end_update)
            return
        following = control.old_wanted if rollout.kind == "canary" else step
        control.after(rollout.wait_seconds, partial(self._shift, following))

    def _launch_batch(self, step: int) -> None:
        """Launch a batch of a rolling deployment."""
        control = self.control
        batch = min(step, control.new_withheld)
        control.new_withheld -= batch
        control.launch(batch, self.rollout.instance_seconds)
        control.after(self.rollout.instance_seconds, partial(self._retire_batch, step, batch))

    def _retire_batch(self, step: int, batch: int) -> None:
        """Retire as many old instances as have started, and go on with the next batch."""
        control = self.control
        self._replace(batch, kept=False)
        if control.new_withheld:
            control.after(self.rollout.wait_seconds, partial(self._launch_batch, step))
        else:
            control.end_update()

    def _replace(self, number: int, *, kept: bool) -> None:
        """Move the traffic of so many old instances to new ones, and retire the old ones."""
        control = self.control
        world = self.control.world
        control.old_wanted = max(0, control.old_wanted - number)
        control.join_ready()
        superfluous = max(0, control.count_known(old=True) - control.old_wanted)
        candidates = [*world.in_phase("starting"), *world.serving]
        old = [instance for instance in candidates if instance.old]
        control.retire(old[:superfluous], kept=kept)
