"""Reading and writing bytes: images, clips, weights, untrusted pickles, digests, records,
results.
"""
