"""How does one NVIDIA GPU serve behind the device protocol? Imports torch; nothing else of perfkit does so for it."""
