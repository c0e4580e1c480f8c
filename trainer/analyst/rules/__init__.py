"""The embedded analyst: rules instead of a language model, for the shop of this project.

It knows the shop's public machine and, like every analyst, the private goal. It knows nothing of
the policy: neither how it was trained nor which texts it obeys.
"""
