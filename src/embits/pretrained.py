"""Hugging Face save and load methods, for coders and binary vectors.

`embits.integrations.hugging_face` does the work, and is imported when a method is called.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self


class Pretrained:
    """Something that is saved as a folder of `model.safetensors`, `config.json` and `README.md`."""

    def save_pretrained(
        self,
        folder: str | os.PathLike[str],
        *,
        figures: Mapping[str, Any] | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a folder that `from_pretrained` reads and the Hugging Face Hub shows.

        Args:
            folder: Created if it does not exist. `embits.load` opens its `model.safetensors`, which
                has no codes if a coder is saved. A `README.md` of your own is not replaced.
            figures: Measured values by name, for a table in the model card.
            card: More front matter of the card, such as `{"license": "mit"}`.

        Raises:
            NotFittedError: The coder is not fitted.
            OSError: A file could not be written.
        """
        from embits.integrations import hugging_face

        hugging_face.save_pretrained(self, folder, figures, card)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        revision: str | None = None,
        verify: bool = False,
        **hub_options: Any,
    ) -> Self:
        """Open what `save_pretrained` or `push_to_hub` wrote; no code in it can run.

        Args:
            name: A folder, or else the name `user/model` of a model on the Hugging Face Hub, which
                needs `embits[hub]`.
            revision: A branch, tag or commit of the model on the Hub.
            verify: Read every byte and check it against the checksums first.
            hub_options: Arguments of `huggingface_hub.snapshot_download`, such as `token`.

        Raises:
            FormatError: The folder is damaged, its files do not agree, or it holds another coder.
            HubError: The Hub has no such model, or cannot be reached.
            InputError: There is no such folder, and it is not a name on the Hub.
        """
        from embits.integrations import hugging_face

        return hugging_face.from_pretrained(cls, name, revision, verify, **hub_options)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        figures: Mapping[str, Any] | None = None,
        card: Mapping[str, Any] | None = None,
        private: bool | None = None,
        revision: str | None = None,
        message: str | None = None,
        **client: Any,
    ) -> str:
        """Upload the folder that `save_pretrained` writes of `figures` and `card`, in one commit.

        Args:
            repo_id: `user/model`; created if it does not exist.
            private: Whether a new model is private; None uses the account's default.
            revision: The branch; None uses `main`.
            message: The commit's message.
            client: Arguments of `huggingface_hub.HfApi`: `token` and `endpoint`.

        Returns the address of the commit. HubError: The Hub refused, or cannot be reached.
        """
        from embits.integrations import hugging_face

        about = figures, card, private, revision, message
        return hugging_face.push_to_hub(self, repo_id, *about, **client)
