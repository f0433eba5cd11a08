"""Comparison of the device with the device `reference`, over dtypes and shapes."""
from compared import ALL, FLOATS, INTEGERS, NUMBERS, TOLERANCE, Against, name, values  # noqa: F401

_vulkan = Against("vulkan")
results, same, fails_alike = _vulkan.results, _vulkan.same, _vulkan.fails_alike
