"""Trains two dense layers on handwritten digits.

    python digits.py --out DIR        DIR/digits.png: the loss; DIR/digits.keel: the model, for `keel run` and any program
"""
import sys

import classifier
import keel
import numpy as np

random = np.random.default_rng(1)


def dense(name, inside, outside):
    """Weights after He et al. (2015) and a zero bias."""
    weight = random.standard_normal((inside, outside)) * (2 / inside) ** 0.5
    return keel.Variable(weight.astype("f4"), f"{name}/w"), keel.Variable(keel.zeros(outside), f"{name}/b")


weights = hidden, out = dense("hidden", 64, 128), dense("out", 128, 10)


def model(images):
    return keel.linear(keel.relu(keel.linear(images, *hidden)), *out)


if __name__ == "__main__":
    sys.exit(classifier.run("digits", __doc__, model, weights, keel.optim.Adam(0.002), goal=0.95, epochs=40))
