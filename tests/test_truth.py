"""The words for yes and no: one table, for texts, numbers and booleans."""

import pytest

from monrest.base.errors import BadRequest
from monrest.base.truth import flag, truth

YES = ["1", "true", "yes", "on", "TRUE", "Yes", "oN", " 1 ", 1, 1.0, True]
NO = ["0", "false", "no", "off", "FALSE", "No", "oFF", "", "  ", 0, 0.0, False, None]
NEITHER = ["2", "y", "n", "ja", "10", "-1", "01", "1.0", "null", "truee", 2, -1, 0.5, [], {}, ["1"]]


def test_every_word():
    assert {str(one): truth(one) for one in YES} == dict.fromkeys(map(str, YES), True)
    assert {str(one): truth(one) for one in NO} == dict.fromkeys(map(str, NO), False)
    assert {str(one): truth(one) for one in NEITHER} == dict.fromkeys(map(str, NEITHER), None)


@pytest.mark.parametrize("value", NEITHER)
def test_anything_else_is_refused_by_the_name_of_the_parameter(value):
    with pytest.raises(BadRequest) as caught:
        flag("pretty", value)
    assert caught.value.description == (
        "pretty: expected 0 or 1 (or false, no, off, true, yes, on)"
    )
