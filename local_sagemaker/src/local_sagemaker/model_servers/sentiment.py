"""A real model as an inference script: text classification with scikit-learn.

It trains a small classifier (hashed words and word pairs, logistic regression).
``POST /invocations`` takes ``{"inputs": "text"}`` or a list of texts and answers as Hugging Face's
text-classification pipeline does: ``[{"label": "POSITIVE", "score": 0.98}]``. `handlers` serves it.
"""

from __future__ import annotations

import itertools
import json
from importlib import import_module
from typing import Any

_GOOD = ("good", "great", "excellent", "wonderful", "delightful", "superb", "brilliant", "lovely")
_BAD = ("bad", "awful", "terrible", "horrible", "dreadful", "poor", "boring", "disappointing")
_THINGS = ("film", "story", "service", "meal", "book", "room", "team", "product", "plot", "song")
_FRAMES = (
    "the {thing} was {word}",
    "what a {word} {thing}",
    "i found the {thing} rather {word}",
    "a {word} {thing} from start to end",
    "honestly the {thing} is {word}",
    "{word} {thing}",
)


class Classifier:
    """Logistic regression over hashed words, trained on sentences built from a small grammar."""

    def __init__(self) -> None:
        text = import_module("sklearn.feature_extraction.text")
        linear_model = import_module("sklearn.linear_model")
        pipeline = import_module("sklearn.pipeline")
        texts, labels = [], []
        for label, words in (("POSITIVE", _GOOD), ("NEGATIVE", _BAD)):
            for word, thing, frame in itertools.product(words, _THINGS, _FRAMES):
                texts.append(frame.format(word=word, thing=thing))
                labels.append(label)
        self._pipeline = pipeline.make_pipeline(
            text.HashingVectorizer(n_features=2**14, ngram_range=(1, 2)),
            linear_model.LogisticRegression(max_iter=200),
        )
        self._pipeline.fit(texts, labels)

    def classify(self, texts: list[str]) -> list[dict[str, Any]]:
        """Give label and score of each text."""
        names = self._pipeline.classes_
        return [
            {"label": str(names[row.argmax()]), "score": float(row.max())}
            for row in self._pipeline.predict_proba(texts)
        ]


class BadRequest(Exception):
    """The request is not what the model takes."""

    status_code = 400


def model_fn(model_dir: str) -> Classifier:
    """Train the model."""
    return Classifier()


def input_fn(body: bytes, content_type: str) -> list[str]:
    """Read one text or several."""
    try:
        inputs = json.loads(body)["inputs"]
        return [inputs] if isinstance(inputs, str) else [str(text) for text in inputs]
    except (ValueError, KeyError, TypeError):
        raise BadRequest('send {"inputs": "text"} or {"inputs": ["text", ...]}') from None


def predict_fn(data: list[str], model: Classifier) -> list[dict[str, Any]]:
    """Classify each text."""
    return model.classify(data)
