import { ServeError } from '@tutti/errors'
import { callNative, loadLibrary } from './native-library.ts'

/** What NVIDIA's driver offers this process, CUDA_VISIBLE_DEVICES, MIG and the container's share considered. */
export type CudaDriver =
  | { readonly count: number }
  /** There is none to ask, or it offers nothing. */
  | { readonly count: 0; readonly problem: string }

const LIBRARY = 'libcuda.so.1'
const SUCCESS = 0

/**
 * Asks the driver's own library, which says what every user of CUDA in this process will find. It makes no context on a
 * device, and processes that are started later have nothing of it.
 *
 * @param library - a name that the loader finds, or a path.
 */
export async function askCudaDriver(library = LIBRARY): Promise<CudaDriver> {
  try {
    const driver = loadLibrary(library)
    const describe = driver.func('int cuGetErrorString(int, _Out_ const char**)')
    const check = (what: string, code: number): void => {
      if (code === SUCCESS) return
      const text: (string | null)[] = [null]
      describe(code, text)
      throw new Error(`${what} says ${code} (${text[0] ?? 'an unknown error'})`)
    }
    check('cuInit', await callNative(driver.func('int cuInit(unsigned int)'), 0))
    const count = [0]
    check(
      'cuDeviceGetCount',
      await callNative(driver.func('int cuDeviceGetCount(_Out_ int*)'), count),
    )
    return { count: count[0] ?? 0 }
  } catch (error) {
    const { message } = ServeError.from(error)
    // What koffi says of a library that is absent names no library.
    return { count: 0, problem: `${library}: ${message}` }
  }
}
