"""TfIdfVectorizer on integers against ONNX Runtime, with random pools, then refusals."""
import numpy as np
import pytest
from onnx_cases import DEVICES, assert_refused
from test_onnx_families import agrees, model_of

RANDOM = np.random.default_rng(5)


def vectorizer(tokens, shortest=1, longest=3, skips=0, mode="TF", weights=None, **more):
    """A pool with all tokens from 0 to 3 and some pairs and triples, at shuffled places."""
    pairs = [[a, b] for a in range(3) for b in range(3)]
    triples = [[0, 1, 2], [2, 1, 0], [1, 1, 1]]
    count = 4 + len(pairs) + len(triples)
    pool = [*range(4), *np.ravel(pairs), *np.ravel(triples)]
    attributes = {"pool_int64s": [int(token) for token in pool], "ngram_counts": [0, 4, 4 + 2 * len(pairs)],
                  "ngram_indexes": [int(k) for k in np.random.default_rng(1).permutation(count)], "min_gram_length": shortest,
                  "max_gram_length": longest, "max_skip_count": skips, "mode": mode, **more}
    if weights:
        attributes["weights"] = [float(w) for w in np.random.default_rng(2).random(count)]
    return model_of("TfIdfVectorizer", [tokens], 9, attributes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(12,), (3, 9), (2, 1)])
@pytest.mark.parametrize("lengths, skips", [((1, 1), 3), ((1, 3), 0), ((1, 3), 2), ((2, 3), 4), ((3, 3), 1)])
def test_counts(context, device, shape, lengths, skips):
    for dtype in (np.int32, np.int64):
        agrees(context, device, *vectorizer(RANDOM.integers(0, 4, shape).astype(dtype), *lengths, skips))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("weights", [False, True])
def test_modes(context, device, mode, weights):
    agrees(context, device, *vectorizer(RANDOM.integers(0, 4, (3, 10)), skips=1, mode=mode, weights=weights))


@pytest.mark.parametrize("device", DEVICES)
def test_ngrams_that_share_a_place(context, device):
    agrees(context, device, *vectorizer(RANDOM.integers(0, 4, (2, 10)), ngram_indexes=[0, 1, 2, 3] * 4))


TOKENS = np.zeros(4, np.int64)
REFUSED = [
    (lambda: vectorizer(TOKENS, mode="BM25"), "INVALID", "mode is 'BM25'; expected TF, IDF or TFIDF"),
    (lambda: vectorizer(TOKENS, longest=4), "INVALID", "n-grams of 1 to 4 tokens, with 0 skips and 3 ngram_counts"),
    (lambda: vectorizer(TOKENS, ngram_counts=[0, 4, 29]), "INVALID", "n-grams of 2 tokens are from 4 to 29 in a pool of 31"),
    (lambda: vectorizer(TOKENS, ngram_counts=[0, 4, 99]), "INVALID", "n-grams of 2 tokens are from 4 to 99 in a pool of 31"),
    (lambda: vectorizer(TOKENS, ngram_indexes=[0, 1]), "INVALID", "ngram_indexes has 2 entries"),
    (lambda: vectorizer(TOKENS, ngram_indexes=[-1] * 16), "INVALID", "ngram_indexes is empty or has a negative entry"),
    (lambda: vectorizer(TOKENS, skips=2000), "UNIMPLEMENTED", "more than 1000 skips"),
    (lambda: vectorizer(TOKENS, pool_strings=["a"]), "INVALID", "operand 0 is i64; expected a tensor of strings"),
    (lambda: vectorizer(TOKENS, weights=True, mode="IDF", ngram_indexes=[0] * 16), "UNIMPLEMENTED", "weights of n-grams that share place 0"),
    (lambda: vectorizer(TOKENS, weights=True, mode="IDF", ngram_indexes=[0, 1]), "INVALID", "ngram_indexes has 2 entries"),
    (lambda: vectorizer(TOKENS, ngram_indexes=[1 << 40] * 16), "UNIMPLEMENTED", "the place 1099511627776 in ngram_indexes"),
    (lambda: vectorizer(np.zeros((2, 2, 2), np.int64)), "INVALID", "operand 0 has 3 dims; expected 1 or 2"),
]


@pytest.mark.parametrize("made, code, words", REFUSED, ids=range(len(REFUSED)))
def test_refusals_name_the_reason(context, made, code, words):
    assert_refused(context, *made(), code, ["(TfIdfVectorizer)", words])
