"""The diagrams in docs/images are in step with the templates and the plan, and a phone shows their words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.drawing import WIDTH, length
from docs.make_pictures import PICTURES, settings_template

from .console_blocks import ROOT

IMAGES = ROOT / "docs" / "images"
FILES = sorted(IMAGES.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
PHONE = 358  # pixels for a picture on a phone of 390
#: Types of the stack that no picture needs: they serve the resources that are drawn.
BEHIND = re.compile(
    r"AWS::(IAM|Logs|SQS)::|AWS::Lambda::(Permission|EventInvokeConfig)|AWS::EC2::(FlowLog|RouteTable"
    r"|SubnetRouteTableAssociation|SecurityGroup(In|E)gress)|Custom::(?!WarmUp)"
)


@pytest.fixture(scope="module")
def drawn() -> Mapping[str, str]:
    """The diagrams as they are today, by the names of their files."""
    return {name: draw() for name, draw in PICTURES.items()}


def test_the_diagrams_are_in_step(drawn: Mapping[str, str]) -> None:
    stale = [name for name, text in drawn.items() if (IMAGES / name).read_text("utf-8") != text]
    assert stale == [], "run: make docs"


def test_the_architecture_has_each_type_of_the_template(drawn: Mapping[str, str]) -> None:
    shown = re.findall(r'data-types="([^"]*)"', drawn["architecture.svg"])
    types = {resource["Type"] for resource in settings_template("{}").resources.values()}
    assert {kind for kinds in shown for kind in kinds.split()} == {
        kind for kind in types if not BEHIND.match(kind)
    }


def test_the_arrow_of_target_tracking_ends_at_the_instances(drawn: Mapping[str, str]) -> None:
    picture = ElementTree.fromstring(drawn["architecture.svg"])
    boxes = {
        box.get("data-types", "").partition(" ")[0]: [
            float(box.get(side, 0)) for side in ("x", "y", "width", "height")
        ]
        for box in reversed(picture.findall(f"{SVG}rect"))
    }
    _, top, _, _ = boxes["AWS::ApplicationAutoScaling::ScalableTarget"]
    paths = [path.get("d", "") for path in picture.findall(f"{SVG}path")]
    [arrow] = [path for path in paths if re.match(rf"M\d+ {top:g}V", path)]
    start, end = (float(number) for number in re.findall(r"(?:M|V)([\d.]+)", arrow))
    instances = boxes["AWS::SageMaker::Model"]
    assert instances[0] < start < instances[0] + instances[2]
    assert 0 <= end - (instances[1] + instances[3]) < 5


@pytest.mark.parametrize(
    ("picture", "words"),
    [
        ("vpc-new.svg", ["VPC 10.0.0.0/16, no internet gateway", "443 from 10.0.0.0/16"]),
        ("vpc-existing.svg", ["vpc-0a1b2c3d", "private DNS", "there already"]),
        ("vpc-shared.svg", ["made by the stack of the VPC's owner"]),
        ("vpc-callers-elsewhere.svg", ["private hosted zone", "443 from 10.20.0.0/16"]),
        ("deployment.svg", ["new fleet 10 %", "ModelLatency p99", "15 minutes at most"]),
    ],
)
def test_a_picture_says(drawn: Mapping[str, str], picture: str, words: list[str]) -> None:
    texts = [text.text for text in ElementTree.fromstring(drawn[picture]).iter(f"{SVG}text")]
    assert set(words) <= set(texts)


def test_who_makes_what_is_that_of_the_templates(drawn: Mapping[str, str]) -> None:
    """In colour is what a stack makes; what nobody makes stands for no resource type."""
    types = {name: set(re.findall(r'data-types="([\w:]+)', text)) for name, text in drawn.items()}
    network = {"AWS::EC2::VPC", "AWS::EC2::Subnet"}
    assert network <= types["vpc-new.svg"]
    assert not network & types["vpc-existing.svg"]
    owners = re.findall(r's-purple"? data-types="(\S+?)[ "]', drawn["vpc-shared.svg"])
    assert {*network, "AWS::EC2::VPCEndpoint"} == set(owners)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_picture_shows_everywhere(path: Path) -> None:
    """No script, no HTML, nothing from elsewhere; a title; both colour schemes; letters for a phone."""
    text = path.read_text("utf-8")
    picture = ElementTree.fromstring(text)
    kinds = {element.tag.removeprefix(SVG) for element in picture.iter()}
    assert kinds <= {"svg", "title", "style", "defs", "marker", "path", "rect", "text", "circle"}
    assert not re.search(r"href|url\((?!#)|@import", text)
    assert "prefers-color-scheme: dark" in text
    assert picture.findtext(f"{SVG}title")
    assert float(picture.get("width", 0)) == WIDTH
    for line in picture.iter(f"{SVG}text"):
        size = float(line.get("font-size", 0))
        assert size * PHONE / WIDTH > 9, line.text
        looks = line.get("class", "")
        wide = length(line.text or "", size, mono="mono" in looks, bold="bold" in looks)
        share = {"middle": 0.5, "end": 1}.get(line.get("text-anchor", ""), 0)
        left = float(line.get("x", 0)) - share * wide
        assert 0 <= left <= left + wide <= WIDTH, line.text


def test_pages_show_pictures_that_exist_with_an_alternative_text() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for words, path in re.findall(r"!\[([^]]*)\]\(([^)]*\.svg)\)", page.read_text("utf-8")):
            assert (page.parent / path).resolve() in FILES, f"{page.name}: {path}"
            assert len(words) > 30, f"{page.name}: {path} has no alternative text"
