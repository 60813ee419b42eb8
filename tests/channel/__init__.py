"""Tests of the channel models."""
