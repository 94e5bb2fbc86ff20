from tests.fakes.strict import stray_failures

__all__ = ["stray_failures"]
