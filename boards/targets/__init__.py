"""The boards that `ember-hw build` knows, one file each; a file defines `TARGET`."""
