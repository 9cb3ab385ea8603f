"""Boards that the access unit runs on; imported as `ember_hw.boards`."""
