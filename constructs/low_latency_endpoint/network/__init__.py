"""Where callers meet the endpoint: client zones, subnets, PrivateLink, private DNS."""
