"""A transformer that generates text, character by character, trained on the pages of this repository.

    python chars.py --out DIR       DIR/chars.png: the loss; DIR/chars.keel: entries for `keel run`:
                                    serve (text i32[n, 64] -> logits of the next character),
                                    write (text i32[64], key u64[] -> 240 following characters), alphabet (code points)

How to read it: Model is two blocks of attention and a dense net; train() is the loop; write() samples within the
graph, so the saved file generates text without Python.
"""
import sys
from pathlib import Path

import curve
import keel
import numpy as np

WIDTH, HEADS, BLOCKS, CONTEXT, BATCH, WRITES = 96, 4, 2, 64, 32, 240
PAGES = Path(__file__).resolve().parents[3]
random = np.random.default_rng(1)


def weight(name, *shape):
    values = random.standard_normal(shape) * 0.5 / shape[0] ** 0.5
    return keel.Variable(values.astype("f4"), name)


def norm(name):
    return keel.Variable(keel.ones(WIDTH), f"{name}/scale"), keel.Variable(keel.zeros(WIDTH), f"{name}/shift")


class Model:
    """text i32[n, t] -> logits f32[n, t, letters] of the next letter at each place."""

    def __init__(self, letters):
        self.letter, self.place = weight("letter", letters, WIDTH), weight("place", CONTEXT, WIDTH)
        self.blocks = [{"first": norm(f"{k}/first"), "qkv": weight(f"{k}/qkv", WIDTH, 3 * WIDTH), "join": weight(f"{k}/join", WIDTH, WIDTH),
                        "second": norm(f"{k}/second"), "wide": weight(f"{k}/wide", WIDTH, 4 * WIDTH),
                        "narrow": weight(f"{k}/narrow", 4 * WIDTH, WIDTH)} for k in range(BLOCKS)]
        self.last, self.out = norm("last"), weight("out", WIDTH, letters)
        self.weights = [self.letter, self.place, self.blocks, self.last, self.out]

    def __call__(self, text):
        x = keel.gather(self.letter, text) + self.place
        for block in self.blocks:
            x = x + self.attended(keel.layer_norm(x, *block["first"]), block) @ block["join"]
            x = x + keel.gelu(keel.layer_norm(x, *block["second"]) @ block["wide"]) @ block["narrow"]
        return keel.layer_norm(x, *self.last) @ self.out

    @staticmethod
    def attended(x, block):
        """Causal attention: each place attends to itself and the places before it."""
        heads = keel.reshape(x @ block["qkv"], (-1, CONTEXT, 3, HEADS, WIDTH // HEADS))
        q, k, v = (keel.transpose(heads[:, :, i], [0, 2, 1, 3]) for i in range(3))
        return keel.reshape(keel.transpose(keel.attention(q, k, v, causal=True), [0, 2, 1, 3]), (-1, CONTEXT, WIDTH))


def read(path):
    """The text of a file, or of the README.md files of a folder, as indices of characters, and the sorted characters."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("README.md") if not is_hidden(p.relative_to(path)))
    text = np.array([ord(c) for c in "\n".join(file.read_text() for file in files)], np.int32)
    if len(text) < 20 * CONTEXT:
        raise SystemExit(f"{path}: {len(text)} characters are too few to train on; at least {20 * CONTEXT} needed")
    letters, numbers = np.unique(text, return_inverse=True)
    return numbers.astype(np.int32), letters


def is_hidden(path):
    return any(part[0] == "." or part == "build" for part in path.parts)


def loss_of(model, text):
    """text i32[n, CONTEXT + 1]: the mean cross-entropy per character, in nats."""
    return keel.reduce_mean(keel.cross_entropy(model(text[:, :-1]), text[:, 1:]))


def train(model, text, args):
    """Runs args.steps steps; their losses."""
    optimizer = keel.optim.Adam(lambda step: 0.003 * keel.minimum(1 - step / args.steps, (step + 1) / 50), weight_decay=0.01)

    @keel.function
    def step(text):
        with keel.Tape() as tape:
            loss = loss_of(model, text)
        gradients, _ = keel.optim.clip_by_global_norm(tape.gradient(loss, model.weights), 1.)
        optimizer.apply(gradients, model.weights)
        return loss

    losses = []
    for _ in (bar := keel.progress(range(args.steps), label="chars")):
        losses.append(step(windows(text, random.integers(0, len(text) - CONTEXT, BATCH))))
        bar.note(loss=losses[-1])
    return [loss.item() for loss in losses]


def windows(text, starts):
    return text[np.add.outer(starts, np.arange(CONTEXT + 1))]


def writer(model):
    @keel.function(name="write", signature=f"text: i32[{CONTEXT}], key: u64[]")
    def write(text, key):
        def letter(carry, number):
            logits = model(carry[None])[0, -1] / 0.7
            noise = -keel.log(-keel.log(keel.random(key + number, logits.shape)))  # Gumbel noise: the argmax is a sample
            next = keel.cast(keel.arg_max(logits + noise, axis=0), keel.i32)
            return keel.concat([carry[1:], next[None]], axis=0), next
        return keel.scan(text, keel.iota([WRITES], dtype=keel.u64), letter)[1]
    return write


def main():
    args = curve.arguments(__doc__, steps=800, goal=1.9, text=PAGES)
    clock, (text, letters) = curve.Clock(), read(args.text)
    model, kept = Model(len(letters)), len(text) // 10  # the first tenth is for the test
    losses = train(model, text[kept:], args)
    test = keel.function(lambda text: loss_of(model, text))(windows(text, np.arange(0, kept - CONTEXT, CONTEXT))).item()
    curve.draw(args.out / "chars.png", f"chars: {test:.2f} nats per character in the test", {"training": (range(len(losses)), losses)})
    write, start = writer(model), text[:CONTEXT]
    serve = keel.function(model, name="serve", signature=f"text: i32[n, {CONTEXT}]")
    keel.save(args.out / "chars.keel", serve=serve.concrete(start[None]), write=write.concrete(start, np.uint64(1)),
              alphabet=keel.function(lambda: keel.array(letters.astype("i4"))).concrete())
    written = "".join(chr(c) for c in letters[write(start, np.uint64(1)).numpy()])
    print("".join(chr(c) for c in letters[start]) + "|" + written)
    print(f"chars: {len(losses)} steps in {clock}, {len(text)} characters, {len(letters)} different")
    return curve.judge("chars", "nats per character in the test", test, args.goal, least=False)


if __name__ == "__main__":
    sys.exit(main())
