"""What is still wrong in the first samples: {entry: phases}. Nothing is added here; an entry goes as it is mended."""

OPEN = {
    "H": ("layouts",),
    "conj": ("layouts",),
    "mH": ("layouts",),
    "nn.functional.scaled_dot_product_attention": ("backward",),
}
