"""Each switch of plugins/vulkan/README.md with the program of subset.py, in a process of its own; and that the checks report planted
faults."""
import pytest

RUN = "import subset\nsubset.run()\n"
SWITCHES = {"fences": {"KEEL_VULKAN_FENCES": "1"}, "one queue": {"KEEL_VULKAN_ONE_QUEUE": "1"},
            "barriers": {"KEEL_VULKAN_BARRIERS": "1"}, "staging": {"KEEL_VULKAN_STAGING": "1"},
            "no subgroups": {"KEEL_VULKAN_NO_SUBGROUPS": "1"}, "tiles": {"KEEL_VULKAN_TILES": "1"},
            "verify": {"KEEL_VULKAN_VERIFY": "1"},
            "verify one queue": {"KEEL_VULKAN_VERIFY": "1", "KEEL_VULKAN_ONE_QUEUE": "1"},
            "no recordings": {"KEEL_VULKAN_NO_RECORDINGS": "1"},
            "no recordings verify": {"KEEL_VULKAN_NO_RECORDINGS": "1", "KEEL_VULKAN_VERIFY": "1"},
            "discrete": {"DRIVER_DISCRETE": "1"}, "discrete staging": {"DRIVER_DISCRETE": "1", "KEEL_VULKAN_STAGING": "1"},
            "discrete one queue fences": {"DRIVER_DISCRETE": "1", "KEEL_VULKAN_ONE_QUEUE": "1", "KEEL_VULKAN_FENCES": "1"},
            "lavapipe without threads": {"LP_NUM_THREADS": "0"}, "lavapipe of 128 bits": {"LP_NATIVE_VECTOR_WIDTH": "128"},
            "validate": {"KEEL_VULKAN_VALIDATE": "1"},
            "validate discrete": {"KEEL_VULKAN_VALIDATE": "1", "DRIVER_DISCRETE": "1"},
            "validate fences": {"KEEL_VULKAN_VALIDATE": "1", "KEEL_VULKAN_FENCES": "1"},
            "validate gpu": {"KEEL_VULKAN_VALIDATE": "gpu"}}


def complaints(stderr):
    return [line for line in stderr.splitlines() if line.startswith("keel-vulkan:")]


@pytest.fixture(scope="module")
def normal(in_child):
    out, err = in_child(RUN)
    assert not complaints(err)
    return out


@pytest.mark.parametrize("switch", SWITCHES)
def test_results_are_the_same_bits(in_child, normal, switch):
    out, err = in_child(RUN, **SWITCHES[switch])
    assert complaints(err) == []
    if switch != "no subgroups":
        assert out == normal
    assert out.startswith("bits ")


PLANTED = """
import keel, numpy as np
with keel.device("vulkan"):
    f = keel.function(lambda x: keel.softmax(keel.softmax(x + x, axis=0) + x, axis=0))
    try: f(keel.array(np.ones((4, 4), np.float32))).numpy()
    except keel.Error as e: print(e)
"""


def test_a_missing_barrier_is_reported(in_child):
    _, err = in_child(PLANTED, KEEL_VULKAN_VERIFY="1", KEEL_VULKAN_PLANT="barrier", KEEL_VULKAN_BARRIERS="0")
    assert complaints(err) and "missing barrier" in complaints(err)[0]
    assert complaints(in_child(PLANTED, KEEL_VULKAN_VERIFY="1")[1]) == []


def test_a_write_out_of_bounds_is_reported(in_child):
    # Newer layers report a write after it was done, and the process has crashed, unless they are asked to check it before.
    _, err = in_child(PLANTED, KEEL_VULKAN_VALIDATE="gpu", KEEL_VULKAN_PLANT="write", VK_LAYER_GPUAV_SAFE_MODE="1")
    assert any("out of bounds" in line.lower() for line in complaints(err)), err
    assert complaints(in_child(PLANTED, KEEL_VULKAN_VALIDATE="gpu")[1]) == []


def test_a_use_after_free_is_reported(in_child):
    """The driver destroys the destination of a copy; the layer does not pass on the copy."""
    _, err = in_child(PLANTED, KEEL_VULKAN_VALIDATE="1", DRIVER_PLANT="free", KEEL_VULKAN_STAGING="1")
    assert any("vkCmdCopyBuffer" in line and "Invalid VkBuffer" in line for line in complaints(err)), err


def test_a_missing_barrier_of_copies_is_reported(in_child):
    """The driver copies twice to one place."""
    _, err = in_child(PLANTED, KEEL_VULKAN_VALIDATE="1", DRIVER_PLANT="race", KEEL_VULKAN_STAGING="1")
    assert any("WRITE-AFTER-WRITE" in line.replace("_", "-") for line in complaints(err)), err
    assert complaints(in_child(PLANTED, KEEL_VULKAN_VALIDATE="1", KEEL_VULKAN_STAGING="1")[1]) == []
