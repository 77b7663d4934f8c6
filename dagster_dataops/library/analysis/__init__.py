"""Analysis of texts that operators share: words, sentences, sets of characters and n-grams."""
