"""Nothing is missing from the reference: each op, function, subcommand and public name of the package has its place, and each op
an example that ran."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools/manual")]
import pages  # noqa: E402
import c_reference  # noqa: E402
import cli_reference  # noqa: E402
import ops_reference  # noqa: E402
import python_reference  # noqa: E402


@pytest.fixture(scope="module")
def reference():
    out = {}
    for generator in (ops_reference, c_reference, python_reference, cli_reference):
        out |= generator.pages(pages.ROOT, pages.BUILD)
    return out


def text_under(reference, folder):
    return "\n".join(text for name, text in reference.items() if name.startswith(f"reference/{folder}/"))


def test_each_op_has_a_section_with_an_example_that_ran(reference):
    text = text_under(reference, "ops")
    for op in ops_reference.catalogue(pages.BUILD):
        start = text.find(f"(op-{op['name']})=\n")
        assert start >= 0, op["name"]
        section = text[start:text.find("\n(op-", start + 1)]
        assert "Example, run on the device" in section and "Gradient" in section, op["name"]


def test_each_exported_function_has_a_section(reference):
    text = text_under(reference, "c")
    exported = (pages.ROOT / "abi/symbols.txt").read_text().split()
    names = [name for name in exported if name.startswith("keel_")]
    assert len(names) > 100
    assert [name for name in names if f"(c-{name})=\n" not in text] == []


def test_each_public_name_of_the_package_has_a_section(reference):
    text = text_under(reference, "python")
    for module in python_reference.MODULES:
        for name in python_reference.names(pages.ROOT, module):
            assert f"-{module}.{name})=\n" in text, f"{module}.{name}"


def test_each_subcommand_has_a_page(reference):
    names = [name for name, _ in cli_reference.subcommands(pages.BUILD)]
    assert "run" in names and "ops" in names
    for name in names:
        assert f"Usage: keel {name}" in reference[f"reference/cli/{name}.md"]


def test_a_new_op_needs_no_example_of_its_own():
    runner = ops_reference.Runner(pages.BUILD)
    for op in ops_reference.catalogue(pages.BUILD):
        if op["name"] in ("gelu", "relu", "add", "matmul", "reduce_sum", "logical_not", "equal"):
            assert any(runner.run(program)[0] == 0 for program in ops_reference.guesses(op)), op["name"]


HEADER = """/* small.h: a header.
 * It has two lines. */
#ifndef SMALL_H
#define SMALL_H
typedef struct keel_a keel_a;
/* ---- first family: what it is for. Free with keel_a_free. */
/* Opens *one*. */
KEEL_API keel_rc keel_a_open(const char* name, keel_a** out); /* may fail */
KEEL_API void keel_a_free(keel_a* a);
/* Called by a[0]. */
typedef int32_t (*keel_a_fn)(void* arg); /* 0: go on */
enum { KEEL_A_ONE = 1, /* one */
       KEEL_A_TWO = 2 };
#endif
"""


def test_a_header_is_read_by_families():
    intro, sections = c_reference.read(HEADER)
    assert intro.startswith("small.h: a header.\nIt has")
    family = sections[-1]
    assert (family.title, family.text) == ("first family", "what it is for. Free with keel_a_free.")
    assert [item.names for item in family.items] == [["keel_a_open"], ["keel_a_free"], [], []]
    assert family.items[0].comment == "Opens *one*." and family.items[0].code.endswith("/* may fail */")
    assert c_reference.functions(HEADER) == ["keel_a_open", "keel_a_free"]
    page = c_reference.page("small.h", HEADER, {"keel_a_open": {"params": [{"name": "out", "type": "keel_a**", "direction": "out", "ownership": "caller"}],
                                                             "one_at_a_time": ["out"]}})
    assert "| `out` | out | caller |" in page and "No other thread may use `out`" in page and r"Opens \*one\*." in page


def test_a_docstring_keeps_its_code_and_nothing_else_is_markup():
    text = 'Makes a_b of x[0].\n\n    x = f(a_b)\n\n- item\n  more'
    assert python_reference.literal(text) == 'Makes a\\_b of x\\[0\\].\n\n```python\nx = f(a_b)\n\n```\n\n\\- item\n  more'
