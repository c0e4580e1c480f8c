"""The slime engine: rounds on GPU hosts, trained by Megatron and sampled by SGLang under Ray.

Nothing here is imported by the rest of the product at start; slime, ray, torch and sglang are only
imported inside the functions that need them. Specification: training.md §§4-9.
"""
