"""Compile the embedding operations of PyTorch models for a decoupled access-execute accelerator."""
