"""What the commands that send load have in common: what is sent, from where, and what is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .options import ENDPOINT_YAML, Json, OptionalSettings, Profile, Region, flag, option
from .output import say
from .process import check_packages

if TYPE_CHECKING:
    from ..load_test.engine.payloads import Payloads
    from ..load_test.engine.prompts import Prompts
    from ..load_test.engine.target import Target
    from ..load_test.search.settings_file import StatedEndpoint
    from ..plan.traffic_shapes import Shape


_TYPES = {
    ".csv": "text/csv",
    ".npy": "application/x-npy",
    ".jpg": "image/jpeg",
    ".png": "image/png",
}


@dataclass
class Sending:
    settings: OptionalSettings = None
    payload: str | None = option(
        "Request to send: a file (.jsonl has one request per line), a folder, module:function, or "
        "JSON text. Default: the warm-up payload of the settings file.",
        metavar="SOURCE",
    )
    tokens: str | None = option(
        "Generate prompts for a language model by number of tokens: input=512,output=128; "
        "input=300:1800 for lengths that vary (median:p95); file=lengths.csv for recorded lengths; "
        "shared_prefix=0.5,prefixes=N for prompts that share a prefix; turns=4,conversations=50 for "
        "conversations that repeat earlier turns. Default: tokens of the settings file, unless "
        "--payload is given.",
        metavar="LENGTHS",
    )
    openai: bool = flag("Call the OpenAI-compatible path of the endpoint with a bearer token.")
    prefix_aware_id: bool = flag(
        "With --tokens: tell the router the shared prefix, or with turns the conversation."
    )
    sessions: bool = flag(
        "With turns: open a session per conversation, which keeps it on one instance."
    )
    content_type: str | None = option(
        "Content type of the payload. Default: from the settings file's warm-up or the file's "
        "extension (.csv, .npy, .jpg, .png), otherwise application/json.",
        metavar="TYPE",
    )
    accept: str | None = option("Content type of the response to ask for.", metavar="TYPE")
    expect: str | None = option("Text that every valid response contains.", metavar="REGEX")
    stream: bool = flag("Invoke with response streaming.")
    timeout: str = option("Time limit of a request.", "60s", metavar="TIME")
    zonal: list[str] | None = option(
        "Base URL, such as that of the interface endpoint in a zone. If repeated, the URLs take turns.",
        metavar="URL",
    )
    allow_plain_http: bool = flag(
        "Allow http:// URLs of other machines, which sends requests and signatures unencrypted."
    )
    constant: bool = option(
        "Open loop: send at equal intervals, or at random intervals as independent callers do.",
        False,
        names="--constant/--poisson",
    )
    seed: int = option("Random seed. The same seed gives the same requests.", 1, metavar="N")
    allowed_errors: float = option("Share of requests that may fail.", 0.001, metavar="SHARE")
    processes: int = option("Processes on this machine; in a comparison, per side.", 1, metavar="N")
    profile: Profile = None
    region: Region = None

    def needed_settings(self, command: str) -> Path:
        """The settings file, which is ``endpoint.yaml`` unless another is given; read from then on."""
        from .chosen_endpoints import usual_settings

        self.settings = self.settings or usual_settings(command, self.profile, self.region)
        return self.settings

    def endpoint(self, given: str | None) -> str:
        if given is not None:
            return given
        from .chosen_endpoints import stated_name

        return stated_name(self.needed_settings("load-test"), self.profile, self.region)[0]

    def stated(self, endpoint: str) -> StatedEndpoint | None:
        if self.settings is None:
            return None
        from ..load_test.search.settings_file import stated_endpoint

        return stated_endpoint(self.settings, endpoint)

    def payloads(self, stated: StatedEndpoint | None) -> Payloads:
        from ..load_test.engine.payloads import PAYLOAD_NEEDED, Payloads

        source = self.payload
        if (prompts := self._prompts(stated)) is not None:
            return Payloads.of_prompts(prompts)
        if source is None:
            if stated is not None and stated.payloads is not None:
                return stated.payloads
            more = {}
            if self.settings is None and ENDPOINT_YAML.exists():
                this = f"For the warm-up payload of this folder's file: --settings {ENDPOINT_YAML}"
                more["fix"] = f"{PAYLOAD_NEEDED.fix} {this}."
            allowed = "--payload, or a warm-up payload"
            raise PAYLOAD_NEEDED.error(got="none", allowed=allowed, **more)
        if source.lstrip().startswith(("{", "[", '"')) and not Path(source[:200]).exists():
            return Payloads.of_bytes(source.encode())
        return Payloads.of(source)

    def sends_prompts(self, stated: StatedEndpoint | None) -> bool:
        """Whether prompts are made by their tokens: as asked, or as nothing else is to be sent."""
        of_settings = self.payload is None and stated is not None and stated.tokens is not None
        return self.tokens is not None or of_settings

    def _prompts(self, stated: StatedEndpoint | None) -> Prompts | None:
        """Prompts by their tokens, where they are sent."""
        from ..load_test.engine.prompts import Prompts

        more: dict[str, Any] = {
            "tell_prefix": self.prefix_aware_id,
            "sessions": self.sessions,
            "seed": self.seed,
        }
        if self.tokens is not None:
            if self.payload is not None:
                raise typer.BadParameter("--tokens makes the requests; leave --payload out")
            return Prompts.of(self.tokens, **more)
        if self.sends_prompts(stated) and stated is not None:
            return Prompts(stated.tokens, **more)
        if self.prefix_aware_id:
            raise typer.BadParameter("--prefix-aware-id names what --tokens shares; give it too")
        if self.sessions:
            raise typer.BadParameter("--sessions are of conversations; give --tokens with turns")
        return None

    def target(self, endpoint: str, stated: StatedEndpoint | None, **more: Any) -> Target:
        """Where they go: what the options leave open is the settings', else the AWS CLI's."""
        from ..load_test.engine.target import INVOKE, OPENAI, Target

        prompts = self.sends_prompts(stated)
        payload_type = None
        if stated is not None and self.payload is None and not prompts:
            payload_type = stated.content_type
        if stated is not None:
            endpoint = stated.endpoint_name or endpoint
            more["target_model"] = more.get("target_model") or stated.target_model
        return Target(
            endpoint,
            self.found_region(stated),
            tuple(self.zonal or ()),
            content_type=self.content_type
            or payload_type
            or _TYPES.get(Path(self.payload or "").suffix.lower(), "application/json"),
            accept=self.accept,
            streaming=self.stream
            or self.openai
            or prompts
            or (stated is not None and stated.streaming),
            api=OPENAI if self.openai else INVOKE,
            expected=self.expect,
            timeout_seconds=seconds_of(self.timeout, "--timeout"),
            allow_plain_http=self.allow_plain_http,
            **more,
        )

    def found_region(self, stated: StatedEndpoint | None) -> str:
        """The option's, else the settings', else the AWS CLI's."""
        from ..account.sessions import open_clients

        return (
            self.region
            or (stated.region if stated else None)
            or open_clients(self.profile, None)[1]
        )


