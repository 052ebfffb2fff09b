"""What all tests share: this folder's modules (`synthetic`) can be imported."""
