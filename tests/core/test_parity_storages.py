"""Each call of a storage gives PyTorch's value, or an error of PyTorch's class."""
import copy
import io
import pickle

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning"),
              pytest.mark.filterwarnings("ignore:.*dtype.*:DeprecationWarning")]

# L is the library, U its UntypedStorage, T(values) the typed storage of a tensor, b eight bytes.
CASES = [
    'U([300,-1]).tolist()',
    'U("ab")',
    'U(b"ab").tolist()',
    'U([1.5])',
    'U(2.5)',
    'U(-1)',
    'U([1,2]).fill_(257).tolist()',
    'U(2).fill_(2.5)',
    'U([1,2])[5]',
    'U([1,2])["a"]',
    'U([1,2,3])[0:2:2]',
    'S(U([1,2]),0,2.5)',
    'S(U([1,2]),"a",2)',
    'S(U([1,2]),slice(0,2,2),2)',
    'S(U([1,2]),5,2)',
    'S(U([1,2]),slice(0,2),7)',
    'U([1,2])[0:1].tolist()',
    'U([1,2])[1:1].tolist()',
    'U(2).copy_(U(3))',
    'U(2).resize_(1.5)',
    'U(3,device="meta")[0]',
    'U(3,device="meta").tolist()',
    'len(U(3,device="meta").clone())',
    'U(3,device="meta").fill_(1).nbytes()',
    'L.zeros(2).set_(L.DoubleStorage(2))',
    'L.tensor(U([1]*8)).tolist()',
    'L.tensor(T([1.,2.])).tolist()',
    'L.asarray(U([1,2]),dtype=L.uint8).tolist()',
    'L.FloatTensor(T([1.,2.])).tolist()',
    'L.FloatTensor(U([0]*8)).tolist()',
    'L.DoubleTensor(T([1.,2.]))',
    'L.zeros(2).new(T([1.,2.])).tolist()',
    'L.zeros(2).new(U([0]*4)).tolist()',
    'L.zeros(2).double().new(T([1.,2.]))',
    'L.Tensor(T([1.,2.])).tolist()',
    'len(U(2).new())',
    'U([1,2]).byteswap(L.float32)',
    'BS(U([1,2]),L.int16)',
    'U([1,2]).float().tolist()',
    'T([1.5,2.]).int().tolist()',
    'U(2).type()',
    'T([1.]).type()',
    'L.ones(2).storage_type().__name__',
    'T([1.]).is_pinned()',
    'T([1.,2.]).fill_(3).tolist()',
    'T([1.,2.])[0:1]',
    'T([1.,2.])["a"]',
    'T([1.,2.])[7]',
    'T([1.,2.])[-1]',
    'S(T([1.,2.]),slice(0,2),7.)',
    'S(T([1.,2.]),9,7.)',
    'isinstance(T([1.]),L.FloatStorage)',
    'isinstance(T([1.]),L.DoubleStorage)',
    'L.zeros(2).set_(T([1.,2.]),0,(2,),(1,)).tolist()',
    'U.from_buffer(bytes(3),dtype=L.float32,byte_order="native")',
    'L.is_storage(T([1.]))',
    'L.is_storage(3)',
    'U(2).filename',
    'U.from_buffer(b)',
    'U.from_buffer(b,"xx",dtype=L.int16)',
    'U.from_buffer(b, dtype=L.int16)',
    'U.from_buffer(b, dtype=L.uint8).tolist()',
    'U.from_buffer(b, "big", dtype=L.int16).tolist()',
    'U.from_buffer(b, "big", 2, 2, L.int16).tolist()',
    'U.from_buffer(b, "big", 9, 2, L.int16).tolist()',
    'U.from_buffer(b, "big", 1, 9, L.int16).tolist()',
    'U.from_buffer(b, "big", 1, -1, L.int16).tolist()',
    'U.from_buffer(b, "big", dtype=L.bool).tolist()',
    'U.from_buffer(b, "big", dtype=L.complex64).tolist()',
    'U.from_buffer(5, "big", dtype=L.uint8)',
    'U.from_buffer(b"", "big", dtype=L.uint8).tolist()',
    'U.from_buffer(b, "big", dtype="x")',
    'L.FloatStorage.from_buffer(b,"little").tolist()',
    'L.FloatStorage.from_buffer(b,"little",dtype=L.int8)',
    'L.TypedStorage.from_buffer(b,"little",dtype=L.int16).tolist()',
    'L.TypedStorage.from_buffer(b,"little",device="meta")',
    'L.FloatStorage(sdlkjf=3)',
    'L.FloatStorage("string")',
    'L.FloatStorage(0,0)',
    'L.FloatStorage(device="cpu")',
    'L.FloatStorage(dtype=L.float32)',
    'L.FloatStorage(L.tensor([]))',
    'L.FloatStorage(0,wrap_storage=U(0))',
    'L.FloatStorage(wrap_storage=T([1.]))',
    'L.TypedStorage(0,wrap_storage=U(0),dtype=L.int8)',
    'L.TypedStorage(wrap_storage=U(0))',
    'L.TypedStorage(wrap_storage=U(0),dtype=0)',
    'L.TypedStorage(wrap_storage=U(0),dtype=L.int8,device="cpu")',
    'L.TypedStorage(wrap_storage=T([1.]),dtype=L.int8)',
    'L.TypedStorage(L.tensor([]))',
    'L.TypedStorage(0,0)',
    'L.storage._LegacyStorage()',
    'len(L.TypedStorage(2,device="meta",dtype=L.int8))',
    'L.TypedStorage(2.5)',
    'L.TypedStorage([1.5,2]).tolist()',
    'L.TypedStorage(b"ab")',
    'len(L.FloatStorage._new_shared(2))',
    'len(L.FloatStorage(3).cpu())',
    'L.FloatStorage([3]).resize_(5)',
    'T([1.,2.])[1.5]',
    'S(T([1.,2.]),[0],1)',
    'T([1.,2.]).copy_(L.LongStorage([1])).nbytes()',
    'T([1.,2.]).copy_(5)',
    'L.ones(2,dtype=L.uint16).storage().type()',
    'L.ones(2,dtype=L.uint16).storage_type()',
    'len(L.TypedStorage(wrap_storage=U(3), dtype=L.float32))',
    'len(U(8).copy_(L.FloatStorage(2)))',
    'U(2).get_device()',
    'T([1.]).get_device()',
    'U(2).is_shared()',
    'U(2).share_memory_().is_shared()',
    'T([1.]).pickle_storage_type()',
    'copy.copy(T([1.])).tolist()',
    'copy.deepcopy(T([1.])).tolist()',
    'copy.deepcopy(U([1,2])).tolist()',
    'pickle.loads(pickle.dumps(T([1.]))).tolist()',
    'T([1.]).fill_(T([1.]))',
    'isinstance(L.Storage(2),L.FloatStorage)',
    'io1(L,T([1.,2.]))',
    'U(3)==U(3)',
    'L.UntypedStorage.is_sparse',
    'T([1.]).element_size()',
    'U([7]).element_size()',
    'list(iter(T([1.,2.])))',
    'len(U())',
    'U([1,0,1]).bool().tolist()',
    'U([5,0,255]).char().tolist()',
    'U([5,0,255]).complex_double().tolist()',
    'T([1.,2.]).nbytes()',
    'L.storage._get_dtype_from_pickle_storage_type("FloatStorage").itemsize',
    'U([1,2,3]).type("torch.UntypedStorage").tolist()',
    'U([0,0,0,0]).type("torch.ByteStorage").nbytes()',
]


