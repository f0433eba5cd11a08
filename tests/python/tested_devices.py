"""The devices that tests run on. Others: KEEL_TEST_DEVICES="vulkan", with KEEL_PLUGIN_PATH naming the folder of their plugins."""
import os

DEVICES = tuple(os.environ.get("KEEL_TEST_DEVICES", "reference cpu").split())
