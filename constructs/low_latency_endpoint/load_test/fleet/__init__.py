"""A load test's generator on ECS Fargate, in the client zones: started, asked, stopped.

A :class:`.fleet_generator.FleetGenerator` runs steps like the processes of this machine do, so
whatever measures with one measures with the other. Its master and workers are tasks of the
deployed ``LoadTestFleet``; steps and results pass through the fleet's bucket.
"""
