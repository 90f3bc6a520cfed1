import { createRequire } from 'node:module'
import type koffiModule from 'koffi'

type Koffi = typeof koffiModule
/** A type of koffi's. */
type NativeType = ReturnType<Koffi['struct']>
export type NativeLibrary = ReturnType<Koffi['load']>
export type NativeCall = ReturnType<NativeLibrary['func']>

/**
 * Libraries in use: koffi unloads one that is no longer referenced; a driver's, once initialised, stays in use by all code of the
 * process.
 */
const HELD: NativeLibrary[] = []

/**
 * Loads a library for as long as the process lasts.
 *
 * @param library - a name that the loader finds, or a path.
 * @throws Error of koffi, which does not name the library.
 */
export function loadLibrary(library: string): NativeLibrary {
  const loaded = loadKoffi().load(library)
  HELD.push(loaded)
  return loaded
}

/** Makes the koffi type of a C struct of `count` bytes that is passed by value. Its values are objects `{ bytes }`. */
export function bytesByValue(count: number): NativeType {
  const koffi = loadKoffi()
  return koffi.struct({ bytes: koffi.array('uint8_t', count) })
}

function loadKoffi(): Koffi {
  return createRequire(import.meta.url)('koffi')
}

/** Calls a native function on a thread of koffi's, since a driver may take seconds. @returns the function's status. */
export function callNative(native: NativeCall, ...args: readonly unknown[]): Promise<number> {
  return new Promise((resolve, reject) => {
    native.async(...args, (error: Error | null, code: number) => {
      if (error === null || error === undefined) resolve(code)
      else reject(error)
    })
  })
}
