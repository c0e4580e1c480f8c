"""The embedded world: a generated catalogue, generated tasks, and a language of single words.

It runs on the shop's one state machine like every other profile. What is special is data: products
whose titles are three words, tasks a small policy can learn, and ``WordLanguage``, the notation in
which such a policy reads and acts. Design and figures: docs/design/embedded-policy.md.
"""
