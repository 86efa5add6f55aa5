"""A GPU through the driver's interface: memory, modules, launches and their times."""

import ctypes
import sys

CLOCK_RATE, MULTIPROCESSORS = 13, 16
LOCAL_BYTES, REGISTERS, MAX_DYNAMIC_SHARED_BYTES = 3, 4, 8


class Device:
    """The first GPU, through the driver's interface."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.device = device
        self.multiprocessors = self.attribute(MULTIPROCESSORS)
        self.clock = self.attribute(CLOCK_RATE) * 1000
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        print(f"# {name.value.decode()}, {self.multiprocessors} multiprocessors, {self.clock / 1e9} GHz")

    def call(self, function, *arguments):
        status = getattr(self.driver, function)(*arguments)
        if status:
            sys.exit(f"{function}: error {status}")

    def attribute(self, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def buffer(self, content, size=None):
        """A buffer with this content, again and again until it is full."""
        size = size or len(content)
        address = self.allocate(size)
        self.call("cuMemcpyHtoD_v2", address, content, ctypes.c_size_t(len(content)))
        filled = len(content)
        while filled < size:
            more = min(filled, size - filled)
            to = ctypes.c_uint64(address.value + filled)
            self.call("cuMemcpyDtoD_v2", to, address, ctypes.c_size_t(more))
            filled += more
        return address

    def fill(self, address, size):
        """Ones in every bit, which no result has."""
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0xFF), ctypes.c_size_t(size))

    def read(self, address, size):
        content = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", content, address, ctypes.c_size_t(size))
        return content.raw

    def free(self, address):
        self.call("cuMemFree_v2", address)

    def milliseconds(self, work):
        """How long the device takes for what `work` launches."""
        start, end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (start, end):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        self.call("cuEventRecord", start, None)
        work()
        self.call("cuEventRecord", end, None)
        self.call("cuEventSynchronize", end)
        elapsed = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(elapsed), start, end)
        for event in (start, end):
            self.call("cuEventDestroy_v2", event)
        return elapsed.value


class Kernel:
    """An entry point of a module of PTX or machine code; a launch gives it `threads` threads a block and `shared_bytes` bytes."""

    def __init__(self, device, path, entry, threads, shared_bytes=0):
        self.device, self.threads, self.shared_bytes = device, threads, shared_bytes
        with open(path, "rb") as file:
            text = file.read() + b"\0"
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        device.call("cuModuleLoadData", ctypes.byref(module), text)
        device.call("cuModuleGetFunction", ctypes.byref(self.function), module, entry.encode())
        if shared_bytes:
            device.call("cuFuncSetAttribute", self.function, MAX_DYNAMIC_SHARED_BYTES, shared_bytes)
        self.local_bytes, self.registers = self.attribute(LOCAL_BYTES), self.attribute(REGISTERS)
        resident = ctypes.c_int()
        query = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        device.call(query, ctypes.byref(resident), self.function, threads, ctypes.c_size_t(shared_bytes))
        self.resident = resident.value

    def attribute(self, number):
        value = ctypes.c_int()
        self.device.call("cuFuncGetAttribute", ctypes.byref(value), number, self.function)
        return value.value

    def launch_blocks(self, blocks, values):
        array = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        launch = (blocks, 1, 1, self.threads, 1, 1, self.shared_bytes)
        self.device.call("cuLaunchKernel", self.function, *launch, None, array, None)
