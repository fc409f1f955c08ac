"""Tests, laid out as `jobs/` is."""
