"""Comparison of the device with the device `reference`, over dtypes and shapes."""
from compared import ALL, FLOATS, INTEGERS, NUMBERS, TOLERANCE, Against, name, values  # noqa: F401

on = Against("vulkan")
results, same, fails_alike = on.results, on.same, on.fails_alike
