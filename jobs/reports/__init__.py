"""A finished run → a folder of pages that opens from disk and proves itself.

``privacy`` names the fields that may leave · ``library`` and ``samples`` choose documents and
episodes · ``tables`` the downloads · ``pages`` renders chapters in each language · ``build`` puts
all in place at once · ``manifest`` hashes · ``check`` opens an export again.
"""
