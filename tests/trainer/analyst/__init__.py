"""Tests of trainer/analyst."""
