import type { Test } from 'tap'
import { loadLibrary } from '../native-library.ts'
import { compileLibrary } from './compile-library.ts'

/** Bytes of each allocation of the pretended GPUs. */
export const PRETEND_BYTES = 3 * 1024 * 1024

/**
 * Two GPUs in the memory of this process, of two allocations each: 0 and 2 of GPU 0, 1 and 3 of GPU 1. Only the context of its GPU gets at
 * an allocation, and what is written is there once the stream is synchronized.
 */
const SOURCE = `
#include <stddef.h>
#include <string.h>
#define BYTES ${PRETEND_BYTES}
typedef unsigned long long address;
typedef struct { char reserved[64]; } ipc_handle;

static unsigned char memory[4][BYTES], staged[BYTES];
static address staged_at;
static size_t staged_bytes;
static int started, lost, opened;
static char contexts[2];
static __thread char *current;

static int check(address at, size_t bytes) {
  size_t offset = at - (address)memory;
  if (lost) return 100;
  if (current != &contexts[offset / BYTES % 2]) return 201;
  return offset / BYTES == (offset + bytes - 1) / BYTES && offset + bytes <= sizeof memory ? 0 : 1;
}

int cuInit(unsigned flags) { started = 1; return flags; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuGetErrorString(int code, const char **text) {
  *text = code == 1 ? "invalid argument" : code == 100 ? "no CUDA-capable device is detected"
    : code == 101 ? "invalid device ordinal" : code == 201 ? "invalid device context" : 0;
  return 0;
}
int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return !started ? 3 : lost ? 100 : ordinal < 2 ? 0 : 101;
}
int cuDevicePrimaryCtxRetain(char **context, int device) { *context = &contexts[device]; return 0; }
int cuCtxSetCurrent(char *context) { current = context; return 0; }
int cuIpcOpenMemHandle_v2(address *at, ipc_handle handle, unsigned flags) {
  if (flags != 1 || handle.reserved[63] != 'e') return 1;
  *at = (address)memory[(int)handle.reserved[0]];
  int code = check(*at, 1);
  if (code == 0) opened += 1;
  return code;
}
int cuIpcCloseMemHandle(address at) {
  int code = check(at, 1);
  if (code == 0) opened -= 1;
  return code;
}
int cuMemGetAddressRange_v2(address *base, size_t *bytes, address at) {
  *base = (address)memory + (at - (address)memory) / BYTES * BYTES;
  *bytes = BYTES;
  return *base == (address)memory[3] ? 1 : check(at, 1);
}
int cuMemcpyDtoH_v2(void *to, address from, size_t bytes) {
  int code = check(from, bytes);
  if (code == 0) memcpy(to, (void *)from, bytes);
  return code;
}
int cuMemcpyHtoD_v2(address to, const void *from, size_t bytes) {
  int code = check(to, bytes);
  if (code != 0) return code;
  memcpy(staged, from, bytes);
  staged_at = to;
  staged_bytes = bytes;
  return 0;
}
int cuStreamSynchronize(void *stream) {
  memcpy((void *)staged_at, staged, staged_bytes);
  return stream == 0 ? 0 : 1;
}

void pretend_lose() { lost = 1; }
int pretend_opened() { return opened; }
void pretend_look(int allocation, void *to) { memcpy(to, memory[allocation], BYTES); }
`

/** A libcuda for a test, which code that looks for it by name finds too, in this process. Allocation 3 does not tell its size. */
export async function pretendCuda(t: Test) {
  const path = await compileLibrary(t, SOURCE, ['-Wl,-soname,libcuda.so.1'])
  const library = loadLibrary(path)
  const look = library.func('void pretend_look(int, void*)')
  return {
    path,
    /** Takes the GPUs away. */
    lose: library.func('void pretend_lose()') as () => void,
    /** How many openings of allocations are not closed. */
    opened: library.func('int pretend_opened()') as () => number,
    /** Reads what an allocation has at this moment. */
    look: (allocation: number): Buffer => {
      const bytes = Buffer.alloc(PRETEND_BYTES)
      look(allocation, bytes)
      return bytes
    },
  }
}

/** The `cudaIpcMemHandle_t` of an allocation. */
export function pretendHandle(allocation: number): Buffer {
  const handle = Buffer.alloc(64)
  handle[0] = allocation
  handle.write('e', 63)
  return handle
}
