"""The runtime behind the local AWS: model servers, routing, deployments, scaling, metrics."""
