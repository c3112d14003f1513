"""Errors whose own words let pass what they refuse: the mistake is in another place than they say."""

from __future__ import annotations

import re

_NUMBER = r"(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)"


def contradicts_itself(got: str, allowed: str) -> bool:
    """Whether what an error got is, by its own words, just what it allows."""
    got = got.strip("'\"")
    number = re.fullmatch(rf"{_NUMBER} ?([a-zA-Z%]*)", got)
    if number and within(as_number(number[1]), allowed, number[2]):
        return True
    ending = re.search(r"(?:ends? (?:in|with)|ending (?:in|with)|named \*) ?(\S+)$", allowed)
    if ending and got.endswith(ending[1]):
        return True
    if allowed.startswith("such as "):
        examples = re.split(r" or |, ", allowed.removeprefix("such as "))
        return shape(got) in map(shape, examples)
    choices = {choice.strip("'\" ") for choice in re.split(r",? or |, ", allowed)}
    return got in choices and not allowed.startswith("none of ")


def within(number: float, allowed: str, unit: str) -> bool:
    """Whether a text of limits lets a number of this unit pass."""
    end = rf" {re.escape(unit)}" if unit else ""
    if limits := re.fullmatch(rf"{_NUMBER} to {_NUMBER}{end}", allowed):
        return as_number(limits[1]) <= number <= as_number(limits[2])
    if limit := re.fullmatch(rf"(at least|at most|more than|less than) {_NUMBER}{end}", allowed):
        bound = as_number(limit[2])
        passes = {
            "at least": number >= bound,
            "at most": number <= bound,
            "more than": number > bound,
            "less than": number < bound,
        }
        return passes[limit[1]]
    return False


def as_number(text: str) -> float:
    """A number that is written with commas."""
    return float(text.replace(",", ""))


def shape(text: str) -> str:
    """A text without its own letters and numbers, of ASCII, such as ``a:a-9`` for arn:key-17."""
    return re.sub(r"[a-zA-Z]+", "a", re.sub(r"[0-9]+", "9", text.strip("'\"")))
