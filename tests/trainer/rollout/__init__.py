"""Tests of trainer/rollout."""
