"""Systems from any file of scores, fused, corrected, measured and compared.

It imports nothing that extracts or trains.
"""
