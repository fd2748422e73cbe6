"""Links of the documents lead somewhere."""

from __future__ import annotations

import pytest
from documents import DOCUMENTS, ROOT, anchors, links


@pytest.mark.parametrize(
    ("document", "target"), [(document, target) for document in DOCUMENTS for target in dict.fromkeys(links(document))]
)
def test_a_link_leads_to_a_file_and_a_heading(document: str, target: str) -> None:
    file, _, anchor = target.partition("#")

    assert (ROOT / (file or document)).exists()
    if anchor:
        assert anchor in anchors(file or document)
