"""TensorFlow's names, for TensorFlow programs: change the import line, keep the rest.

    import keel.compat.v2 as tf          # eager, functions, tapes: replaces `import tensorflow as tf`
    import keel.compat.v1 as tf          # graphs and sessions: replaces `import tensorflow.compat.v1 as tf`

Either import changes the whole process: tensors print, and errors have classes, as in TensorFlow (errors keep keel.Error's
classes, too); keel.compat.enable(False) ends this. A missing name raises AttributeError with a hint. Intended
differences: whole numbers divided by `/` give f32 (f64 with tf.divide()); dtypes are keel's (tf.float32 is keel.f32);
an unknown device is an error; graph nodes have lower-case names; the rank of a placeholder is known; variables of a
graph have one value for all sessions; names are case-sensitive.

How to read it: names.py is the table of functions from which v2.py and v1.py are made; functions.py has functions
without a single corresponding op. graphs.py, sessions.py and train.py belong to v1; the other files are small and shared.
"""


def enable(on=True):
    """Makes tensors print, and errors be classed, as TensorFlow's (on) or Keel's. For all threads."""
    from . import errors, printing
    printing.enable(on)
    errors.enable(on)
