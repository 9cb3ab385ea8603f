"""The host's end of a link: channels of bytes, the client of the frame protocol, and boards."""
