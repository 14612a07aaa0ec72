"""What is still wrong in the first samples: {entry: phases}. Nothing is added here; an entry goes as it is mended."""

OPEN = {
    "nn.functional.scaled_dot_product_attention": ("backward",),
}
