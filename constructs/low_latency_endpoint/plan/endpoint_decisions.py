"""What follows from a request beside its fleet: addresses, the AMI, the warm-up, connections."""

from __future__ import annotations

import math
from fractions import Fraction

from ..errors import AWS_DOCS
from ..facts import subnets
from ..facts.images import AMI_SOURCE, cuda_words
from ..facts.limits import GUIDE
from ..options.throughput import stated
from ..report.numbers import milliseconds, readable
from .decisions import Decision
from .endpoint_request import EndpointRequest
from .token_plan import TokenPlan

HOST_VPC = AWS_DOCS + GUIDE + "host-vpc.html"
WARM_UP_MOST = 10_000
WARM_UP_MISS = 1000  # one chance in this many that a worker stays cold
DEFAULT_POOL = 10  # botocore's max_pool_connections

_SIZING = AWS_DOCS + "/vpc/latest/userguide/subnet-sizing.html"
_COLD = "https://repost.aws/knowledge-center/sagemaker-endpoint-latency"


def addresses_of_subnets(most: int) -> Decision[int]:
    """The addresses that each client zone's subnet needs for so many instances."""
    return Decision(
        name="addresses_per_subnet",
        value=subnets.addresses_per_subnet(most),
        unit="addresses",
        rule="addresses of an instance x the maximum x fleets (a blue/green update runs two), all "
        "possibly in one zone; those that AWS keeps, the interface endpoint's, and a spare",
        inputs={
            "addresses of an instance": subnets.ADDRESSES_PER_INSTANCE,
            "maximum instances": most,
            "fleets": subnets.FLEETS,
            "that AWS keeps": subnets.RESERVED_ADDRESSES,
            "interface endpoint's": subnets.INTERFACE_ENDPOINT_ADDRESSES,
            "spare": subnets.SPARE_ADDRESSES,
        },
        source=HOST_VPC,
    )


def size_of_subnets(addresses: int) -> Decision[str]:
    """The block of each client zone's subnet."""
    return Decision(
        name="subnet_size",
        value=f"/{subnets.roomy_prefix_length(addresses)}",
        rule="the smallest block with that many addresses, but no smaller than a /24: another "
        "size later would replace the subnets and all that is in them",
        inputs={"addresses": addresses},
        source=_SIZING,
    )


def inference_ami(request: EndpointRequest) -> Decision[str] | None:
    """The inference AMI that somebody chose or the images need; ``None`` for SageMaker's own."""
    serving = request.serving
    given = serving.inference_ami
    needed = serving.needed_ami
    ami = given or needed
    if ami is None:
        return None
    note = ""
    if given is None:
        note = (
            "taken over from SageMaker's SDK, not seen on AWS yet; AWS's own pages deploy such "
            "an image on ml.g6.2xlarge without it"
        )
    elif needed and needed != given:
        note = f"SageMaker's SDK would choose {needed}"
    known = {
        "CUDA of the images": cuda_words(serving.images),
        "instance family": serving.facts.family if serving.facts else None,
    }
    return Decision(
        name="inference_ami",
        value=ami,
        rule="the driver that CUDA 13 images need, where SageMaker's own may be older: then the "
        "container ends before it can log",
        inputs={name: value for name, value in known.items() if value},
        source=AMI_SOURCE,
        overridden=given is not None,
        note=note,
    )


def warm_up(request: EndpointRequest, initial: int) -> Decision[int]:
    """The requests that touch every worker of so many instances before callers do."""
    kind, workers = request.serving.workers
    rule = (
        f"one worker per {kind}, and SageMaker picks at random: so many that all workers get "
        f"one with {1 - 1 / WARM_UP_MISS:.1%} probability, and at most {WARM_UP_MOST:,}"
    )
    inputs: dict[str, object] = {"workers per instance": workers, "initial instances": initial}
    places = workers * initial
    share = request.share
    draws = Fraction(places * (math.log(places) + math.log(WARM_UP_MISS)))
    if share is not None:
        rule += (
            "; as many more as a share is smaller than all requests, and the endpoint gets the most "
            "that a variant asks for; none for a shadow, which gets copies, nor for a weight of 0"
        )
        inputs["share"] = share.text
        # Copies follow the requests that the others get, and their cold start harms nobody.
        draws = Fraction(0) if share.shadow or not share.fraction else draws / share.fraction
    return Decision(
        name="warm_up_requests",
        value=min(math.ceil(draws), WARM_UP_MOST),
        unit="requests",
        rule=rule,
        inputs=inputs,
        source=_COLD,
        note="sent after a deploy; instances that scaling adds later meet callers cold",
    ).overridden_by(request.warm_up_requests)


def connections(request: EndpointRequest, tokens: TokenPlan | None) -> Decision[int] | None:
    """Requests in flight at the peak, by Little's law; of a stream at its targets on tokens."""
    measured = request.endpoint_throughput
    slowest = request.latency.slowest if request.latency else None
    if slowest is not None:
        taken = stated(slowest[1]) / 1000
        what = "the slowest target"
        inputs = {slowest[0]: milliseconds(slowest[1], 6)}
    elif tokens is not None and tokens.call_seconds is not None:
        taken = stated(tokens.call_seconds)
        what = "how long a call takes"
        inputs = {"call at the targets": f"{readable(tokens.call_seconds)} s"}
    else:
        return None
    if measured is None:
        return None
    seconds = min(taken, Fraction(request.response_limit_seconds))
    return Decision(
        name="caller_connections",
        value=math.ceil(stated(measured.highest_tps) * seconds),
        unit="connections",
        rule=f"peak TPS x {what}: the "
        "requests in flight at the peak, of all callers; a connection carries one at a time",
        inputs={"peak TPS": measured.highest_tps, **inputs},
        note="split it over the processes that call and set max_pool_connections to each "
        f"one's share; boto3's default is {DEFAULT_POOL}, and what does not fit opens "
        "a new TLS connection per request",
    )
