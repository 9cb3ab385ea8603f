"""`ember-hw demo`: MovieLens-100K through the whole way of a lookup, checked and drawn."""
