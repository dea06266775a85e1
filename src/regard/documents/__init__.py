"""Documents in their own formats: bytes → segments → bytes; what is outside of translated text stays as it is."""
