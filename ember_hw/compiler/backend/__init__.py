"""The back end: from the access-unit dialect to microcode, callbacks and kernels."""
