"""The newest model, and its scores: the trigger, Spark and train.py call this one code."""

from functools import cache
from pathlib import Path

import joblib

MODELS = Path(__file__).parent.parent / "models"
FEATURES = ["Amount__c", "Hour__c", "Abroad__c"]


def newest():
    """The version of the newest model, 0 if there is none. A model is loaded once, and a new file is seen at once."""
    return max((int(path.stem) for path in MODELS.glob("*.joblib")), default=0)


@cache
def model(version):
    return joblib.load(MODELS / f"{version}.joblib")


def scores(rows):
    """The version of the newest model, and how likely it is that each row of features is a fraud, from 0 to 1."""
    version = newest()
    return version, model(version).predict_proba(rows)[:, 1].tolist()


def score(views):
    """For Spark: Arrow brings batches of rows to Python as pandas frames, and takes the scores back."""
    payments = views["Payment__e"].select("Payment_Number__c", *FEATURES)
    return payments.mapInPandas(scored, "payment STRING, model INT, score DOUBLE")


def scored(frames):
    for frame in frames:
        version, values = scores(frame[FEATURES].to_numpy(float))
        yield frame[["Payment_Number__c"]].set_axis(["payment"], axis=1).assign(model=version, score=values)
