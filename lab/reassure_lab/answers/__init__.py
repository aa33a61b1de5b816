"""What the verbs answer: each module makes documents, and renders them for people."""
