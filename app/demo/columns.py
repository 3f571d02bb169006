"""Arrow arrays of columns from numbers."""

import datetime
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.demo.draws import Codes, Ints, Mask

MONEY: Final = pa.decimal128(12, 2)
INSTANT: Final = pa.timestamp("us", tz="UTC")
TEXT: Final = pa.string()
CHOICE: Final = pa.dictionary(pa.int8(), pa.string())

MINUTE_US: Final = 60_000_000
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US


def midnight(date: datetime.date) -> int:
    """The start of a day in UTC, in microseconds since 1970."""
    return (date - datetime.date(1970, 1, 1)).days * DAY_US


def identifiers(prefix: str, numbers: Ints, *, width: int = 7, null: Mask | None = None) -> pa.StringArray:
    """Like `c-0000001`: a prefix and a number with leading zeros; longer numbers are not cut."""
    digits = pc.utf8_lpad(pa.array(numbers, mask=null).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def choice(values: Sequence[str], codes: Codes, *, null: Mask | None = None) -> pa.DictionaryArray:
    """For each code the value at that position."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8(), mask=null), pa.array(values))


def instants(micros: Ints, *, null: Mask | None = None) -> pa.TimestampArray:
    """Instants in UTC from microseconds since 1970."""
    return pa.array(micros, pa.int64(), mask=null).cast(INSTANT)


def money(cents: Ints, *, null: Mask | None = None) -> pa.Decimal128Array:
    """Amounts with two decimals, exact: the cents are the decimal's digits."""
    digits = np.empty((len(cents), 2), dtype=np.int64)
    digits[:, 0], digits[:, 1] = cents, cents >> 63
    known = None if null is None else pa.array(~null).buffers()[1]
    return pa.Decimal128Array.from_buffers(MONEY, len(cents), [known, pa.py_buffer(digits)])
