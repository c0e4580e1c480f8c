"""Tests of trainer/sinks."""
