"""
The oracle: what the library decides, means and says, frozen in small files before it is rebuilt. `CHANGES.md` says how to use it.
"""
