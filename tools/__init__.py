"""What the project is worked on with, no part of the wheels.

acceptance    tries the library's claims in an AWS account: make accept
benchmarks    ratios of times, the nightly run, the size of the code: make bench, nightly, size
fuzzing       made-up settings files: make fuzz
release       what an upgrade does to stacks that are deployed: make upgrade-page
"""
