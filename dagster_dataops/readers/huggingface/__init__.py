"""``read_huggingface``: Hugging Face datasets as records. Needs datasets."""
