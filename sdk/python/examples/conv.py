"""Trains two convolutions and a dense layer on handwritten digits.

    python conv.py --out DIR        DIR/conv.png: the loss; DIR/conv.keel: the model, for `keel run` and any program
"""
import sys

import classifier
import keel
import numpy as np

random = np.random.default_rng(1)


def layer(name, *shape, bias):
    """Weights after He et al. (2015), [in, out] or [out, in, h, w], and a zero bias."""
    inputs = shape[0] if len(shape) == 2 else np.prod(shape[1:])
    weight = random.standard_normal(shape) * (2 / inputs) ** 0.5
    return keel.Variable(weight.astype("f4"), f"{name}/w"), keel.Variable(keel.zeros(bias), f"{name}/b")


weights = first, second, out = (layer("first", 16, 1, 3, 3, bias=(16, 1, 1)), layer("second", 32, 16, 3, 3, bias=(32, 1, 1)),
                                layer("out", 32 * 4 * 4, 10, bias=(10,)))


def conv(x, weight, bias):
    """A 3 x 3 convolution with padding: the output has the size of x."""
    return keel.relu(keel.conv(x, weight, lo=[1, 1], hi=[1, 1]) + bias)


def model(images):
    x = conv(keel.reshape(images, (-1, 1, 8, 8)), *first)
    x = conv(keel.max_pool(x, [2, 2], stride=[2, 2]), *second)
    return keel.linear(keel.reshape(x, (-1, 32 * 4 * 4)), *out)


if __name__ == "__main__":
    optimizer = keel.optim.SGD(0.05, momentum=0.9, nesterov=True)
    sys.exit(classifier.run("conv", __doc__, model, weights, optimizer, goal=0.97, epochs=30))
