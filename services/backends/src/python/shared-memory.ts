import { closeSync } from 'node:fs'
import { createRequire } from 'node:module'
import type koffiModule from 'koffi'

/**
 * Shared memory that another process can map too. Addresses are plain numbers and are not checked here. `Arena` is the only user.
 */
export interface SharedMemoryLike {
  /** Makes an anonymous memory file of that size, which can neither grow nor shrink, and maps it. */
  create(size: number): SharedMapping
}

export interface SharedMapping {
  /** Path by which another process of the same user can open the file, until `unmap`. */
  readonly path: string
  readonly size: number
  copyIn(offset: number, data: Uint8Array): void
  copyOut(offset: number, target: Uint8Array): void
  /** As `copyIn`, off the event loop. Nothing may be unmapped before it has resolved. */
  copyInLater(offset: number, data: Uint8Array): Promise<void>
  /** As `copyOut`, off the event loop. Nothing may be unmapped before it has resolved. */
  copyOutLater(offset: number, target: Uint8Array): Promise<void>
  /** Makes a view of the first `bytes` bytes. It must not be read after `unmap`. */
  view(bytes: number): ArrayBuffer
  /** Gives whole pages back to the system. They read as zeros afterwards. */
  discard(offset: number, size: number): void
  /** As `discard`, off the event loop. Nothing may be unmapped before it has resolved. */
  discardLater(offset: number, size: number): Promise<void>
  /** Unmaps the memory. Nothing may be copied from or to it from then on. */
  unmap(): void
}

const MFD_CLOEXEC = 1
const MFD_ALLOW_SEALING = 2
const F_ADD_SEALS = 1033
/** Seal, shrink, grow: a model that cut the file would take this process down with SIGBUS. */
const SEALS = 1 | 2 | 4
const PROT_READ_WRITE = 3
const MAP_SHARED = 1
const MADV_REMOVE = 9

type Koffi = typeof koffiModule
type LibC = ReturnType<typeof bindLibC>
/** Binds functions of the C library that this process has loaded already. */
function bindLibC(koffi: Koffi) {
  const lib = koffi.load(null)
  return {
    memfd: lib.func('int memfd_create(const char*, unsigned int)'),
    truncate: lib.func('int ftruncate(int, int64)'),
    control: lib.func('int fcntl(int, int, int)'),
    map: lib.func('void* mmap(void*, size_t, int, int, int, int64)'),
    unmap: lib.func('int munmap(void*, size_t)'),
    advise: lib.func('int madvise(uintptr_t, size_t, int)'),
    copyIn: lib.func('memcpy', 'void', ['uintptr_t', 'const void*', 'size_t']),
    copyOut: lib.func('memcpy', 'void', ['void*', 'uintptr_t', 'size_t']),
  }
}

/**
 * Opens shared memory on this machine.
 *
 * @returns a text with the reason if there is none: not Linux, or koffi's native part does not load.
 */
export function openSharedMemory(): SharedMemoryLike | string {
  if (process.platform !== 'linux') return `the platform is ${process.platform}, not linux`
  try {
    const koffi: Koffi = createRequire(import.meta.url)('koffi')
    const libC = bindLibC(koffi)
    return { create: (size) => createMapping(koffi, libC, size) }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function later(begin: (done: (error: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    // koffi says null where there is no error.
    begin((error) => (error instanceof Error ? reject(error) : resolve()))
  })
}

function createMapping(koffi: Koffi, libC: LibC, size: number): SharedMapping {
  const check = (what: string, result: unknown): number => {
    if (typeof result === 'number' && result >= 0) return result
    throw new Error(`${what} failed: errno ${koffi.errno()}`)
  }
  const fd = check('memfd_create', libC.memfd('tutti-arena', MFD_CLOEXEC | MFD_ALLOW_SEALING))
  try {
    check('ftruncate', libC.truncate(fd, size))
    check('fcntl', libC.control(fd, F_ADD_SEALS, SEALS))
    const address = libC.map(null, size, PROT_READ_WRITE, MAP_SHARED, fd, 0)
    // MAP_FAILED is -1 as a pointer.
    if (typeof address !== 'bigint' || address <= 0n || address >= 2n ** 63n) {
      throw new Error(`mmap of ${size} bytes failed: errno ${koffi.errno()}`)
    }
    return toMapping(koffi, libC, { fd, address, size })
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

function toMapping(
  koffi: Koffi,
  libC: LibC,
  { fd, address, size }: { readonly fd: number; readonly address: bigint; readonly size: number },
): SharedMapping {
  const base = Number(address)
  return {
    path: `/proc/${process.pid}/fd/${fd}`,
    size,
    copyIn: (offset, data) => void libC.copyIn(base + offset, data, data.byteLength),
    copyOut: (offset, target) => void libC.copyOut(target, base + offset, target.byteLength),
    copyInLater: (offset, data) =>
      later((done) => void libC.copyIn.async(base + offset, data, data.byteLength, done)),
    copyOutLater: (offset, target) =>
      later((done) => void libC.copyOut.async(target, base + offset, target.byteLength, done)),
    view: (bytes) => koffi.view(address, bytes),
    discard: (offset, bytes) => void libC.advise(base + offset, bytes, MADV_REMOVE),
    discardLater: (offset, bytes) =>
      later((done) => void libC.advise.async(base + offset, bytes, MADV_REMOVE, done)),
    unmap: () => {
      closeSync(fd)
      // It takes as long as there are pages.
      libC.unmap.async(address, size, () => {})
    },
  }
}
