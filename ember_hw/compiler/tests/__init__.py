"""Tests of the compiler, one file a module; `filecheck/` holds text tests for lit."""
