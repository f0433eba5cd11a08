"""Work on several threads at once, for tests."""
import threading


def together(count, work):
    """Calls work(0) to work(count - 1) on a thread each; an exception of any fails the test."""
    wrong = []

    def go(k):
        try:
            work(k)
        except Exception as e:  # pytest shows exceptions of its own thread only
            wrong.append(repr(e))
    threads = [threading.Thread(target=go, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
