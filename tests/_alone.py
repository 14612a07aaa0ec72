"""Which tests run alone: those that others would disturb, or that would disturb others."""
import re

# Folders whose tests compile, or count segments, descriptors or processes, each of them.
FOLDERS = ("cuda", "multiprocessing", "outside")
# What a test outside them says that belongs to the marker ``alone``.
DISTURBED = re.compile(
    r"/proc/self|/proc/\{|/dev/shm|memory_stats\(|memory_allocated\(|getrusage|tracemalloc"     # counts and totals
    r"|SIG(KILL|TERM|INT|USR1|ALRM)|os\.kill|\.kill\(\)"                                         # signals
    r"|needs_compiler|\[\"(cc|c\+\+|g\+\+|meson|ninja)\"|pip\", \"install")                       # compilers