def saved(lib, thing):
    file = io.BytesIO()
    lib.save(thing, file)
    file.seek(0)
    return lib.load(file, weights_only=False).tolist()


def written(storage, index, value):
    storage[index] = value
    return storage.tolist()


def swapped(storage, dtype):
    storage.byteswap(dtype)
    return storage.tolist()


def outcome(lib, case):
    names = {"L": lib, "U": lib.UntypedStorage, "T": lambda v: lib.tensor(v).storage(), "b": bytes(range(8)),
             "S": written, "BS": swapped, "copy": copy, "pickle": pickle, "io1": saved}
    try:
        return repr(eval(case, names)).replace("torch.", "").replace("ptcore.", "")
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("case", CASES)
def test_calls(case):
    assert outcome(pt, case) == outcome(torch, case)


def test_files_of_storages():
    """A file of typed and untyped storages is read by the other library."""
    for stream in (False, True):
        x = torch.tensor([1.5, 2.5])
        file = io.BytesIO()
        torch.save([x.storage(), x], file, _use_new_zipfile_serialization=not stream)
        file.seek(0)
        storage, tensor = pt.load(file)
        assert storage.tolist() == [1.5, 2.5] and isinstance(storage, pt.FloatStorage)
        assert storage.untyped() is tensor.untyped_storage()
        file = io.BytesIO()
        pt.save([storage, tensor], file, _use_new_zipfile_serialization=not stream)
        file.seek(0)
        storage, tensor = torch.load(file)
        assert storage.tolist() == [1.5, 2.5] and storage.data_ptr() == tensor.data_ptr()


def test_attributes_and_identity():
    for lib in (torch, pt):
        x = lib.ones(2)
        number = id(x.untyped_storage())
        x.untyped_storage().mark = 3
        assert id(x[1:].untyped_storage()) == number and x.untyped_storage().mark == 3
