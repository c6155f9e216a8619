"""What all others use: files, data sets, and arrays in, numbers out."""
