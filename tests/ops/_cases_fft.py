"""Cases of Fourier transforms; see _cases.py."""
import numpy as np

from ptcore._ops.table import schema

REAL, COMPLEX = ("float32", "float64"), schema.COMPLEX
WHOLE = ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn")
TO_HALF = ("rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn")
FROM_HALF = ("irfft", "hfft", "irfft2", "hfft2", "irfftn", "hfftn")
TYPES = {**dict.fromkeys([f"fft_{n}" for n in (*WHOLE, *FROM_HALF)], (*REAL, *COMPLEX)),
         **dict.fromkeys([f"fft_{n}" for n in TO_HALF], REAL),
         **dict.fromkeys(("fft_fftshift", "fft_ifftshift"), schema.ALL), "stft": (*REAL, *COMPLEX), "istft": COMPLEX}


def cases(F, Of):
    def window(n):                      # real beside complex data, and exact in every dtype
        return Of(lambda *data: 0.5 + np.arange(n) / 4)

    table = {
        "_fft_c2c": [[F(5), (0,), 0, True], [F(3, 4), (1,), 2, False], [F(4, 3), (0,), 1, True],
                     [F(2, 3, 4), (2, 0), 1, False], [F(1), (0,), 0, True], [F(0, 4), (1,), 0, True]],
        "_fft_r2c": [[F(5), (0,), 0, True, True], [F(3, 4), (1,), 2, True, False], [F(4, 3), (0,), 1, False, True],
                     [F(2, 3, 4), (2, 0), 1, True, True], [F(2, 3, 4), (1, 2), 2, False, False], [F(1), (0,), 0, True, True]],
        "_fft_c2r": [[F(3), (0,), 2, 5, False], [F(3), (0,), 2, 4, False], [F(3, 4), (1,), 1, 7, True],
                     [F(4, 3), (0,), 0, 6, True], [F(2, 3, 4), (0, 2), 1, 6, False], [F(2, 3, 4), (2, 1), 2, 5, True],
                     [F(1), (0,), 0, 1, False]],
        "fft_fftshift": [[F(5)], [F(3, 4)], [F(3, 4), 1], [F(3, 4), (0, -1)]],
        "stft": [
            [F(20), 8, None, None, F(8), True, "reflect", False, None, True],
            [F(2, 20), 7, 3, 5, F(5), True, "constant", True, False, True],
            [F(2, 20), 8, 2, None, None, False, "reflect", False, False, True],
            [F(20), 8, 3, 4, None, False, "reflect", False, False, True, True],
            [F(12), 6, 4, 6, window(6), True, "replicate", False, False, True]],
        "istft": [
            [F(5, 6), 8, 2, None, window(8), False], [F(2, 4, 5), 7, 3, 5, window(5), True, True],
            [F(6, 5), 6, 2, None, F(6), False, False, None, None, True],
            [F(8, 6), 8, 2, 8, window(8), True, False, False, 12], [F(5, 4), 8, 2, None, window(8), True, False, None, 9]],
    }
    table["fft_ifftshift"] = table["fft_fftshift"]
    for name in (*WHOLE, *TO_HALF, *FROM_HALF):
        if name[-1] in "2n":
            table[f"fft_{name}"] = [[F(3, 4)], [F(2, 3, 5), (4, 3), (0, 2), "ortho"], [F(3, 5), (2, 8), (1, 0), "forward"],
                                    [F(3, 4), (-1, 6), (-2, -1), "backward"], [F(2, 3, 4), None, (-1, 0), "ortho"]]
            if name[-1] == "n":
                table[f"fft_{name}"] += [[F(2, 3, 4), (2, 3)], [F(2, 4), None, (1,)]]
        else:
            table[f"fft_{name}"] = [[F(6)], [F(3, 4), 7, 0], [F(3, 5), 3, -1, "ortho"], [F(2, 5), None, 1, "forward"],
                                    [F(2, 3, 4), 4, 1, "backward"]]
    return table
