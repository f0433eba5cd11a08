"""Keel from Python, with the package of the build. Imported only in the process of a side."""
import sys


def package():
    from keel_abi import BUILD
    sys.path.insert(0, str(BUILD / "python"))
    import keel
    return keel


def train_step(data, threads, how, rate):
    """A step as in train_form.py. how: "graph" or "eager"."""
    keel = package()
    x, labels = keel.array(data[0]), keel.array(data[1])
    params = [keel.Variable(p) for p in data[2:]]

    def step():
        with keel.Tape() as tape:
            h = x
            for k in range(0, len(params), 2):
                h = h @ params[k] + params[k + 1]
                h = keel.relu(h) if k + 2 < len(params) else h
            loss = keel.reduce_mean(keel.cross_entropy(h, labels))
        for p, g in zip(params, tape.gradient(loss, params)):
            p.assign(p - rate * g)
        return loss
    return step if how == "eager" else keel.function(step, threads=threads)
