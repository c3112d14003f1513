"""Load tests of SageMaker endpoints: from one laptop to a fleet, with numbers that hold.

Importing this package loads neither Locust nor gevent: Locust patches the standard library of the
process that imports it, so only load generators do, in processes of their own. It imports
``settings``, ``account``, ``client``, ``simulate``, ``report`` and ``plan``; never ``aws_cdk``.
"""
