"""A pooling and a reader of annotations for vse-pipeline."""
