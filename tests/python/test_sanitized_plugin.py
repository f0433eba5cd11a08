"""A plugin compiled with a sanitizer is refused because of its build kind, not because its note is missing, and none of its code
runs."""
import re
import shutil
import subprocess

import pytest
from keel_abi import BUILD, ROOT, Context, KeelError, call, encode

SOURCE = ROOT / "sdk" / "examples" / "hello.c"


def note_bytes(path):
    """Size of the section .note.keel."""
    sections = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"\.note\.keel\s+NOTE\s+\w+\s+\w+\s+(\w+)", sections)[1], 16)


@pytest.mark.parametrize("flags, kind", [([], None), (["-fsanitize=address"], "address sanitizer"),
                                         (["-fsanitize=thread"], "thread sanitizer")],
                         ids=["plain", "address", "thread"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_note_is_found(tmp_path, compiler, flags, kind):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} on this machine")
    context, plugin = Context(plugins=False), tmp_path / "keel-hello.so"
    subprocess.run([compiler, "-g", "-O1", "-fPIC", "-shared", *flags, f"-I{BUILD}/include", SOURCE, "-o", plugin],
                   check=True)
    assert note_bytes(plugin) == 36, "the sanitizer padded the note"
    if kind is None:
        call("keel_plugin_load", context, encode(plugin))
        assert "hello:0" in context.devices()
        return
    with pytest.raises(KeelError) as caught:
        call("keel_plugin_load", context, encode(plugin))
    assert f'a build of kind "{kind}", this libkeel is "plain"' in caught.value.message
