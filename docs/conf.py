"""Sphinx's settings for the manual. tools/docs builds it; pages are Markdown (MyST)."""
project = "Keel"
extensions = ["myst_parser", "sphinx.ext.graphviz"]
exclude_patterns = ["README.md"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
graphviz_output_format = "svg"

html_theme = "furo"
html_title = "Keel"
html_static_path = []
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "friendly"
highlight_language = "text"
