"""A process per side of a comparison, so that idle threads of one side do not disturb the others."""
import functools
import multiprocessing


def failure(side, error):
    """The error of a failed side, which Worker.receive raises."""
    return RuntimeError(f"{side}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")


def timed(once, runs, clock):
    """Seconds of a run."""
    start = clock()
    for _ in range(runs):
        once()
    return (clock() - start) / runs


class Worker:
    """Runs serve(connection, *arguments), which first sends a message (`first` waits for it), or an exception on failure."""

    def __init__(self, serve, *arguments):
        spawn = multiprocessing.get_context("spawn")
        self.connection, theirs = spawn.Pipe()
        self.process = spawn.Process(target=serve, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()

    @functools.cached_property
    def first(self):
        return self.receive()

    def receive(self):
        try:
            got = self.connection.recv()
        except EOFError:
            self.process.join(10)
            raise RuntimeError(f"the process ended with {self.process.exitcode}") from None
        if isinstance(got, Exception):
            raise got
        return got

    def ask(self, what):
        self.first  # noqa: B018  the first message
        self.connection.send(what)
        return self.receive()

    def stop(self):
        try:
            self.connection.send(None)
        except BrokenPipeError:
            pass
        self.process.join(10)
