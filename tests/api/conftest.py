from tests.fakes.accounts import house

__all__ = ["house"]
