"""tf.train: gradient descent, savers and descriptions of clusters."""
import re

from .. import _keel, tape as _tape
from . import graphs, variables
from .sessions import no_cluster


class GradientDescentOptimizer:
    """Subtracts learning_rate times the gradient. In a graph minimize() returns an Operation to run; eagerly it takes a
    function without parameters that returns the loss, and takes one step."""

    def __init__(self, learning_rate, use_locking=False, name="GradientDescent"):
        self._rate = learning_rate

    def minimize(self, loss, global_step=None, var_list=None, **_):
        pairs = self.compute_gradients(loss, var_list)
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError("No gradients provided for any variable")
        return self.apply_gradients(pairs, global_step)

    def compute_gradients(self, loss, var_list=None, **_):
        """[(gradient or None, variable)]. var_list: by default all trainable variables of the graph."""
        if not callable(loss):
            of = list(var_list or variables.trainable_variables())
            return list(zip(variables.gradients(loss, of), of))
        if not var_list:
            raise ValueError("minimize() of a function needs var_list")
        with _tape.Tape() as tape:
            value = loss()
        return list(zip(tape.gradient(value, list(var_list)), var_list))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        steps = [v.assign_sub(g * graphs.plain(self._rate)) for g, v in grads_and_vars if g is not None]
        if global_step is not None:
            steps.append(global_step.assign_add(1))
        return graphs.group(*steps, name=name) if all(isinstance(s, graphs.Operation) for s in steps) else None


class Saver:
    """Writes and reads a file of variables: of a list, a dict of names, or all of the default graph."""

    def __init__(self, var_list=None, **_):
        given = variables.global_variables() if var_list is None else var_list
        named = given if isinstance(given, dict) else {v.name.partition(":")[0]: v for v in given}
        if not named:
            raise ValueError("No variables to save")
        self._named = named

    def _plain(self):
        return {name: getattr(v, "_variable", v) for name, v in self._named.items()}

    def save(self, sess, save_path, global_step=None, **_):
        path = save_path if global_step is None else f"{save_path}-{int(global_step)}"
        _keel.save_checkpoint(str(path), list(self._plain().items()))
        return path

    def restore(self, sess, save_path):
        """Sets each variable to its value in the file, or raises NotFoundError and changes none."""
        _keel.load_checkpoint(str(save_path), list(self._plain().items()))
        for variable in self._named.values():
            variable.ready = True


class ClusterSpec:
    """Jobs and the addresses of their tasks: {"worker": ["127.0.0.1:7001", ...]}, or numbered {"worker": {0: ...}}."""

    def __init__(self, cluster):
        given = cluster.as_dict() if isinstance(cluster, ClusterSpec) else cluster
        self._jobs = {job: dict(enumerate(tasks)) if isinstance(tasks, (list, tuple)) else dict(tasks)
                      for job, tasks in sorted(given.items())}
        for job, tasks in self._jobs.items():
            for number, address in tasks.items():
                if not isinstance(address, str) or not re.fullmatch(r".+:\d+", address):
                    raise ValueError(f"task {number} of job '{job}' is {address!r}, expected an address 'host:port'")

    jobs = property(lambda self: list(self._jobs))

    def as_dict(self):
        return {job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
                for job, tasks in self._jobs.items()}

    def num_tasks(self, job_name):
        return len(self._job(job_name))

    def job_tasks(self, job_name):
        return list(self._job(job_name).values())

    def task_address(self, job_name, task_index):
        return self._job(job_name)[task_index]

    def _job(self, name):
        if name not in self._jobs:
            raise ValueError(f"No such job in cluster: {name!r}")
        return self._jobs[name]

    def __repr__(self):
        return f"ClusterSpec({self.as_dict()!r})"


class Server:
    """Raises UnimplementedError: there are no servers."""

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, **_):
        ClusterSpec(server_or_cluster_def)
        raise no_cluster("tf.train.Server")
