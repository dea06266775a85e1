"""scikit-learn's linear support vector machine on TF-IDF of words and characters; nothing is tuned, C is 1."""

from __future__ import annotations

from typing import Any

import joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC
from worker import Example, Job, Predict, reader, serve


def learn(job: Job) -> dict[str, Any]:
    """Fits on the training part; the validation part is not looked at."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    model = make_pipeline(make_union(words, characters), LinearSVC(C=1.0, random_state=job.seed))
    examples = job.examples("train")
    model.fit([one["text"] for one in examples], [one["label"] for one in examples])
    joblib.dump(model, job.own / "model.joblib")
    return {}


def load(job: Job) -> Predict:
    """All texts at once."""
    model = joblib.load(job.own / "model.joblib")

    def predict(examples: list[Example]) -> list[str]:
        return [str(label) for label in model.predict([one["text"] for one in examples])]

    return predict


if __name__ == "__main__":
    serve(reader(learn, load))
