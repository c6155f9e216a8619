"""Reading and writing bytes: images, weights, untrusted pickles, digests, results."""
