"""
The settings of the site for Sphinx. It is run over the staged sources, never over docs/ itself.
"""

from guardrails import __version__


project = "toolcall-guardrails"
author = "the authors of toolcall-guardrails"
version = release = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 4  # links are written as GitHub makes them
myst_links_external_new_tab = False
html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
nitpicky = True
pygments_style = "friendly"
