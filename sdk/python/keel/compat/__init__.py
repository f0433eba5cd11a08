"""TensorFlow's names for programs that were written for it: change the import line, keep the rest.

    import keel.compat.v2 as tf          # eager, functions, tapes: in place of `import tensorflow as tf`
    import keel.compat.v1 as tf          # graphs and sessions: in place of `import tensorflow.compat.v1 as tf`

Either import makes tensors of the whole process print, and errors be classed, as TensorFlow's are (an error stays
one of keel.Error's classes too); keel.compat.enable(False) ends that. What is not there raises AttributeError with
a hint. What differs, on purpose: whole numbers divided by `/` give f32 (f64 by tf.divide()); dtypes are keel's
(tf.float32 is keel.f32); a device that is not there is an error; graph nodes have lower-case names; placeholders know
their number of dims; variables of a graph have one value for all its sessions; names count by case.

How to read it: names.py is the table of functions, of which v2.py and v1.py are made; functions.py has those that are
no single op. graphs.py, sessions.py and train.py are v1's; the other files are small and shared.
"""


def enable(on=True):
    """Tensors print and errors are classed as TensorFlow's, or as Keel's own. For all threads."""
    from . import errors, printing
    printing.enable(on)
    errors.enable(on)
