"""How bytes are read and written: images, weights, untrusted pickles, digests, results."""
