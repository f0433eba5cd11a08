"""Products and convolutions (products.py) by the shaders for processors and by those for GPUs."""
import pytest


@pytest.mark.parametrize("part", ["products", "halves", "convolutions", "infinities", "gradients"])
@pytest.mark.parametrize("tiles", ["0", "1"], ids=["registers", "tiles"])
def test_answers_are_those_of_the_reference(in_child, part, tiles):
    out, _ = in_child(f"import products\nproducts.{part}()\nprint('done')", KEEL_VULKAN_TILES=tiles)
    assert out.endswith("done\n") or out.endswith("done")


def test_products_of_halves_without_cooperative_matrices(in_child):
    """On a driver that has them; the line of `keel devices` says whether they serve."""
    described = "import json\nprint([d['capabilities'] for d in json.loads(keel.report('devices')) if d['name'] == 'vulkan:0'][0])"
    out, _ = in_child(described)
    if "cooperative matrices" not in out:
        pytest.skip("the driver has no VK_KHR_cooperative_matrix of f16, or the build's glslang does not know it")
    out, _ = in_child(f"import products\nproducts.halves()\n{described}", KEEL_VULKAN_TILES="1", KEEL_VULKAN_NO_MATRICES="1")
    assert "cooperative matrices" not in out and "subgroups" in out
