"""What Keel calls otherwise than NumPy, PyTorch and JAX: the AttributeError for such a name says what to use.

    keel.clip(x, 0, 1)    module 'keel' has no attribute 'clip'
                            hint: use keel.clamp
    x.sum()               'keel.Tensor' object has no attribute 'sum'
                            hint: use keel.reduce_sum(t)
"""
from . import _keel

_TABLE = {  # the name after "keel.": names elsewhere
    "abs": "absolute", "neg": "negative", "sub": "subtract", "mul": "multiply", "div": "divide true_divide", "pow": "power",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "erf_inv": "erfinv",
    "is_nan": "isnan", "is_inf": "isinf", "is_finite": "isfinite", "clamp": "clip",
    "reduce_sum": "sum", "reduce_mean": "mean average", "reduce_prod": "prod", "reduce_std": "std", "reduce_var": "var",
    "reduce_max": "max amax any", "reduce_min": "min amin all",  # of bool: any, all
    "arg_max": "argmax", "arg_min": "argmin", "log_sum_exp": "logsumexp",
    "matmul": "dot mm bmm", "inv": "inverse", "conv": "conv1d conv2d conv3d", "max_pool": "max_pool2d", "avg_pool": "avg_pool2d",
    "reshape": "view flatten ravel squeeze unsqueeze expand_dims", "transpose": "permute permute_dims swapaxes moveaxis",
    "broadcast_to": "expand", "concat": "concatenate cat hstack vstack", "reverse": "flip fliplr flipud",
    "triangle": "tril triu", "gather": "take index_select", "gather_elements": "take_along_axis",
    "array": "tensor", "random.normal": "randn", "random.uniform": "rand",
    "function": "jit compile", "Tape": "GradientTape", "stop_gradient": "detach", "no_record": "no_grad",
}
OURS = {theirs: ours for ours, names in _TABLE.items() for theirs in names.split()}


def absent(owner, name, thing, hint):
    return AttributeError(f"{owner} has no attribute {name!r}" + (f"\n  hint: use {hint}" if hint else ""), name=name, obj=thing)


def of_package(package, name):
    """The error for a name that the package lacks."""
    return absent("module 'keel'", name, package, name in OURS and f"keel.{OURS[name]}")


def of_tensor(tensor, name):
    """Raises the error for an attribute that a tensor lacks; most methods elsewhere are functions here."""
    ours = OURS.get(name, name)
    raise absent("'keel.Tensor' object", name, tensor, hasattr(_keel.ops, ours) and f"keel.{ours}(t)")
