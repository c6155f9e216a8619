"""Leakage: images and captions that two data sets, or the splits of one, have in common.

collection.py    the images that are compared, and the numbers that name their photographs
fingerprints.py  digests of files, and perceptual hashes of 256 bits (dHash), called looks
findings.py      pairs of images that are one photograph, or look alike; equal captions; the report
"""
