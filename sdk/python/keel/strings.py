"""Strings as Keel's tensors hold them: UTF-8 bytes u8[dims.., width], padded with zeros, as NumPy's dtype S.

    x = keel.strings.encode(["cat", "snake"])           # u8[2, 5]; also arrays of dtype U, S, object or StringDType
    keel.strings.decode(x)                              # an array of str: ["cat", "snake"]

What is fed as strings is encoded by itself: model(["cat", "snake"]).
"""
from .errors import InvalidError


def holds_strings(value):
    """Whether encode() takes it: a str, a list of them, or an array of strings."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, str) or getattr(getattr(value, "dtype", None), "kind", " ") in "USOT"


def encoded(value):
    """encode() of strings; anything else as it is."""
    return encode(value) if holds_strings(value) else value


def encode(strings, width=None):
    """The bytes of a str, nested lists of them or an array, as a NumPy array u8[dims.., width].

    width: of the longest string (default: as long as needed, at least 1). Raises InvalidError for elements that are no strings,
    for bytes that are not UTF-8 and for a zero byte within a string, which would end it.
    """
    import numpy as np  # not at once, to keep `import keel` fast
    array = strings if isinstance(strings, np.ndarray) else _from_lists(strings)
    if array.dtype.kind not in "USOT":
        raise InvalidError(f"strings are str or an array of dtype U, S, object or StringDType; got {array.dtype}")
    rows = [_bytes(x) for x in array.reshape(-1).tolist()]
    longest = max(map(len, rows), default=0)
    if width is None:
        width = max(longest, 1)
    if longest > width:
        raise InvalidError(f"a string has {longest} bytes; at most {width} fit")
    if width == 0:
        return np.zeros((*array.shape, 0), np.uint8)
    return np.array(rows, f"S{width}").view(np.uint8).reshape(*array.shape, width)


def decode(array):
    """The strings of an array or tensor u8[dims.., width], as an array of str (dtype object). Raises InvalidError for bytes that are no
    UTF-8."""
    import numpy as np
    array = np.asarray(array)
    if array.dtype != np.uint8 or array.ndim == 0:
        raise InvalidError(f"strings are an array u8[dims.., width]; got {array.dtype} with {array.ndim} dims")
    text = np.empty(array.shape[:-1], object)
    flat = np.ascontiguousarray(array).reshape(text.size, array.shape[-1])
    text.reshape(-1)[:] = [_text(row.tobytes().rstrip(b"\0")) for row in flat]
    return text


def _from_lists(strings):
    import numpy as np
    try:
        array = np.array(strings, object)
    except ValueError:
        array = None
    if array is None or any(isinstance(x, (list, tuple)) for x in array.reshape(-1)):
        raise InvalidError("the lists of strings are ragged; expected lists of one length at each depth")
    return array


def _bytes(x):
    if isinstance(x, str):
        try:
            x = x.encode()
        except UnicodeEncodeError as error:
            raise InvalidError(f"{x!r} is no Unicode text: {error.reason}") from None
    elif isinstance(x, bytes):
        _text(x)
    else:
        raise InvalidError(f"expected strings, got {x!r}, {'an' if type(x).__name__[0] in 'aeio' else 'a'} {type(x).__name__}")
    if b"\0" in x:
        raise InvalidError(f"{x!r} has a zero byte, which ends strings in Keel; remove it")
    return x


def _text(x):
    try:
        return x.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"{x!r} is not UTF-8: {error.reason} at byte {error.start}") from None
