"""Keys that several tests use."""

import batch_modexp
import pytest


@pytest.fixture(scope="session")
def key():
    return batch_modexp.generate_keys(2048, 1)[0]
