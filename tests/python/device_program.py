"""A program on a device whose driver fails at some call; for tests/vulkan and tests/cuda."""
import keel_abi
import numpy as np

TEXT = """keel 1
fn @main(x: f32[n, 4], i: i32[2]) -> f32[2, 4] {
  a = add(x, x)
  b = reverse(a){axes=[1]}
  c = add(b, a)
  d = gather(c, i)
  e = add(d, d)
  return e
}
entry main = @main (x, i) -> (_)
"""
X = np.arange(12, dtype=np.float32).reshape(3, 4)
INDEX = np.array([2, 0], np.int32)
WANT = 2 * (2 * X[:, ::-1] + 2 * X)[INDEX]


class DeviceProgram:
    """Runs of a plan (the second is recorded, the third replayed) and eager ops, in a context of their own."""

    def __init__(self, device, *plugins):
        self.device, self.context = device, keel_abi.Context()
        for plugin in plugins:
            self.context.load_plugin(plugin)
        self.module = self.context.parse(TEXT)

    def run(self):
        """The error, or None."""
        try:
            plan = self.module.session(self.device, level=0).prepare()
            for _ in range(4):
                np.testing.assert_array_equal(plan.run(X, INDEX)[0], WANT)
            there = self.context.array(X).to(self.device)
            y, = self.context.bind(self.device, "add").arrays(there, there)
            np.testing.assert_array_equal(y.numpy(), 2 * X)
        except keel_abi.KeelError as e:
            return str(e)
        return None

    def check_cpu(self):
        np.testing.assert_array_equal(self.context.apply("cpu", "add", X, X), 2 * X)
