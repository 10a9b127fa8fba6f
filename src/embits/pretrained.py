"""The verbs of Hugging Face's libraries, for coders and binary vectors alike.

`embits.integrations.hugging_face` does the work, and is imported when one of them is called: what
lies below it, coders and vectors, knows only these three names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self


class Pretrained:
    """What can be kept in a folder of `model.safetensors`, `config.json` and `README.md`."""

    def save_pretrained(
        self,
        folder: str | os.PathLike[str],
        *,
        figures: Mapping[str, Any] | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a folder that `from_pretrained` reads and the Hugging Face Hub shows.

        Args:
            folder: Made if it is not there. Its `model.safetensors` is the file that `embits.load`
                opens; of a coder alone, one without codes. A `README.md` of your own stays as it
                is.
            figures: What was measured, by name: a table of the model card.
            card: More of the card's front matter, such as `{"license": "mit"}`.

        Raises:
            NotFittedError: A coder that has learned nothing yet.
            OSError: The disk said no.
        """
        from embits.integrations import hugging_face

        hugging_face.save_pretrained(self, folder, figures=figures, card=card)

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
            name: A folder, or the name `user/model` of a model on the Hugging Face Hub; a folder
                of that name goes first.
            revision: A branch, tag or commit of the model on the Hub.
            verify: Read every byte and check it against the checksums first.
            hub_options: More for `huggingface_hub.snapshot_download`, such as `token`,
                `cache_dir` or `local_files_only=True`.

        Raises:
            FormatError: The folder is damaged, its files do not agree, or it holds another coder.
            HubError: The Hub has no such model, or cannot be reached.
            InputError: There is no such folder, and it is not a name on the Hub.
            MissingExtraError: The name is one on the Hub, and `embits[hub]` is not installed.
        """
        from embits.integrations import hugging_face

        return hugging_face.from_pretrained(
            cls, name, revision=revision, verify=verify, **hub_options
        )

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        revision: str | None = None,
        message: str | None = None,
        figures: Mapping[str, Any] | None = None,
        card: Mapping[str, Any] | None = None,
        token: str | None = None,
        endpoint: str | None = None,
    ) -> str:
        """Upload the folder that `save_pretrained` writes, in one commit.

        Args:
            repo_id: `user/model`; made if it is not there.
            private: Whether a new model is; None takes the account's default.
            revision: The branch; None takes `main`.
            message: The commit's message.
            figures: As in `save_pretrained`.
            card: As in `save_pretrained`; a model card of your own stays as it is.
            token: In place of the one that `hf auth login` has kept.
            endpoint: In place of the environment variable HF_ENDPOINT.

        Returns:
            The address of the commit.

        Raises:
            HubError: The Hub refused, or cannot be reached.
            MissingExtraError: `embits[hub]` is not installed.
        """
        from embits.integrations import hugging_face

        return hugging_face.push_to_hub(
            self, repo_id, (figures, card), private=private, revision=revision, message=message,
            token=token, endpoint=endpoint,
        )  # fmt: skip
