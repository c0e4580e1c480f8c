"""A policy behind an OpenAI-compatible server: SGLang, vLLM, or a hosted model."""
