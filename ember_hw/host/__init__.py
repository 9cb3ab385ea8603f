"""The host side: what runs on the machine that owns the tables and drives the device."""
