"""Readers of annotations that are a table: a row for each caption or image, with columns or keys by
name.

`separated` (CSV and its kin), `json_rows` and `parquet_rows` read files into batches of rows;
`columns` finds which column holds what, `cells` what a cell holds; `reader` makes the rows of a
manifest of them.
"""