@dataclass
class ResultFiles:
    output: Path | None = option(
        "Write the result as JSON. plan and simulate read a load test's with --from-load-test.",
        metavar="FILE",
        short="-o",
    )
    json: Json = False

    def check(self, *others: Path | None) -> None:
        """Say before anything is sent what is missing, and what cannot be written."""
        check_packages("locust", "geventhttpclient", "hdrh", "boto3")
        from ..load_test.search.result_file import WRITTEN

        for file in (self.output, *others):
            if file is not None and (file.is_dir() or not file.parent.is_dir()):
                raise WRITTEN.error(
                    got=f"{file}: it is a folder"
                    if file.is_dir()
                    else f"{file.parent} is not a folder",
                    allowed="a file in an existing folder",
                )

    def said(self, *others: Path | None) -> None:
        """Name what was written."""
        for file in (self.output, *others):
            if file is not None:
                say(f"wrote {file}", err=True)


def check_traffic(traffic: str | None, traffic_from: Path | None, period: str | None) -> None:
    """Refuse options on traffic over time that do not go together."""
    if traffic is not None and traffic_from is not None:
        raise typer.BadParameter("give one of --traffic and --traffic-from")
    if period is not None and traffic_from is None:
        raise typer.BadParameter("--period goes with --traffic-from")


def recorded_shape(traffic_from: Path, period: str | None) -> Shape:
    """Recorded traffic as a shape; ``period`` is the length of its periods where that is stated."""
    from ..plan.recorded_traffic import read_recorded_traffic

    seconds = None if period is None else seconds_of(period, "--period")
    return read_recorded_traffic(traffic_from, period=seconds)


def seconds_of(text: str, option: str) -> float:
    from ..facts import durations

    if not durations.is_duration(text):
        raise typer.BadParameter(f"{option} {text}: write a number and a unit, such as 60s or 5m")
    return durations.seconds_of(text)
