"""
The commands `guardrails hook install`, `uninstall` and `status`: the settings files of the coding CLIs.
"""
