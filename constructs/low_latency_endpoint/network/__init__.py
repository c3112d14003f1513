"""Where callers meet the endpoint: client zones, subnets, PrivateLink, private DNS.

It imports ``plan``, ``errors`` and ``synthesis``.
"""
