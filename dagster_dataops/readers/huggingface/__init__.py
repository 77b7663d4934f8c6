"""Read Hugging Face datasets as records."""
