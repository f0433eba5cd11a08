"""Four dense layers, eagerly and as a graph: the last programs of a Korean page. MNIST is replaced by 100 digits of
scikit-learn's wheel (or by generated images), and the progress bar is omitted."""
import importlib.util
import keel.compat.v2 as tf
import numpy as np
import time
from pathlib import Path

tqdm = iter


# -- K6
def load_data():
    """8x8 images enlarged to 28x28, 0 to 255, and their labels."""
    found = importlib.util.find_spec("sklearn")
    folder = Path(found.submodule_search_locations[0]) if found else Path()
    if (folder / "datasets/data/digits.csv.gz").exists():
        table = np.loadtxt(folder / "datasets/data/digits.csv.gz", delimiter=",", dtype=np.uint8)
    else:
        table = np.random.default_rng(1).integers(0, 17, (1797, 65), dtype=np.uint8)
    images = np.kron(table[:, :64].reshape(-1, 8, 8), np.ones((3, 3), np.uint8)) * 15
    return np.pad(images, ((0, 0), (2, 2), (2, 2)))[:100], table[:100, 64]


train_data = load_data()
(train_xs, train_ys) = train_data
train_xs = train_xs.reshape([-1, 784])
train_xs = train_xs.astype(np.float32)
print(train_xs.shape, train_xs.dtype)
#> (100, 784) float32


# -- K7
# Generate W, b
def generate_w_b(in_, out):
    w_init = tf.random.normal([in_, out])
    w = tf.Variable(w_init, dtype=tf.float32)
    b_init = tf.zeros(out)
    b = tf.Variable(b_init, dtype=tf.float32)
    return w, b


w1, b1 = generate_w_b(784, 128)
w2, b2 = generate_w_b(128, 128)
w3, b3 = generate_w_b(128, 128)
w4, b4 = generate_w_b(128, 10)

# -- K8
# Run Dense Layer , 100 times
s = time.time()
for i in tqdm(range(100)):
    layer = train_xs
    z1 = tf.matmul(layer, w1) + b1
    a1 = tf.nn.relu(z1)
    z2 = tf.matmul(a1, w2) + b2
    a2 = tf.nn.relu(z2)
    z3 = tf.matmul(a2, w3) + b3
    a3 = tf.nn.relu(z3)
    logits = tf.matmul(a3, w4) + b4
print('Consume time : {}'.format(time.time() - s))
#> Consume time : ...


# -- K9
# Run Dense Layer, 100 times
@tf.function
def graph_execution(layer):
    z1 = tf.matmul(layer, w1) + b1
    a1 = tf.nn.relu(z1)
    z2 = tf.matmul(a1, w2) + b2
    a2 = tf.nn.relu(z2)
    z3 = tf.matmul(a2, w3) + b3
    a3 = tf.nn.relu(z3)
    logits = tf.matmul(a3, w4) + b4


# execute Graph, 100 times
s = time.time()
for i in tqdm(range(100)):
    graph_execution(train_xs)
print('Consume time : {}'.format(time.time() - s))
#> Consume time : ...
