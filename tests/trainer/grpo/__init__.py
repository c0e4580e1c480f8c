"""Tests of trainer/grpo."""
