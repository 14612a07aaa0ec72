"""Programs whose ``finally`` leaves by a jump, which Python 3.14 and later warn of when they compile this file."""


class Swallows:
    """Programs whose ``finally`` drops an error. ``note`` is a function that no capture contains."""

    @staticmethod
    def returns(x, i, note):
        made = 0
        try:
            note(1)
            made = 1
            x = x[i]
        finally:
            return x + made  # noqa: B012

    @staticmethod
    def breaks(x, i, note):
        made = 0
        for _ in range(2):
            try:
                note(2)
                made += 1
                x = x[i]
            finally:
                break  # noqa: B012
        return x + made

    @staticmethod
    def continues(x, i, note):
        made = 0
        for k in range(2):
            try:
                note(k)
                made += 1
                x = x[i]
            finally:
                continue  # noqa: B012
        return x + made

    @staticmethod
    def raises(x, i, note):
        made = 0
        try:
            try:
                note(3)
                made = 1
                x = x[i]
            finally:
                raise ValueError
        except ValueError:
            return x + made

    @staticmethod
    def names(x, i, note):
        made = 0
        try:
            try:
                note(4)
                made = 1
                x = x[i]
            except absent:
                pass
        except NameError:
            return x - made
        return x + made
