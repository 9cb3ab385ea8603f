"""Drop-in modules and functions for torch's embeddings; public as `ember_hw.nn`."""
