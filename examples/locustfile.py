"""A load test of a SageMaker endpoint with Locust: use it as it is, or change the class below.

::

    locust -f examples/locustfile.py --endpoint-name sentiment --headless -u 20 -t 1m --csv results
    locust -f examples/locustfile.py --endpoint-name sentiment            # its UI: port 8089
    locust -f examples/locustfile.py --endpoint-name sentiment --headless -u 200 --processes -1
    locust -f examples/locustfile.py --endpoint-name sentiment --payload requests.jsonl

``locust -f examples/locustfile.py --help`` lists the options, each beginning "SageMakerUser".
"""

from __future__ import annotations

from low_latency_endpoint.load_test import Payloads, SageMakerUser


class Sentiment(SageMakerUser):
    """Sends the same sentence again and again; one user is one caller that waits for its answer."""

    payloads = Payloads.of_bytes(b'{"inputs": "I am super happy right now."}')
