"""The analyst and the compiler on a language model behind an OpenAI-compatible server."""
