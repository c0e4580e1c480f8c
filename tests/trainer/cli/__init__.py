"""Tests of trainer/cli."""
