"""The decoder step of decoder.py in llama.cpp: a GGUF file with the same weights, and a side that runs it.

llama.cpp takes tokens, not rows: the result of one token depends on its rotary embedding and on the cache that it filled itself, so the answer
is not compared. It computes the same products, with the values rounded to 8 bits where weights are quantised, and a vocabulary of 32 in addition.
"""
import numpy as np
from decoder_sides import HEADS, HIDDEN, KEPT, SMALL, WIDTH, weights

PACKAGES = "llama-cpp-python==0.3.36 gguf==0.19.0"
VOCABULARY = 32
NAMES = {"query": "attn_q", "key": "attn_k", "value": "attn_v", "out": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
TYPES = {"f32": "F32", "bf16": "BF16", "q8i": "Q8_0", "q4i": "Q4_0"}


def write(form, path, layers):
    import gguf
    kind = gguf.GGMLQuantizationType[TYPES[form]]
    file = gguf.GGUFWriter(path, "llama")
    file.add_block_count(layers)
    file.add_context_length(2 * KEPT)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(HIDDEN)
    file.add_head_count(HEADS)
    file.add_layer_norm_rms_eps(SMALL)
    file.add_vocab_size(VOCABULARY)
    file.add_tokenizer_model("no_vocab")
    tokens = np.random.default_rng(1).standard_normal((VOCABULARY, WIDTH)).astype(np.float32)
    ones = np.ones(WIDTH, np.float32)
    for name, each in ("token_embd", tokens), ("output", tokens), ("output_norm", ones):
        file.add_tensor(f"{name}.weight", each)
    for i, matrices in enumerate(weights(layers)):
        for name in "attn_norm", "ffn_norm":
            file.add_tensor(f"blk.{i}.{name}.weight", ones)
        for name, w in matrices.items():
            file.add_tensor(f"blk.{i}.{NAMES[name]}.weight", gguf.quantize(np.ascontiguousarray(w.T), kind), raw_dtype=kind)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def side(form, path, values, threads):
    import llama_cpp
    path += ".gguf"
    write(form, path, (len(values) - 1) // 2)
    model = llama_cpp.Llama(path, n_ctx=2 * KEPT, n_batch=KEPT, n_threads=threads, n_threads_batch=threads, use_mmap=False, verbose=False)
    model.eval([1] * KEPT)

    def run():  # the token after the cache, again and again
        model.n_tokens = KEPT
        model.eval([2])
    return run
