"""Display in notebooks: tensors as HTML, modules as drawings, and the reasons for traces."""
import html.parser
import os
import shutil
import xml.etree.ElementTree as xml

import keel
import pytest
from keel import command
from rows_common import SIGNATURES

needs_dot = pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")


class Reader(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def words(svg):
    return [e.text for e in xml.fromstring(svg.encode()).iter("{http://www.w3.org/2000/svg}text")]


def test_tensors_as_html_say_what_they_are():
    shown = Reader(keel.array([[1., 2.], [3., 4.]])._repr_html_())
    assert shown.tags == ["div", "code", "pre"] and "f32[2, 2], 16 bytes on the host" in shown.text and "[3. 4.]" in shown.text
    seen = []
    keel.function(lambda x: (seen.append(x._repr_html_()), x)[1])(keel.zeros(3))
    assert "<f32[3] of a trace>" in Reader(seen[0]).text and "bytes" not in seen[0]


def test_large_tensors_show_a_few_values():
    shown = keel.zeros((4000, 1000))._repr_html_()
    assert len(shown) < 1000 and "16,000,000 bytes" in shown and "..." in shown


@needs_dot
def test_modules_are_drawn():
    module = keel.function(lambda x: keel.cond(keel.reduce_sum(x) > 0, lambda: x, lambda: keel.exp(x)), name="f").concrete(keel.f32[3])
    drawn = words(module.svg())
    assert {"f32[3]", "reduce_sum", "exp"} <= set(drawn) and module._repr_svg_() == module.svg()
    both = keel.join(f=module, g=keel.function(lambda x: keel.tanh(x)).concrete(keel.f32[()]))
    assert "tanh" in words(both.svg()) and "tanh" not in words(both.svg("f")) and "exp" not in words(both.svg(entry="g"))
    with pytest.raises(keel.NotFoundError, match="'no'"):
        both.svg("no")


@needs_dot
def test_graphs_are_drawn_while_they_are_written():
    graph = keel.Graph()
    with graph.as_default():
        x = keel.placeholder(keel.f32, [None, 2], name="x")
        keel.exp(x)
        before = words(graph.svg())
        keel.sin(x)
    assert "exp" in before and "sin" not in before and {"exp", "sin"} <= set(words(graph._repr_svg_()))


@needs_dot
def test_names_cannot_become_markup():
    onnx = pytest.importorskip("onnx")
    name, helper = "<script>alert('1')</script>&\"\\n", onnx.helper
    graph = helper.make_graph([helper.make_node("Relu", [name], ["y"])], "g", [helper.make_tensor_value_info(name, 1, [2])],
                              [helper.make_tensor_value_info("y", 1, [2])])
    svg = keel.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)).svg()
    assert "<script" not in svg and any("<script>alert('1')</script>&" in text for text in words(svg))


def test_modules_too_large_to_read_are_not_drawn_by_themselves():
    def chain(x):
        for _ in range(600):
            x = keel.sin(x)
        return x
    heavy = keel.zeros((1000, 1000)) + 1
    for code, shown in ((chain, False), (lambda x: x * heavy, False), (lambda x: x * 2, bool(shutil.which("dot")))):
        assert bool(keel.function(code).concrete(keel.f32[()])._repr_svg_()) == shown


def test_without_the_command_or_graphviz_there_is_an_error_and_text(monkeypatch, tmp_path):
    module = keel.function(lambda x: x + 1, name="f").concrete(keel.f32[()])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(keel.Error, match="dot.*not installed"):
        module.svg()
    assert module._repr_svg_() is None and repr(module) == "<keel.Module with f>"
    monkeypatch.setattr(command, "PATH", str(tmp_path / "keel"))
    with pytest.raises(keel.NotFoundError, match="the package has no command"):
        module.svg()
    assert module._repr_svg_() is None and os.environ["PATH"] == str(tmp_path)


def test_signatures_have_a_block_for_each_trace():
    my_relu = keel.function(lambda x: keel.maximum(keel.array(0.), x), name="my_relu")
    for x in (keel.array(5.5), [1, -1], keel.array([3., -3.])):
        my_relu(x)
    my_relu(keel.array(-2.5))
    assert my_relu.signatures().strip() == SIGNATURES.strip()
    assert my_relu.trace_count == 3


def test_explain_says_why_and_what_was_captured():
    w = keel.Variable([1., 2.], name="w")
    table = keel.array([3., 4.])

    class Model:
        @keel.function
        def call(self, x, n=1):
            return x * w * n + table
    model = Model()
    assert keel.explain(model.call) == ""
    model.call(keel.zeros(2)), model.call(keel.zeros(2), 3)
    first, second = keel.explain(model.call).split("2. ")
    assert "why: first call" in first and "variables: w" in first and "captures: f32[2]" in first
    assert "argument n was i64 1, now i64 3" in second and "n=3" in second
    with pytest.raises(TypeError, match="keel.function"):
        keel.explain(lambda x: x)
