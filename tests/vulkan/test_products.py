"""Products and convolutions (products.py) by the shaders for processors and by those for GPUs."""
import pytest


@pytest.mark.parametrize("part", ["products", "convolutions", "infinities", "gradients"])
@pytest.mark.parametrize("tiles", ["0", "1"], ids=["registers", "tiles"])
def test_answers_are_those_of_the_reference(in_child, part, tiles):
    out, _ = in_child(f"import products\nproducts.{part}()\nprint('done')", KEEL_VULKAN_TILES=tiles)
    assert out.endswith("done\n") or out.endswith("done")
