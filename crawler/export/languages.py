"""The language of a text, as a classifier sees it; pages declare others, or none. Needs the extra `language`.

py3langid (Lui, Baldwin, *langid.py*, ACL 2012 Demo) tells 97 languages apart. Its model takes 2 s to load and 75 MB of
memory, and the first 3,000 characters of a page about a millisecond. So an export detects languages, and the crawl
does not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from crawler.errors import require

#: Characters of the main text that are classified. More characters hardly change a result.
CLASSIFIED_CHARS = 3_000


class DetectedLanguage(NamedTuple):
    """An ISO 639 code, ``und`` if the text has no letters to tell by, and the classifier's confidence from 0 to 1."""

    language: str
    confidence: float


class LanguageDetector:
    """Classifies texts. Raises :class:`crawler.errors.UsageError` if py3langid is not installed."""

    def __init__(self) -> None:
        langid = require("language", "this export", "py3langid.langid")
        self._classifier: Any = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)

    def detect(self, text: str) -> DetectedLanguage:
        """The language of a text, of which the first characters are read."""
        beginning = text[:CLASSIFIED_CHARS]
        if not any(character.isalpha() for character in beginning):
            return DetectedLanguage("und", 0.0)
        language, confidence = self._classifier.classify(beginning)
        return DetectedLanguage(str(language), round(float(confidence), 4))
